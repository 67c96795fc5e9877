/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes snapshots. Keys may come in any order, unknown ones are skipped; what is missing stays unknown.
 * Pure functions. */
#include "scudafs/snapshot.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "scudafs/text.h"
#include "wire/msg.h"

/* CUdevice_attribute numbers. */
enum { ATTRIBUTE_MULTIPROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

#define MAP_MOST 64                 /* keys of a map, known or not */

static void text(struct msg *m, char *out, size_t cap)
{
	get_text(m, out, cap);
	if (m->bad)
		*out = '\0';
	text_clean(out);
}

static void decode_attributes(struct msg *m, struct gpu *g)
{
	size_t n = get_array(m, LIMIT_ATTRIBUTES);
	for (size_t i = 0; i < n && !m->bad; i++) {
		if (get_nil(m))
			continue;
		int64_t v = get_i64(m);
		if (i == ATTRIBUTE_MULTIPROCESSORS)
			g->multiprocessors = v;
		else if (i == ATTRIBUTE_MAJOR)
			g->major = v;
		else if (i == ATTRIBUTE_MINOR)
			g->minor = v;
	}
}

static void format_uuid(char out[48], const uint8_t u[16])
{
	char *p = out + sprintf(out, "GPU-");
	for (int i = 0; i < 16; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static void decode_processes(struct msg *m, struct gpu *g)
{
	/* A second list would end behind the table. */
	if (g->listed) {
		m->bad = true;
		return;
	}
	g->listed = true;
	for (size_t n = get_array(m, GPU_PROCESSES); n && !m->bad; n--) {
		struct gpu_process *p = &g->process[g->processes++];
		if (get_array(m, 3) != 3)
			m->bad = true;
		p->pid = get_u64(m);
		p->memory_known = !get_nil(m);
		if (p->memory_known)
			p->memory = get_u64(m);
		text(m, p->name, sizeof(p->name));
	}
}

/* A key is a path: of a number, of a word, or none that this build knows. */
static void decode_value(struct msg *m, struct gpu *g, const char *key)
{
#define KEY(id, folder, path, file) path file,
	static const char *const numbers[] = {GPU_NUMBERS(KEY)}, *const words[] = {GPU_WORDS(KEY)};
#undef KEY
	for (unsigned i = 0; i < VALUE_NUMBERS; i++)
		if (!strcmp(key, numbers[i])) {
			uint64_t v = get_u64(m);
			g->number[i] = v <= INT64_MAX ? (int64_t)v : -1;
			return;
		}
	for (unsigned i = 0; i < VALUE_WORDS; i++)
		if (!strcmp(key, words[i])) {
			text(m, g->word[i], sizeof(g->word[i]));
			return;
		}
	if (!strcmp(key, "processes"))
		decode_processes(m, g);
	else
		get_skip(m);
}

static void decode_values(struct msg *m, struct gpu *g)
{
	char key[LIMIT_NAME + 1];
	for (size_t n = get_map(m, MAP_MOST); n && !m->bad; n--) {
		get_text(m, key, sizeof(key));
		if (!m->bad)
			decode_value(m, g, key);
	}
}

static void decode_gpu(struct msg *m, struct gpu *g)
{
	char key[LIMIT_NAME + 1];
	uint8_t uuid[16];
	*g = (struct gpu){.major = -1, .minor = -1, .multiprocessors = -1};
	memset(g->number, 0xff, sizeof(g->number));
	for (size_t n = get_map(m, MAP_MOST); n && !m->bad; n--) {
		get_text(m, key, sizeof(key));
		if (m->bad)
			return;
		if (!strcmp(key, "name"))
			text(m, g->name, sizeof(g->name));
		else if (!strcmp(key, "uuid")) {
			get_bytes(m, uuid, sizeof(uuid));
			if (!m->bad)
				format_uuid(g->uuid, uuid);
		} else if (!strcmp(key, "total"))
			g->total = get_u64(m);
		else if (!strcmp(key, "free"))
			g->free = get_u64(m);
		else if (!strcmp(key, "pci_bus_id"))
			text(m, g->bus, sizeof(g->bus));
		else if (!strcmp(key, "attributes"))
			decode_attributes(m, g);
		else if (!strcmp(key, "values"))
			decode_values(m, g);
		else
			get_skip(m);
	}
}

int snapshot_decode(const void *p, size_t len, struct snapshot *s)
{
	char key[LIMIT_NAME + 1];
	struct msg m;
	memset(s, 0, sizeof(*s));
	msg_init(&m, (void *)p, len);
	for (size_t n = get_map(&m, MAP_MOST); n && !m.bad; n--) {
		get_text(&m, key, sizeof(key));
		if (m.bad)
			break;
		if (!strcmp(key, "driver_version"))
			s->driver_version = get_i64(&m);
		else if (!strcmp(key, "nvidia_version"))
			text(&m, s->nvidia_version, sizeof(s->nvidia_version));
		else if (!strcmp(key, "driver"))
			text(&m, s->driver, sizeof(s->driver));
		else if (!strcmp(key, "host"))
			text(&m, s->host, sizeof(s->host));
		else if (!strcmp(key, "sessions"))
			s->sessions = get_u64(&m);
		else if (!strcmp(key, "devices")) {
			size_t count = get_array(&m, LIMIT_DEVICES);
			for (s->count = 0; s->count < count && !m.bad; s->count++)
				decode_gpu(&m, &s->gpus[s->count]);
		} else
			get_skip(&m);
	}
	return get_end(&m) ? 0 : -EPROTO;
}
