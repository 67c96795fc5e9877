/* SPDX-License-Identifier: Apache-2.0 */
/* Values: each function prints one, or says that it is unknown. Thread rule: as tree_values.h. */
#include "scudafs/tree_values.h"
#include <errno.h>
#include <stdatomic.h>
#include "scudafs/inventory.h"
#include "scudafs/relay.h"
#include "wire/ctl.h"

#ifndef VERSION
#define VERSION "0.1.0"
#endif

static int put(FILE *f, const char *text)
{
	if (!*text)
		return -ENOENT;
	fprintf(f, "%s\n", text);
	return 0;
}

static int put_number(FILE *f, uint64_t v)
{
	fprintf(f, "%llu\n", (unsigned long long)v);
	return 0;
}

static int put_cuda_version(FILE *f, int64_t v)
{
	if (v <= 0)
		return -ENOENT;
	fprintf(f, "%d.%d\n", (int)(v / 1000), (int)(v % 1000 / 10));
	return 0;
}

static int show_version(FILE *f, unsigned object) { (void)object; return put(f, VERSION); }
static int show_protocol(FILE *f, unsigned object) { (void)object; return put_number(f, PROTOCOL_VERSION); }

static int show_status(FILE *f, unsigned object)
{
	unsigned ready = 0, connecting = 0;
	(void)object;
	for (unsigned i = 0; i < inventory.count; i++) {
		enum monitor_state s = monitor_lock(inventory.monitors[i])->state;
		monitor_unlock(inventory.monitors[i]);
		ready += s == MONITOR_READY;
		connecting += s == MONITOR_CONNECTING;
	}
	if (ready == inventory.count)
		return put(f, "ready");
	return put(f, ready ? "degraded" : connecting ? "connecting" : "lost");
}

enum server_value { STATUS, REASON, TLS, DRIVER, DRIVER_VERSION, CUDA_VERSION, RTT, GPUS, SERVER_SESSIONS };

static int show_server(FILE *f, unsigned server, enum server_value what)
{
	static const char *const states[] = {"connecting", "ready", "lost"};
	int e = -ENOENT;
	monitor_touch(inventory.monitors[server]);
	const struct monitor_view *v = monitor_lock(inventory.monitors[server]);
	switch (what) {
	case STATUS: e = put(f, states[v->state]); break;
	case REASON: e = v->state == MONITOR_LOST ? put(f, v->why) : -ENOENT; break;
	case TLS: e = put(f, v->security); break;
	case RTT: e = v->rtt_us ? put_number(f, v->rtt_us) : -ENOENT; break;
	case DRIVER: e = put(f, v->snapshot.driver); break;
	case DRIVER_VERSION: e = put(f, v->snapshot.nvidia_version); break;
	case CUDA_VERSION: e = put_cuda_version(f, v->snapshot.driver_version); break;
	case GPUS: e = v->known ? put_number(f, v->snapshot.count) : -ENOENT; break;
	case SERVER_SESSIONS: e = v->known ? put_number(f, v->snapshot.sessions) : -ENOENT; break;
	}
	monitor_unlock(inventory.monitors[server]);
	return e;
}

static int show_server_address(FILE *f, unsigned i) { return put(f, monitor_address(inventory.monitors[i])); }
static int show_server_status(FILE *f, unsigned i) { return show_server(f, i, STATUS); }
static int show_server_reason(FILE *f, unsigned i) { return show_server(f, i, REASON); }
static int show_server_tls(FILE *f, unsigned i) { return show_server(f, i, TLS); }
static int show_server_rtt(FILE *f, unsigned i) { return show_server(f, i, RTT); }
static int show_server_driver(FILE *f, unsigned i) { return show_server(f, i, DRIVER); }
static int show_server_driver_version(FILE *f, unsigned i) { return show_server(f, i, DRIVER_VERSION); }
static int show_server_cuda_version(FILE *f, unsigned i) { return show_server(f, i, CUDA_VERSION); }
static int show_server_gpus(FILE *f, unsigned i) { return show_server(f, i, GPUS); }
static int show_server_sessions(FILE *f, unsigned i) { return show_server(f, i, SERVER_SESSIONS); }

enum gpu_value { NAME, UUID, CAPABILITY, MULTIPROCESSORS, BUS, TOTAL, USED, FREE, WHERE, INDEX, INFORMATION };

static int show_information(FILE *f, const struct gpu *g, unsigned number)
{
	fprintf(f, "Model: \t\t %s\n", g->name);
	if (*g->uuid)
		fprintf(f, "GPU UUID: \t %s\n", g->uuid);
	if (*g->bus)
		fprintf(f, "Bus Type: \t PCIe\nBus Location: \t %s\n", g->bus);
	if (*g->word[VALUE_VBIOS_VERSION])
		fprintf(f, "Video BIOS: \t %s\n", g->word[VALUE_VBIOS_VERSION]);
	fprintf(f, "Device Minor: \t %u\nGPU Excluded: \t No\n", number);
	return 0;
}

static int show_gpu(FILE *f, unsigned number, enum gpu_value what)
{
	struct gpu g;
	struct gpu_place p;
	if (!inventory_gpu(number, &g, &p))
		return -ENOENT;
	switch (what) {
	case NAME: return put(f, g.name);
	case UUID: return put(f, g.uuid);
	case BUS: return put(f, g.bus);
	case CAPABILITY:
		if (g.major < 0 || g.minor < 0)
			return -ENOENT;
		fprintf(f, "%d.%d\n", (int)g.major, (int)g.minor);
		return 0;
	case MULTIPROCESSORS:
		return g.multiprocessors < 0 ? -ENOENT : put_number(f, (uint64_t)g.multiprocessors);
	case TOTAL: return put_number(f, g.total);
	case FREE: return put_number(f, g.free);
	case USED: return g.free > g.total ? -ENOENT : put_number(f, g.total - g.free);
	case WHERE: return put(f, monitor_address(inventory.monitors[p.server]));
	case INDEX: return put_number(f, p.index);
	case INFORMATION: return show_information(f, &g, number);
	}
	return -ENOENT;
}

static int show_gpu_name(FILE *f, unsigned n) { return show_gpu(f, n, NAME); }
static int show_gpu_uuid(FILE *f, unsigned n) { return show_gpu(f, n, UUID); }
static int show_gpu_capability(FILE *f, unsigned n) { return show_gpu(f, n, CAPABILITY); }
static int show_gpu_multiprocessors(FILE *f, unsigned n) { return show_gpu(f, n, MULTIPROCESSORS); }
static int show_gpu_bus(FILE *f, unsigned n) { return show_gpu(f, n, BUS); }
static int show_gpu_server(FILE *f, unsigned n) { return show_gpu(f, n, WHERE); }
static int show_gpu_index(FILE *f, unsigned n) { return show_gpu(f, n, INDEX); }
static int show_gpu_information(FILE *f, unsigned n) { return show_gpu(f, n, INFORMATION); }
static int show_memory_total(FILE *f, unsigned n) { return show_gpu(f, n, TOTAL); }
static int show_memory_used(FILE *f, unsigned n) { return show_gpu(f, n, USED); }
static int show_memory_free(FILE *f, unsigned n) { return show_gpu(f, n, FREE); }

static int show_gpu_driver_version(FILE *f, unsigned n)
{
	struct gpu_place p;
	return inventory_place(n, &p) ? show_server(f, p.server, DRIVER_VERSION) : -ENOENT;
}

static int show_gpu_cuda_version(FILE *f, unsigned n)
{
	struct gpu_place p;
	return inventory_place(n, &p) ? show_server(f, p.server, CUDA_VERSION) : -ENOENT;
}

/* What the server tells of a GPU besides (wire/values.h). */
static int show_gpu_number(FILE *f, unsigned number, enum gpu_number what)
{
	struct gpu g;
	struct gpu_place p;
	if (!inventory_gpu(number, &g, &p) || g.number[what] < 0)
		return -ENOENT;
	return put_number(f, (uint64_t)g.number[what]);
}

static int show_gpu_word(FILE *f, unsigned number, enum gpu_word what)
{
	struct gpu g;
	struct gpu_place p;
	return inventory_gpu(number, &g, &p) ? put(f, g.word[what]) : -ENOENT;
}

#define SHOW_NUMBER(id, folder, path, file) \
	static int show_##id(FILE *f, unsigned n) { return show_gpu_number(f, n, VALUE_##id); }
#define SHOW_WORD(id, folder, path, file) \
	static int show_##id(FILE *f, unsigned n) { return show_gpu_word(f, n, VALUE_##id); }
GPU_NUMBERS(SHOW_NUMBER)
GPU_WORDS(SHOW_WORD)

/* Who computes on it: pid, bytes of memory or "-", program. */
static int show_gpu_sessions(FILE *f, unsigned number)
{
	struct gpu g;
	struct gpu_place p;
	if (!inventory_gpu(number, &g, &p) || !g.listed)
		return -ENOENT;
	for (unsigned i = 0; i < g.processes; i++) {
		const struct gpu_process *q = &g.process[i];
		fprintf(f, "%llu ", (unsigned long long)q->pid);
		if (q->memory_known)
			fprintf(f, "%llu", (unsigned long long)q->memory);
		else
			fprintf(f, "-");
		fprintf(f, " %s\n", *q->name ? q->name : "-");
	}
	return 0;
}

#define COUNTER(name) \
	static int show_##name(FILE *f, unsigned object) \
	{ \
		(void)object; \
		return put_number(f, atomic_load(&counters.name)); \
	}
COUNTER(sessions) COUNTER(frames_out) COUNTER(frames_in) COUNTER(bytes_out) COUNTER(bytes_in) COUNTER(waits)
COUNTER(bytes_lent) COUNTER(posts) COUNTER(reconnects)

#define SESSION_VALUE(name, print) \
	static int show_session_##name(FILE *f, unsigned id) \
	{ \
		struct relay_info i; \
		return relay_info(id, &i) ? print(f, i.name) : -ENOENT; \
	}
static int put_pid(FILE *f, pid_t pid) { return pid > 0 ? put_number(f, (uint64_t)pid) : -ENOENT; }
SESSION_VALUE(pid, put_pid) SESSION_VALUE(command, put) SESSION_VALUE(bytes_in, put_number)
SESSION_VALUE(bytes_out, put_number) SESSION_VALUE(bytes_lent, put_number) SESSION_VALUE(waits, put_number)

const struct entry tree_entries[] = {
	{ROOT, "version", show_version, 0, false},
	{ROOT, "protocol", show_protocol, 0, false},
	{ROOT, "status", show_status, 0, false},
	{ROOT, "status.json", tree_show_json, 0, false},
	{ROOT, "servers", NULL, SERVERS, false},
	{ROOT, "by-uuid", NULL, BY_UUID, false},
	{ROOT, "stats", NULL, STATS, false},
	{ROOT, "sessions", NULL, SESSIONS, false},
	{ROOT, CTL_NAME, NULL, ROOT, false},
	{SERVER, "status", show_server_status, 0, false},
	{SERVER, "reason", show_server_reason, 0, false},
	{SERVER, "address", show_server_address, 0, false},
	{SERVER, "rtt_us", show_server_rtt, 0, false},
	{SERVER, "tls", show_server_tls, 0, false},
	{SERVER, "driver", show_server_driver, 0, false},
	{SERVER, "driver_version", show_server_driver_version, 0, false},
	{SERVER, "cuda_version", show_server_cuda_version, 0, false},
	{SERVER, "gpus", show_server_gpus, 0, false},
	{SERVER, "sessions", show_server_sessions, 0, false},
	{SERVER, CTL_NAME, NULL, ROOT, false},
	{GPU, "name", show_gpu_name, 0, true},
	{GPU, "uuid", show_gpu_uuid, 0, false},
	{GPU, "compute_capability", show_gpu_capability, 0, false},
	{GPU, "multiprocessors", show_gpu_multiprocessors, 0, false},
	{GPU, "pci_bus_id", show_gpu_bus, 0, false},
	{GPU, "driver_version", show_gpu_driver_version, 0, false},
	{GPU, "cuda_version", show_gpu_cuda_version, 0, false},
	{GPU, "memory", NULL, MEMORY, false},
	{GPU, "utilization", NULL, UTILIZATION, false},
	{GPU, "temperature", NULL, TEMPERATURE, false},
	{GPU, "power", NULL, POWER, false},
	{GPU, "clocks", NULL, CLOCKS, false},
	{GPU, "pcie", NULL, PCIE, false},
	{GPU, "ecc", NULL, ECC, false},
	{GPU, "sessions", show_gpu_sessions, 0, true},
	{GPU, "server", show_gpu_server, 0, false},
	{GPU, "remote_index", show_gpu_index, 0, false},
	{GPU, "information", show_gpu_information, 0, false},
	{MEMORY, "total", show_memory_total, 0, false},
	{MEMORY, "used", show_memory_used, 0, false},
	{MEMORY, "free", show_memory_free, 0, false},
#define NUMBER(id, folder, path, file) {folder, file, show_##id, 0, false},
#define WORD(id, folder, path, file) {folder, file, show_##id, 0, true},
	GPU_NUMBERS(NUMBER)
	GPU_WORDS(WORD)
#undef NUMBER
#undef WORD
	{STATS, "sessions", show_sessions, 0, false},
	{STATS, "frames_out", show_frames_out, 0, false},
	{STATS, "frames_in", show_frames_in, 0, false},
	{STATS, "bytes_out", show_bytes_out, 0, false},
	{STATS, "bytes_in", show_bytes_in, 0, false},
	{STATS, "bytes_lent", show_bytes_lent, 0, false},
	{STATS, "waits", show_waits, 0, false},
	{STATS, "posts", show_posts, 0, false},
	{STATS, "reconnects", show_reconnects, 0, false},
	{SESSION, "pid", show_session_pid, 0, false},
	{SESSION, "command", show_session_command, 0, true},
	{SESSION, "bytes_in", show_session_bytes_in, 0, false},
	{SESSION, "bytes_out", show_session_bytes_out, 0, false},
	{SESSION, "bytes_lent", show_session_bytes_lent, 0, false},
	{SESSION, "waits", show_session_waits, 0, false},
};
const unsigned tree_entry_count = sizeof(tree_entries) / sizeof(*tree_entries);
