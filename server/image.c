/* SPDX-License-Identifier: Apache-2.0 */
/* Images on their way from a record to the driver. A program's end that takes an image for known sends its
 * digest in place of the bytes; the digest that a file in the cache bears is always one that we computed
 * ourselves over what we keep.
 *
 * Thread rule: see image.h; `lock` guards the list of preserved images. */
#include "server/image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/cache.h"
#include "server/notes.h"
#include "wire/image.h"
#include "wire/limits.h"

#define LIMIT_PARTS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct image *preserved;

static bool take_bytes(struct exec *x, struct image *i, const uint8_t *wanted)
{
	if (wanted) {
		i->asked = true;
		memcpy(i->digest, wanted, DIGEST);
		i->bytes = notes_take(i->digest, i->n);
		if (!i->bytes)
			i->bytes = cache_read(i->digest, i->n, IMAGE_TAIL);
		i->known = i->bytes;
		return true;
	}
	i->known = true;
	i->bytes = malloc(i->n + IMAGE_TAIL);
	if (!i->bytes || !exec_bulk(x, i->bytes, i->n))
		return false;
	memset(i->bytes + i->n, 0, IMAGE_TAIL);
	digest(i->bytes, i->n, i->digest);
	return true;
}

static bool get(struct exec *x, struct image *i)
{
	uint64_t kind = get_u64(&x->in), total = 0;
	size_t parts = get_array(&x->in, LIMIT_PARTS), wanted_len = 0;
	size_t *size = exec_alloc(x, (parts + 1) * sizeof *size);
	const uint8_t *wanted;

	if (!size || !parts)
		return false;
	for (size_t k = 0; k < parts; k++) {
		size[k] = get_u64(&x->in);
		if (size[k] > LIMIT_IMAGE || (total += size[k]) > LIMIT_IMAGE)
			return false;
	}
	wanted = get_blob(&x->in, &wanted_len, DIGEST);
	if (x->in.bad || (wanted_len && (wanted_len != DIGEST || x->frame.bulk_len)) ||
		(!wanted_len && total != x->frame.bulk_len) || (parts > 1 && kind != IMAGE_WRAPPER2))
		return false;
	i->n = total;
	if (!take_bytes(x, i, wanted_len ? wanted : NULL))
		return false;
	if (!i->known)
		return true;
	i->code = i->bytes;
	if (kind != IMAGE_WRAPPER1 && kind != IMAGE_WRAPPER2) {
		i->whole = image_whole(i->bytes, total);
		return true;
	}
	i->whole = image_fatbin_whole(i->bytes, size[0]);
	i->wrapper = (struct image_wrapper){
		.magic = IMAGE_WRAPPER_MAGIC, .version = kind == IMAGE_WRAPPER2 ? 2 : 1, .data = i->bytes};
	if (kind == IMAGE_WRAPPER2) {
		const uint8_t *p = i->bytes + size[0];

		i->extra = calloc(parts, sizeof *i->extra);
		if (!i->extra)
			return false;
		for (size_t k = 1; k < parts; k++) {
			i->extra[k - 1] = p;
			i->whole &= image_fatbin_whole(p, size[k]);
			p += size[k];
		}
		i->wrapper.extra = i->extra;
	}
	i->code = &i->wrapper;
	return true;
}

struct image *image_get(struct exec *x)
{
	struct image *i = calloc(1, sizeof *i);

	if (i && get(x, i))
		return i;
	image_free(i);
	return NULL;
}

void image_keep(const struct image *i)
{
	if (!i->asked && i->n >= IMAGE_KEPT)
		cache_write(i->digest, i->bytes, i->n);
}

void image_preserve(struct image *i, uint64_t library)
{
	i->library = library;
	pthread_mutex_lock(&lock);
	i->next = preserved;
	preserved = i;
	pthread_mutex_unlock(&lock);
}

struct image *image_release(uint64_t library)
{
	struct image **p = &preserved, *i;

	pthread_mutex_lock(&lock);
	while ((i = *p) && i->library != library)
		p = &i->next;
	if (i)
		*p = i->next;
	pthread_mutex_unlock(&lock);
	return i;
}

void image_free(struct image *i)
{
	if (!i)
		return;
	free(i->bytes);
	free(i->extra);
	free(i);
}
