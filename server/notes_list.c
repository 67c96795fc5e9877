/* SPDX-License-Identifier: Apache-2.0 */
/* Entries and their checks. Thread rule: see notes_list.h; no other state than this machine's name. */
#include "server/notes_list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cache.h"
#include "server/session.h"
#include "server/state.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/msg.h"

/* In front of an entry, in memory as in the file. */
struct header {
	uint32_t len;
	uint8_t check[12];
};

static uint8_t machine[DIGEST];
static bool several_kinds; /* of devices */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Variables with which the driver makes other code of an image, or none. */
static const char *const compiling[] = {
	"CUDA_DISABLE_JIT", "CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_JIT", "CUDA_FORCE_PTX_JIT"};

/* What may write entries otherwise than we read them, or answer otherwise. */
static size_t name_build(char *out, size_t cap)
{
	int n = snprintf(out, cap, "%s %d %d", VERSION, PROTOCOL_VERSION, (int)CU_FUNC_ATTRIBUTE_MAX);

	for (size_t i = 0; i < sizeof compiling / sizeof *compiling; i++) {
		const char *value = getenv(compiling[i]);

		n += snprintf(out + n, cap - n, "%c%.32s", value ? '=' : ' ', value ? value : "");
	}
	return n;
}

/* That, and the snapshot without what changes: it names the driver's version and all that is known of the
 * devices. */
static void name_machine(void)
{
	const struct session_start *s = session_self()->start;
	char build[256];
	size_t n = name_build(build, sizeof build);
	uint8_t *kept = malloc(n + s->snapshot_len);
	const uint8_t *name = NULL; /* of the device before, encoded */
	size_t name_len = 0;
	struct msg m;

	if (kept)
		memcpy(kept, build, n);
	msg_init(&m, (void *)s->snapshot, s->snapshot_len);
	for (size_t keys = get_map(&m, 64), devices = 0; kept && keys-- && !m.bad;) {
		char key[LIMIT_NAME];

		get_text(&m, key, sizeof key);
		if (strcmp(key, "devices")) {
			size_t at = m.len;

			get_skip(&m);
			if (!m.bad && strcmp(key, "sessions")) {
				memcpy(kept + n, m.buf + at, m.len - at);
				n += m.len - at;
			}
			continue;
		}
		for (devices = get_array(&m, LIMIT_DEVICES); devices-- && !m.bad;)
			for (size_t inner = get_map(&m, 64); inner-- && !m.bad;) {
				get_text(&m, key, sizeof key);
				size_t at = m.len;

				get_skip(&m);
				if (!m.bad && !strcmp(key, "name")) {
					several_kinds |= name && (m.len - at != name_len ||
									 memcmp(m.buf + at, name, name_len));
					name = m.buf + at;
					name_len = m.len - at;
				}
				if (!m.bad && strcmp(key, "free")) {
					memcpy(kept + n, m.buf + at, m.len - at);
					n += m.len - at;
				}
			}
	}
	digest(kept ? kept : machine, kept ? n : 0, machine);
	free(kept);
}

bool notes_one_kind(void)
{
	pthread_once(&once, name_machine);
	return !several_kinds;
}

static void check_of(const uint8_t *entry, size_t n, uint8_t out[sizeof((struct header *)0)->check])
{
	uint8_t bytes[DIGEST + LIMIT_ENTRY], d[DIGEST];

	pthread_once(&once, name_machine);
	memcpy(bytes, machine, DIGEST);
	memcpy(bytes + DIGEST, entry, n);
	digest(bytes, DIGEST + n, d);
	memcpy(out, d, sizeof((struct header *)0)->check);
}

const uint8_t *notes_next(const struct notes *t, size_t *at, size_t *n)
{
	struct header h;

	if (t->n - *at < sizeof h)
		return NULL;
	memcpy(&h, t->bytes + *at, sizeof h);
	if (h.len > LIMIT_ENTRY || h.len > t->n - *at - sizeof h)
		return NULL;
	*n = h.len;
	*at += sizeof h + h.len;
	return t->bytes + *at - h.len;
}

/* Of what a file held, only entries that are right are left. False when no entry could be made out from some
 * place on: what is added behind it would not be found. */
static bool sift(struct notes *t)
{
	size_t at = 0, kept = 0, all = t->n, n;

	for (const uint8_t *e; (e = notes_next(t, &at, &n));) {
		struct header h;

		memcpy(&h, e - sizeof h, sizeof h);
		uint8_t want[sizeof h.check];

		check_of(e, n, want);
		if (memcmp(want, h.check, sizeof want))
			continue;
		memmove(t->bytes + kept, e - sizeof h, sizeof h + n);
		kept += sizeof h + n;
	}
	t->n = kept;
	return at == all;
}

/* A file that is damaged, or holds more of other machines than of this one, is written anew. */
void notes_read(struct notes *t)
{
	size_t n = 0;

	t->bytes = cache_notes(t->digest, &n);
	t->n = t->bytes ? n : 0;
	if (sift(t) && t->n >= n / 2)
		return;
	cache_forget_notes(t->digest);
	if (t->n)
		cache_note(t->digest, t->bytes, t->n);
}

static bool has_entry(const struct notes *t, const uint8_t *entry, size_t same)
{
	size_t at = 0, n;

	for (const uint8_t *e; (e = notes_next(t, &at, &n));)
		if (n >= same && !memcmp(e, entry, same))
			return true;
	return false;
}

void notes_append(struct notes *t, const uint8_t *entry, size_t n, size_t same)
{
	struct header h = {.len = (uint32_t)n};
	uint8_t *more;

	if (n > LIMIT_ENTRY || t->n + sizeof h + n > LIMIT_CACHE_NOTES || has_entry(t, entry, same))
		return;
	more = realloc(t->bytes, t->n + sizeof h + n);
	if (!more)
		return;
	t->bytes = more;
	check_of(entry, n, h.check);
	memcpy(more + t->n, &h, sizeof h);
	memcpy(more + t->n + sizeof h, entry, n);
	cache_note(t->digest, more + t->n, sizeof h + n);
	t->n += sizeof h + n;
}
