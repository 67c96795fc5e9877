/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes. A node's number is made of its folder's kind, the object that the folder is about (a
 * server, a GPU, a session) and its place in the table of entries. A value that is not known is a file that
 * does not exist.
 *
 * Thread rule: the numbers of the GPUs have a lock, taken before a monitor's. All else is constant after
 * tree_init. */
#include "scudafs/tree.h"
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "scudafs/daemon.h"
#include "scudafs/monitor.h"
#include "scudafs/relay.h"
#include "scudafs/text.h"
#include "wire/ctl.h"

#ifndef VERSION
#define VERSION "0.1.0"
#endif

enum folder { ROOT, SERVERS, SERVER, GPU, MEMORY, UTILIZATION, TEMPERATURE, POWER, CLOCKS, PCIE, ECC, BY_UUID, STATS,
	SESSIONS, SESSION };

#define FOLDER 1                    /* the low byte of a folder's own number */
#define LINK 0xff                   /* of a link to the GPU `object` */
#define FIRST 2                     /* of the first entry of the table */
#define SESSION_NODE (1ull << 60)
#define SESSION_DEFAULT 0x3ff       /* the root's: whichever server is ready */

struct place { unsigned server, index; };   /* of a GPU */

static struct {
	struct monitor *const *monitors;
	unsigned count;
	char names[MOUNT_SERVERS][80];  /* of the servers' folders */
	uid_t owner;
	gid_t group;
	struct timespec start;
	atomic_ullong opened;           /* session nodes given out */
	pthread_mutex_t lock;
	struct place gpus[MOUNT_SERVERS * LIMIT_DEVICES];   /* numbers never change while mounted */
	unsigned gpu_count, numbered[MOUNT_SERVERS];
} tree = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t node_of(enum folder f, uint64_t object, unsigned low)
{
	return (uint64_t)f << 48 | object << 8 | low;
}
static enum folder folder_of(uint64_t node) { return (enum folder)(node >> 48); }
static unsigned object_of(uint64_t node) { return (unsigned)(node >> 8); }
static unsigned low_of(uint64_t node) { return node & 0xff; }

/* ---- GPUs ---- */

/* Gives numbers to GPUs that have none yet, in the order of the servers. Returns how many numbers there
 * are. */
static unsigned number_gpus(void)
{
	pthread_mutex_lock(&tree.lock);
	for (unsigned i = 0; i < tree.count; i++) {
		unsigned n = monitor_lock(tree.monitors[i])->snapshot.count;
		monitor_unlock(tree.monitors[i]);
		while (tree.numbered[i] < n)
			tree.gpus[tree.gpu_count++] = (struct place){i, tree.numbered[i]++};
	}
	unsigned count = tree.gpu_count;
	pthread_mutex_unlock(&tree.lock);
	return count;
}

static bool gpu_place(unsigned number, struct place *p)
{
	if (number >= number_gpus())
		return false;
	pthread_mutex_lock(&tree.lock);
	*p = tree.gpus[number];
	pthread_mutex_unlock(&tree.lock);
	return true;
}

/* A copy of what is known of a GPU. */
static bool gpu_get(unsigned number, struct gpu *g, struct place *p)
{
	if (!gpu_place(number, p))
		return false;
	monitor_touch(tree.monitors[p->server]);
	const struct monitor_view *v = monitor_lock(tree.monitors[p->server]);
	bool there = p->index < v->snapshot.count;
	if (there)
		*g = v->snapshot.gpus[p->index];
	monitor_unlock(tree.monitors[p->server]);
	return there;
}

/* ---- values: each prints one, or says that it is unknown ---- */

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
	for (unsigned i = 0; i < tree.count; i++) {
		enum monitor_state s = monitor_lock(tree.monitors[i])->state;
		monitor_unlock(tree.monitors[i]);
		ready += s == MONITOR_READY;
		connecting += s == MONITOR_CONNECTING;
	}
	if (ready == tree.count)
		return put(f, "ready");
	return put(f, ready ? "degraded" : connecting ? "connecting" : "lost");
}

enum server_value { STATUS, TLS, DRIVER, DRIVER_VERSION, CUDA_VERSION, RTT, GPUS, SERVER_SESSIONS };

static int show_server(FILE *f, unsigned server, enum server_value what)
{
	static const char *const states[] = {"connecting", "ready", "lost"};
	int e = -ENOENT;
	monitor_touch(tree.monitors[server]);
	const struct monitor_view *v = monitor_lock(tree.monitors[server]);
	switch (what) {
	case STATUS: e = put(f, states[v->state]); break;
	case TLS: e = put(f, v->security); break;
	case RTT: e = v->rtt_us ? put_number(f, v->rtt_us) : -ENOENT; break;
	case DRIVER: e = put(f, v->snapshot.driver); break;
	case DRIVER_VERSION: e = put(f, v->snapshot.nvidia_version); break;
	case CUDA_VERSION: e = put_cuda_version(f, v->snapshot.driver_version); break;
	case GPUS: e = v->known ? put_number(f, v->snapshot.count) : -ENOENT; break;
	case SERVER_SESSIONS: e = v->known ? put_number(f, v->snapshot.sessions) : -ENOENT; break;
	}
	monitor_unlock(tree.monitors[server]);
	return e;
}

static int show_server_address(FILE *f, unsigned i) { return put(f, monitor_address(tree.monitors[i])); }
static int show_server_status(FILE *f, unsigned i) { return show_server(f, i, STATUS); }
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
	struct place p;
	if (!gpu_get(number, &g, &p))
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
	case WHERE: return put(f, monitor_address(tree.monitors[p.server]));
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
	struct place p;
	return gpu_place(n, &p) ? show_server(f, p.server, DRIVER_VERSION) : -ENOENT;
}

static int show_gpu_cuda_version(FILE *f, unsigned n)
{
	struct place p;
	return gpu_place(n, &p) ? show_server(f, p.server, CUDA_VERSION) : -ENOENT;
}

/* What the server tells of a GPU besides (wire/values.h). */
static int show_gpu_number(FILE *f, unsigned number, enum gpu_number what)
{
	struct gpu g;
	struct place p;
	if (!gpu_get(number, &g, &p) || g.number[what] < 0)
		return -ENOENT;
	return put_number(f, (uint64_t)g.number[what]);
}

static int show_gpu_word(FILE *f, unsigned number, enum gpu_word what)
{
	struct gpu g;
	struct place p;
	return gpu_get(number, &g, &p) ? put(f, g.word[what]) : -ENOENT;
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
	struct place p;
	if (!gpu_get(number, &g, &p) || !g.listed)
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
COUNTER(posts) COUNTER(reconnects)

#define SESSION_VALUE(name, print) \
	static int show_session_##name(FILE *f, unsigned id) \
	{ \
		struct relay_info i; \
		return relay_info(id, &i) ? print(f, i.name) : -ENOENT; \
	}
static int put_pid(FILE *f, pid_t pid) { return pid > 0 ? put_number(f, (uint64_t)pid) : -ENOENT; }
SESSION_VALUE(pid, put_pid) SESSION_VALUE(command, put) SESSION_VALUE(bytes_in, put_number)
SESSION_VALUE(bytes_out, put_number) SESSION_VALUE(waits, put_number)

static int show_json(FILE *f, unsigned object);

/* ---- the table ---- */

static const struct entry {
	enum folder in;
	const char *name;
	int (*show)(FILE *f, unsigned object);  /* NULL: a folder, or the session node */
	enum folder folder;                     /* ROOT: the session node */
} entries[] = {
	{ROOT, "version", show_version, 0},
	{ROOT, "protocol", show_protocol, 0},
	{ROOT, "status", show_status, 0},
	{ROOT, "status.json", show_json, 0},
	{ROOT, "servers", NULL, SERVERS},
	{ROOT, "by-uuid", NULL, BY_UUID},
	{ROOT, "stats", NULL, STATS},
	{ROOT, "sessions", NULL, SESSIONS},
	{ROOT, CTL_NAME, NULL, ROOT},
	{SERVER, "status", show_server_status, 0},
	{SERVER, "address", show_server_address, 0},
	{SERVER, "rtt_us", show_server_rtt, 0},
	{SERVER, "tls", show_server_tls, 0},
	{SERVER, "driver", show_server_driver, 0},
	{SERVER, "driver_version", show_server_driver_version, 0},
	{SERVER, "cuda_version", show_server_cuda_version, 0},
	{SERVER, "gpus", show_server_gpus, 0},
	{SERVER, "sessions", show_server_sessions, 0},
	{SERVER, CTL_NAME, NULL, ROOT},
	{GPU, "name", show_gpu_name, 0},
	{GPU, "uuid", show_gpu_uuid, 0},
	{GPU, "compute_capability", show_gpu_capability, 0},
	{GPU, "multiprocessors", show_gpu_multiprocessors, 0},
	{GPU, "pci_bus_id", show_gpu_bus, 0},
	{GPU, "driver_version", show_gpu_driver_version, 0},
	{GPU, "cuda_version", show_gpu_cuda_version, 0},
	{GPU, "memory", NULL, MEMORY},
	{GPU, "utilization", NULL, UTILIZATION},
	{GPU, "temperature", NULL, TEMPERATURE},
	{GPU, "power", NULL, POWER},
	{GPU, "clocks", NULL, CLOCKS},
	{GPU, "pcie", NULL, PCIE},
	{GPU, "ecc", NULL, ECC},
	{GPU, "sessions", show_gpu_sessions, 0},
	{GPU, "server", show_gpu_server, 0},
	{GPU, "remote_index", show_gpu_index, 0},
	{GPU, "information", show_gpu_information, 0},
	{MEMORY, "total", show_memory_total, 0},
	{MEMORY, "used", show_memory_used, 0},
	{MEMORY, "free", show_memory_free, 0},
#define VALUE(id, folder, path, file) {folder, file, show_##id, 0},
	GPU_NUMBERS(VALUE)
	GPU_WORDS(VALUE)
#undef VALUE
	{STATS, "sessions", show_sessions, 0},
	{STATS, "frames_out", show_frames_out, 0},
	{STATS, "frames_in", show_frames_in, 0},
	{STATS, "bytes_out", show_bytes_out, 0},
	{STATS, "bytes_in", show_bytes_in, 0},
	{STATS, "waits", show_waits, 0},
	{STATS, "posts", show_posts, 0},
	{STATS, "reconnects", show_reconnects, 0},
	{SESSION, "pid", show_session_pid, 0},
	{SESSION, "command", show_session_command, 0},
	{SESSION, "bytes_in", show_session_bytes_in, 0},
	{SESSION, "bytes_out", show_session_bytes_out, 0},
	{SESSION, "waits", show_session_waits, 0},
};
#define ENTRIES (sizeof(entries) / sizeof(*entries))

/* The entry of a value's node. */
static const struct entry *entry_of(uint64_t node)
{
	unsigned i = low_of(node) - FIRST;
	if (low_of(node) < FIRST || i >= ENTRIES || !entries[i].show || entries[i].in != folder_of(node))
		return NULL;
	return &entries[i];
}

static uint64_t entry_node(uint64_t folder, const struct entry *e)
{
	unsigned server = folder_of(folder) == SERVER ? object_of(folder) : SESSION_DEFAULT;
	if (e->show)
		return node_of(e->in, object_of(folder), (unsigned)(e - entries) + FIRST);
	if (e->folder != ROOT)
		return node_of(e->folder, object_of(folder), FOLDER);
	return SESSION_NODE | (uint64_t)server << 48 | (atomic_fetch_add(&tree.opened, 1) & 0xffffffffffff);
}

static bool is_folder(uint64_t node)
{
	return !(node & SESSION_NODE) && low_of(node) == FOLDER && folder_of(node) <= SESSION;
}

/* Is anything known of what the folder is about? */
static bool has_values(enum folder folder, const struct gpu *g)
{
	bool any = false;
#define ANY_NUMBER(id, in, path, file) any |= in == folder && g->number[VALUE_##id] >= 0;
#define ANY_WORD(id, in, path, file) any |= in == folder && *g->word[VALUE_##id];
	GPU_NUMBERS(ANY_NUMBER)
	GPU_WORDS(ANY_WORD)
	return any;
}

static bool folder_exists(uint64_t node)
{
	struct place p;
	struct gpu g;
	struct relay_info s;
	switch (folder_of(node)) {
	case SERVER: return object_of(node) < tree.count;
	case GPU:
	case MEMORY: return gpu_get(object_of(node), &g, &p);
	case UTILIZATION:
	case TEMPERATURE:
	case POWER:
	case CLOCKS:
	case PCIE:
	case ECC: return gpu_get(object_of(node), &g, &p) && has_values(folder_of(node), &g);
	case SESSION: return relay_info(object_of(node), &s);
	default: return object_of(node) == 0;
	}
}

/* ---- lookup and listing ---- */

static bool parse_number(const char *s, unsigned *n)
{
	char back[16];
	if (sscanf(s, "%9u", n) != 1)
		return false;
	snprintf(back, sizeof(back), "%u", *n);
	return !strcmp(s, back);
}

static uint64_t lookup_object(uint64_t folder, const char *name)
{
	struct gpu g;
	struct place p;
	unsigned n;
	uint64_t node = 0;
	switch (folder_of(folder)) {
	case ROOT:
		if (!strncmp(name, "gpu", 3) && parse_number(name + 3, &n))
			node = node_of(GPU, n, FOLDER);
		break;
	case SESSIONS:
		if (parse_number(name, &n))
			node = node_of(SESSION, n, FOLDER);
		break;
	case SERVERS:
		for (n = 0; n < tree.count; n++)
			if (!strcmp(name, tree.names[n]))
				node = node_of(SERVER, n, FOLDER);
		break;
	case BY_UUID:
		/* a GPU that two servers offer is found at its first number */
		for (n = 0; *name && n < number_gpus(); n++)
			if (gpu_get(n, &g, &p) && !strcmp(g.uuid, name))
				return node_of(BY_UUID, n, LINK);
		break;
	default:
		break;
	}
	return node && folder_exists(node) ? node : 0;
}

/* Does an entry of the table have a value now? The object of everything always has. */
static bool present(const struct entry *e, uint64_t node)
{
	struct stat st;
	return e->show == show_json || !tree_stat(node, &st);
}

uint64_t tree_lookup(uint64_t folder, const char *name)
{
	if (!is_folder(folder) || !folder_exists(folder))
		return 0;
	for (const struct entry *e = entries; e < entries + ENTRIES; e++)
		if (e->in == folder_of(folder) && !strcmp(e->name, name)) {
			uint64_t node = entry_node(folder, e);
			return present(e, node) ? node : 0;
		}
	return lookup_object(folder, name);
}

uint64_t tree_parent(uint64_t node)
{
	switch (folder_of(node)) {
	case SERVER: return node_of(SERVERS, 0, FOLDER);
	case SESSION: return node_of(SESSIONS, 0, FOLDER);
	case MEMORY:
	case UTILIZATION:
	case TEMPERATURE:
	case POWER:
	case CLOCKS:
	case PCIE:
	case ECC: return node_of(GPU, object_of(node), FOLDER);
	default: return TREE_ROOT;
	}
}

static int list_objects(uint64_t folder, bool (*each)(void *arg, const char *name, uint64_t node), void *arg)
{
	char name[64];
	struct gpu g;
	struct place p;
	unsigned ids[64], n, last = 0;
	enum folder f = folder_of(folder);
	if (f == ROOT || f == BY_UUID)
		for (unsigned i = 0; i < number_gpus(); i++) {
			uint64_t link = node_of(BY_UUID, i, LINK);
			if (!gpu_get(i, &g, &p) || (f == BY_UUID && lookup_object(folder, g.uuid) != link))
				continue;
			snprintf(name, sizeof(name), "gpu%u", i);
			if (!each(arg, f == ROOT ? name : g.uuid, f == ROOT ? node_of(GPU, i, FOLDER) : link))
				return 0;
		}
	if (f == SERVERS)
		for (unsigned i = 0; i < tree.count; i++)
			if (!each(arg, tree.names[i], node_of(SERVER, i, FOLDER)))
				return 0;
	while (f == SESSIONS && (n = relay_list(last, ids, 64)))
		for (unsigned i = 0; i < n; i++) {
			last = ids[i];
			snprintf(name, sizeof(name), "%u", last);
			if (!each(arg, name, node_of(SESSION, last, FOLDER)))
				return 0;
		}
	return 0;
}

int tree_list(uint64_t folder, bool (*each)(void *arg, const char *name, uint64_t node), void *arg)
{
	if (!is_folder(folder))
		return -ENOTDIR;
	if (!folder_exists(folder))
		return -ENOENT;
	for (const struct entry *e = entries; e < entries + ENTRIES; e++) {
		if (e->in != folder_of(folder))
			continue;
		uint64_t node = entry_node(folder, e);
		if (present(e, node) && !each(arg, e->name, node))
			return 0;
	}
	return list_objects(folder, each, arg);
}

/* ---- attributes and contents ---- */

bool tree_is_session(uint64_t node, unsigned *server)
{
	if (!(node & SESSION_NODE))
		return false;
	*server = (node >> 48) & 0x3ff;
	for (unsigned i = 0; *server == SESSION_DEFAULT && i < tree.count; i++) {
		if (monitor_lock(tree.monitors[i])->state == MONITOR_READY)
			*server = i;
		monitor_unlock(tree.monitors[i]);
	}
	if (*server >= tree.count)
		*server = 0;
	return true;
}

double tree_validity(uint64_t node)
{
	enum folder f = folder_of(node);
	bool lasting = f == ROOT || f == SERVERS || f == SERVER || f == STATS || f == BY_UUID;
	return is_folder(node) && lasting ? 1 : 0;
}

const char *tree_server_address(unsigned server)
{
	return monitor_address(tree.monitors[server]);
}

int tree_stat_type(uint64_t node, struct stat *st)
{
	*st = (struct stat){.st_ino = node, .st_nlink = 1, .st_uid = tree.owner, .st_gid = tree.group,
		.st_atim = tree.start, .st_mtim = tree.start, .st_ctim = tree.start, .st_blksize = 4096};
	if (node & SESSION_NODE)
		st->st_mode = S_IFREG | 0666;
	else if (is_folder(node))
		st->st_mode = S_IFDIR | 0555;
	else if (low_of(node) == LINK)
		st->st_mode = S_IFLNK | 0777;
	else if (entry_of(node))
		st->st_mode = S_IFREG | 0444;
	else
		return -ENOENT;
	return 0;
}

int tree_stat(uint64_t node, struct stat *st)
{
	struct relay_info s;
	char *text;
	size_t n;
	if (tree_stat_type(node, st))
		return -ENOENT;
	if (node & SESSION_NODE) {
		st->st_size = CTL_SIZE;
		return 0;
	}
	if (folder_of(node) == SESSION && relay_info(object_of(node), &s))
		st->st_uid = s.uid;
	if (is_folder(node)) {
		st->st_nlink = 2;
		return folder_exists(node) ? 0 : -ENOENT;
	}
	int e = tree_read(node, &text, &n);
	if (e)
		return e;
	free(text);
	st->st_size = (off_t)n;
	return 0;
}

int tree_read(uint64_t node, char **text, size_t *len)
{
	const struct entry *e = entry_of(node);
	struct place p;
	*text = NULL;
	if ((node & SESSION_NODE) || (!e && low_of(node) != LINK))
		return -ENOENT;
	if (e && !folder_exists(node_of(e->in, object_of(node), FOLDER)))
		return -ENOENT;
	FILE *f = open_memstream(text, len);
	if (!f)
		return -ENOMEM;
	int r = 0;
	if (e)
		r = e->show(f, object_of(node));
	else if (gpu_place(object_of(node), &p))
		fprintf(f, "../gpu%u", object_of(node));
	else
		r = -ENOENT;
	if (fclose(f) && !r)
		r = -ENOMEM;
	if (r) {
		free(*text);
		*text = NULL;
	}
	return r;
}

/* ---- the whole tree as one object ---- */

static bool all_digits(const char *s)
{
	return *s && strlen(s) <= 18 && !s[strspn(s, "0123456789")];
}

/* Values that are words even when they happen to be all digits. */
static bool is_word(const struct entry *e)
{
	return e && (e->show == show_gpu_name || e->show == show_session_command || e->show == show_gpu_sessions ||
		e->show == show_SERIAL || e->show == show_VBIOS_VERSION);
}

static bool add_json(void *arg, const char *name, uint64_t node)
{
	json_t *value = NULL;
	const struct entry *e = entry_of(node);
	char *text;
	size_t n;
	if ((node & SESSION_NODE) || (e && e->show == show_json))
		return true;
	if (is_folder(node)) {
		value = json_object();
		tree_list(node, add_json, value);
	} else if (!tree_read(node, &text, &n)) {
		if (n && text[n - 1] == '\n')
			text[n - 1] = '\0';
		bool number = all_digits(text) && !is_word(e);
		value = number ? json_integer(atoll(text)) : json_string(text);
		free(text);
	}
	if (value)
		json_object_set_new(arg, name, value);
	return true;
}

static int show_json(FILE *f, unsigned object)
{
	json_t *root = json_object();
	(void)object;
	if (!root)
		return -ENOMEM;
	tree_list(TREE_ROOT, add_json, root);
	int e = json_dumpf(root, f, JSON_INDENT(2)) ? -ENOMEM : 0;
	fputc('\n', f);
	json_decref(root);
	return e;
}

/* ---- life ---- */

/* The folder's name of a server: its host, with the port when two have the same, with a number when that
 * is not enough. */
static void name_server(unsigned i)
{
	char host[LIMIT_NAME + 1];
	const char *address = monitor_address(tree.monitors[i]);
	snprintf(host, sizeof(host), "%s", *address == '[' ? address + 1 : address);
	char *end = *address == '[' ? strchr(host, ']') : strrchr(host, ':');
	if (end && strncmp(address, "unix:", 5))
		*end = '\0';
	text_name(tree.names[i], host);
	for (unsigned attempt = 0, j = 0; j < i; j++)
		if (!strcmp(tree.names[j], tree.names[i])) {
			text_name(tree.names[i], address);
			if (attempt++)
				snprintf(tree.names[i] + strlen(tree.names[i]), 12, "-%u", i);
			j = (unsigned)-1;
			if (attempt > 2)
				break;
		}
}

int tree_init(struct monitor *const *monitors, unsigned count, uid_t owner, gid_t group)
{
	if (!count || count > MOUNT_SERVERS)
		return -EINVAL;
	tree.monitors = monitors;
	tree.count = count;
	tree.owner = owner;
	tree.group = group;
	clock_gettime(CLOCK_REALTIME, &tree.start);
	for (unsigned i = 0; i < count; i++)
		name_server(i);
	number_gpus();
	return 0;
}

void tree_finish(void)
{
	tree.count = tree.gpu_count = 0;
	memset(tree.numbered, 0, sizeof(tree.numbered));
}
