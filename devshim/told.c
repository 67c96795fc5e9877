/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are told go to the tables of functions and of answers about occupancy; those of images wait
 * here until such an image is loaded.
 *
 * Thread rule: see told.h; `lock` guards the list. */
#include "devshim/told.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/occupancy.h"
#include "wire/limits.h"
#include "wire/notes.h"

struct expected {
	struct expected *next;
	uint8_t digest[DIGEST];
	size_t n;
	uint8_t entries[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct expected *_Atomic all;

/* An answer about occupancy, or to a launch: [device, words, code, answer]. */
static void told_answer(struct msg *m, uint64_t kind, struct function *f)
{
	CUdevice device = device_visible((int)get_i64(m));
	struct occupancy_question q = {.a = {0}};

	m->bad |= get_array(m, OCCUPANCY_WORDS) != OCCUPANCY_WORDS;
	for (int i = 0; i < OCCUPANCY_ARGUMENTS; i++)
		q.a[i] = get_u64(m);
	for (int i = 0; i < OCCUPANCY_SET; i++)
		q.set[i] = get_i64(m);
	CUresult code = (CUresult)get_i64(m);
	uint64_t answer = get_u64(m);

	if (m->bad || !f)
		return;
	if (kind == NOTE_SHAPE)
		function_shape_taken(f, (uint32_t)q.a[0]);
	else if (device >= 0)
		occupancy_told(f, (enum note)kind, device, &q, code, answer);
}

void told_functions(struct msg *m, unsigned type, void *parent)
{
	char *name = malloc(LIMIT_STRING + 1);

	m->bad |= !name;
	while (!m->bad && !get_nil(m)) {
		get_text(m, name, LIMIT_STRING + 1);
		uint64_t kind = get_u64(m);

		if (kind == NOTE_FUNCTION)
			function_told(m, type, parent, name);
		else
			told_answer(m, kind, parent ? function_named(type, parent, name) : NULL);
	}
	free(name);
}

bool told_images(const void *p, size_t n)
{
	struct msg m;

	msg_init(&m, (void *)p, n);
	while (!m.bad && !get_nil(&m)) {
		uint8_t d[DIGEST];

		get_bytes(&m, d, DIGEST);
		size_t start = m.len;

		told_functions(&m, 0, NULL);
		struct expected *e = m.bad ? NULL : malloc(sizeof *e + m.len - start);

		if (!e)
			continue;
		memcpy(e->digest, d, DIGEST);
		e->n = m.len - start;
		memcpy(e->entries, m.buf + start, e->n);
		pthread_mutex_lock(&lock);
		e->next = all;
		atomic_store(&all, e);
		pthread_mutex_unlock(&lock);
	}
	return get_end(&m);
}

bool told_any(void)
{
	return atomic_load_explicit(&all, memory_order_relaxed);
}

uint8_t *told_image(const uint8_t d[DIGEST], size_t *n)
{
	struct expected *e, *before = NULL;
	uint8_t *entries = NULL;

	pthread_mutex_lock(&lock);
	for (e = all; e && memcmp(e->digest, d, DIGEST); e = e->next)
		before = e;
	if (e && before)
		before->next = e->next;
	else if (e)
		atomic_store(&all, e->next);
	pthread_mutex_unlock(&lock);
	if (!e)
		return NULL;
	*n = e->n;
	entries = malloc(e->n);
	if (entries)
		memcpy(entries, e->entries, e->n);
	free(e);
	return entries;
}
