/* SPDX-License-Identifier: Apache-2.0 */
/* The first record: who the program is and how it numbers its calls. Calls are matched by name and by the
 * signature of their encoding, so that the two ends may be built from descriptions that differ.
 *
 * Thread rule: the session's main thread, while it holds the baton and before there are others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cache.h"
#include "server/nvml.h"
#include "server/state.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "nvml.calls.h"

/* Variables of the program that the driver itself reads and that mean no file, no device and nothing of
 * the server's. */
static const char *const passed[] = {
	"CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "CUDA_DEVICE_MAX_CONNECTIONS",
			"CUDA_DEVICE_MAX_COPY_CONNECTIONS",
	"CUDA_DISABLE_JIT", "CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_JIT", "CUDA_FORCE_PTX_JIT", "CUDA_AUTO_BOOST",
	"SCUDAFS_SOFT_CHECK", "CUDA_SCALE_LAUNCH_QUEUES", "CUDA_GRAPHS_USE_NODE_PRIORITY",
};

struct greeting {
	int64_t protocol;
	char version[64], program[64], user[64];
	int64_t pid, uid;
	uint16_t unknown[LIMIT_CALLS];
	unsigned unknown_count;
	bool again;                 /* a list that we do not know */
};

/* Both descriptions share one numbering here: NVML's calls follow the driver's. */
const struct serve_entry *call_entry(uint16_t id)
{
	if (id == NO_CALL)
		return NULL;
	return call_is_nvml(id) ? &nvml_serve_table[id - serve_count] : &serve_table[id];
}

bool call_is_nvml(uint16_t id)
{
	return id != NO_CALL && id >= serve_count;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(call_entry(*(const uint16_t *)a)->name, call_entry(*(const uint16_t *)b)->name);
}

static uint16_t find_call(const uint16_t *sorted, const char *name, uint32_t signature)
{
	size_t low = 0, high = serve_count + nvml_serve_count;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strcmp(name, call_entry(sorted[mid])->name);

		if (!order)
			return call_entry(sorted[mid])->signature == signature ? sorted[mid] : NO_CALL;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NO_CALL;
}

static void get_calls(struct session *s, struct msg *m, struct greeting *g)
{
	const unsigned count = serve_count + nvml_serve_count;
	uint16_t *sorted = malloc(count * sizeof *sorted);
	size_t n = get_array(m, LIMIT_CALLS);

	if (!sorted)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	for (unsigned i = 0; i < count; i++)
		sorted[i] = i;
	qsort(sorted, count, sizeof *sorted, by_name);
	g->unknown_count = 0;
	for (size_t i = 0; i < n && !m->bad; i++) {
		char name[LIMIT_NAME + 1];
		uint32_t signature;

		if (get_array(m, 2) != 2)
			m->bad = true;
		get_text(m, name, sizeof name);
		signature = get_u64(m);
		s->call[i] = m->bad ? NO_CALL : find_call(sorted, name, signature);
		if (s->call[i] == NO_CALL)
			g->unknown[g->unknown_count++] = i;
		else if (call_is_nvml(s->call[i]))
			s->wants_nvml = true;
		else
			s->wants_driver = true;
	}
	s->calls = n;
	free(sorted);
}

/* A list of this very build: the program's numbers are ours. */
static bool get_list(struct session *s, uint64_t list)
{
	unsigned first = list == NVML_CALL_LIST ? serve_count : 0;

	if (list != CALL_LIST && list != NVML_CALL_LIST)
		return false;
	s->calls = first ? nvml_serve_count : serve_count;
	s->wants_nvml = first;
	s->wants_driver = !first;
	for (unsigned i = 0; i < s->calls; i++)
		s->call[i] = first + i;
	return true;
}

static void get_environment(struct msg *m)
{
	size_t n = get_map(m, 64);

	for (size_t i = 0; i < n && !m->bad; i++) {
		char name[LIMIT_NAME + 1], value[256];

		get_text(m, name, sizeof name);
		get_text(m, value, sizeof value);
		for (size_t j = 0; !m->bad && j < sizeof passed / sizeof *passed; j++)
			if (!strcmp(name, passed[j]))
				setenv(name, value, 1);
	}
}

/* A text that is only shown: a long one is cut. */
static void get_shown(struct msg *m, char *out, size_t cap)
{
	static char text[LIMIT_STRING];

	get_text(m, text, sizeof text);
	snprintf(out, cap, "%.*s", (int)cap - 1, text);
}

static void get_greeting(struct session *s, struct msg *m, struct greeting *g)
{
	size_t n = get_map(m, 32);

	for (size_t i = 0; i < n && !m->bad; i++) {
		char key[32];

		get_text(m, key, sizeof key);
		if (!strcmp(key, "protocol"))
			g->protocol = get_i64(m);
		else if (!strcmp(key, "version"))
			get_shown(m, g->version, sizeof g->version);
		else if (!strcmp(key, "pid"))
			g->pid = get_i64(m);
		else if (!strcmp(key, "uid"))
			g->uid = get_i64(m);
		else if (!strcmp(key, "user"))
			get_shown(m, g->user, sizeof g->user);
		else if (!strcmp(key, "command"))
			get_shown(m, g->program, sizeof g->program);
		else if (!strcmp(key, "calls"))
			get_calls(s, m, g);
		else if (!strcmp(key, "list"))
			g->again = !get_list(s, get_u64(m));
		else if (!strcmp(key, "env"))
			get_environment(m);
		else
			get_skip(m);
	}
	if (!get_end(m))
		m->bad = true;
}

/* The answer is `m`. */
static void answer(struct session *s, const struct frame *f, struct msg *m)
{
	struct frame reply = {.kind = FRAME_REPLY, .seq = f->seq, .head_len = m->len};
	struct iovec v[2] = {{&reply, sizeof reply}, {m->buf, m->len}};

	if (m->bad)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "the hello's answer is larger than a head may be");
	send_frame(s, v, 2);
}

static void ask_again(struct session *s, const struct frame *f, struct msg *m)
{
	static bool asked;

	if (asked)
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "malformed hello");
	asked = true;
	put_map(m, 1);
	put_text(m, "again");
	put_bool(m, true);
	answer(s, f, m);
}

void hello_answer(struct session *s, const struct frame *f)
{
	static uint8_t head[LIMIT_HEAD];
	static struct greeting g;
	struct msg m;

	input_take(s, head, f->head_len);
	msg_init(&m, head, f->head_len);
	g.again = false;
	g.protocol = PROTOCOL_VERSION;
	get_greeting(s, &m, &g);
	/* Ahead of what only another version has put differently. */
	if (g.protocol != PROTOCOL_VERSION)
		session_end(s, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
				"the program speaks protocol %lld, the server %d",
				(long long)g.protocol, PROTOCOL_VERSION);
	if (m.bad || (!s->calls && !g.again))
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "malformed hello");
	if (g.again) {
		msg_init(&m, head, sizeof head);
		ask_again(s, f, &m);
		return;
	}
	snprintf(s->report->program, sizeof s->report->program, "%.40s[%d]", g.program, (int)g.pid);
	nvml_announce(g.pid, s->wants_driver ? g.program : NULL);
	log_debug("hello of %s pid %lld uid %lld %s, build %s; %u of %u calls unknown", g.program,
			(long long)g.pid,
			(long long)g.uid, g.user, g.version, g.unknown_count, s->calls);
	msg_init(&m, head, sizeof head);
	put_map(&m, 7);
	put_text(&m, "protocol");
	put_i64(&m, PROTOCOL_VERSION);
	put_text(&m, "version");
	put_text(&m, VERSION);
	put_text(&m, "session");
	put_u64(&m, s->start->id);
	put_text(&m, "driver");
	put_text(&m, s->start->driver.soft ? "soft" : "real");
	put_text(&m, "keeps");
	put_bool(&m, cache_is_open());
	put_text(&m, "unknown");
	put_array(&m, g.unknown_count);
	for (unsigned i = 0; i < g.unknown_count; i++)
		put_u64(&m, g.unknown[i]);
	put_text(&m, "snapshot");
	put_encoded(&m, s->start->snapshot, s->start->snapshot_len);
	answer(s, f, &m);
	s->greeted = true;
}
