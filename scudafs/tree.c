/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes. A node's number is made of its folder's kind, the object that the folder is about (a
 * server, a GPU, a session) and its place in the table of entries (tree_values.h).
 *
 * Thread rule: constant after tree_init, but for the count of session nodes. */
#include "scudafs/tree.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "scudafs/inventory.h"
#include "scudafs/relay.h"
#include "scudafs/tree_values.h"
#include "wire/ctl.h"

#define FOLDER 1                    /* the low byte of a folder's own number */
#define LINK 0xff                   /* of a link to the GPU `object` */
#define SOCKET 0xfe                 /* of the socket of session `object` */
#define IDLE 0xfd                   /* what ctl is called where nobody uses it */
#define FIRST 2                     /* of the first entry of the table */
#define SESSION_NODE (1ull << 60)
#define HANDLE_NODE (1ull << 61)    /* a file for a shared handle */
#define LEAF_NODE (SESSION_NODE | HANDLE_NODE)
#define SESSION_DEFAULT 0x3ff       /* the root's: whichever server is ready */

static struct {
	uid_t owner;
	gid_t group;
	struct timespec start;
	atomic_ullong opened;           /* session and handle nodes given out */
} tree;

static uint64_t node_of(enum folder f, uint64_t object, unsigned low)
{
	return (uint64_t)f << 48 | object << 8 | low;
}
static enum folder folder_of(uint64_t node) { return (enum folder)(node >> 48); }
static unsigned object_of(uint64_t node) { return (unsigned)(node >> 8); }
static unsigned low_of(uint64_t node) { return node & 0xff; }

const struct entry *tree_entry(uint64_t node)
{
	unsigned i = low_of(node) - FIRST;
	if (low_of(node) < FIRST || i >= tree_entry_count || !tree_entries[i].show ||
		tree_entries[i].in != folder_of(node))
		return NULL;
	return &tree_entries[i];
}

static uint64_t entry_node(uint64_t folder, const struct entry *e)
{
	unsigned server = folder_of(folder) == SERVER ? object_of(folder) : SESSION_DEFAULT;
	if (e->show)
		return node_of(e->in, object_of(folder), (unsigned)(e - tree_entries) + FIRST);
	if (e->folder != ROOT)
		return node_of(e->folder, object_of(folder), FOLDER);
	return SESSION_NODE | (uint64_t)server << 48 | (atomic_fetch_add(&tree.opened, 1) & 0xffffffffffff);
}

bool tree_is_folder(uint64_t node)
{
	return !(node & LEAF_NODE) && low_of(node) == FOLDER && folder_of(node) <= SESSION;
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
	struct gpu_place p;
	struct gpu g;
	struct relay_info s;
	switch (folder_of(node)) {
	case SERVER: return object_of(node) < inventory.count;
	case GPU:
	case MEMORY: return inventory_gpu(object_of(node), &g, &p);
	case UTILIZATION:
	case TEMPERATURE:
	case POWER:
	case CLOCKS:
	case PCIE:
	case ECC: return inventory_gpu(object_of(node), &g, &p) && has_values(folder_of(node), &g);
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

bool tree_socket(uint64_t folder, const char *name, unsigned *session)
{
	char number[16];
	size_t n = strcspn(name, ".");
	if (folder_of(folder) != SESSIONS || !tree_is_folder(folder) || strcmp(name + n, ".channel") ||
		n >= sizeof(number))
		return false;
	memcpy(number, name, n);
	number[n] = '\0';
	return parse_number(number, session);
}

static uint64_t lookup_object(uint64_t folder, const char *name)
{
	struct gpu g;
	struct gpu_place p;
	unsigned n;
	uint64_t node = 0;
	switch (folder_of(folder)) {
	case ROOT:
		if (!strncmp(name, "gpu", 3) && parse_number(name + 3, &n))
			node = node_of(GPU, n, FOLDER);
		break;
	case SESSIONS:
		if (tree_socket(folder, name, &n))
			return relay_has_socket(n) ? node_of(SESSION, n, SOCKET) : 0;
		if (parse_number(name, &n))
			node = node_of(SESSION, n, FOLDER);
		break;
	case SERVERS:
		for (n = 0; n < inventory.count; n++)
			if (!strcmp(name, inventory.names[n]))
				node = node_of(SERVER, n, FOLDER);
		break;
	case BY_UUID:
		/* a GPU that two servers offer is found at its first number */
		for (n = 0; *name && n < inventory_gpus(); n++)
			if (inventory_gpu(n, &g, &p) && !strcmp(g.uuid, name))
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
	return e->show == tree_show_json || !tree_stat(node, &st);
}

/* A fresh file for a handle of the session that has the node open which the name tells. */
static uint64_t lookup_handle(uint64_t folder, const char *name)
{
	unsigned long long session;
	unsigned server;
	char back[24];
	if ((folder_of(folder) != ROOT && folder_of(folder) != SERVER) ||
		sscanf(name, "%16llx", &session) != 1)
		return 0;
	snprintf(back, sizeof(back), "%llx", session);
	if (strcmp(name, back) || !(session & SESSION_NODE) || !relay_server(session, &server))
		return 0;
	return HANDLE_NODE | (uint64_t)server << 48 | (atomic_fetch_add(&tree.opened, 1) & 0xffffffffffff);
}

uint64_t tree_lookup(uint64_t folder, const char *name)
{
	if (!tree_is_folder(folder) || !folder_exists(folder))
		return 0;
	for (const struct entry *e = tree_entries; e < tree_entries + tree_entry_count; e++)
		if (e->in == folder_of(folder) && !strcmp(e->name, name)) {
			uint64_t node = entry_node(folder, e);
			return present(e, node) ? node : 0;
		}
	if (!strncmp(name, CTL_HANDLE, strlen(CTL_HANDLE)))
		return lookup_handle(folder, name + strlen(CTL_HANDLE));
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
	struct gpu_place p;
	unsigned ids[64], n, last = 0;
	enum folder f = folder_of(folder);
	if (f == ROOT || f == BY_UUID)
		for (unsigned i = 0; i < inventory_gpus(); i++) {
			uint64_t link = node_of(BY_UUID, i, LINK);
			if (!inventory_gpu(i, &g, &p))
				continue;
			if (f == BY_UUID && lookup_object(folder, g.uuid) != link)
				continue;
			snprintf(name, sizeof(name), "gpu%u", i);
			if (!each(arg, f == ROOT ? name : g.uuid, f == ROOT ? node_of(GPU, i, FOLDER) : link))
				return 0;
		}
	if (f == SERVERS)
		for (unsigned i = 0; i < inventory.count; i++)
			if (!each(arg, inventory.names[i], node_of(SERVER, i, FOLDER)))
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
	if (!tree_is_folder(folder))
		return -ENOTDIR;
	if (!folder_exists(folder))
		return -ENOENT;
	for (const struct entry *e = tree_entries; e < tree_entries + tree_entry_count; e++) {
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
	for (unsigned i = 0; *server == SESSION_DEFAULT && i < inventory.count; i++) {
		if (monitor_lock(inventory.monitors[i])->state == MONITOR_READY)
			*server = i;
		monitor_unlock(inventory.monitors[i]);
	}
	if (*server >= inventory.count)
		*server = 0;
	return true;
}

bool tree_is_handle(uint64_t node, unsigned *server)
{
	*server = (node >> 48) & 0x3ff;
	return node & HANDLE_NODE && *server < inventory.count;
}

double tree_validity(uint64_t node)
{
	enum folder f = folder_of(node);
	bool lasting = f == ROOT || f == SERVERS || f == SERVER || f == STATS || f == BY_UUID;
	return tree_is_folder(node) && lasting ? 1 : 0;
}

const char *tree_server_address(unsigned server)
{
	return monitor_address(inventory.monitors[server]);
}

struct monitor *tree_monitor(unsigned server)
{
	return inventory.monitors[server];
}

/* Each lookup of ctl is a node of its own, which a program that walks the tree must not notice: until it
 * is used as a session, the file is empty and has one number. */
static bool is_idle(uint64_t node)
{
	return node & SESSION_NODE && !relay_is_used(node);
}

static uint64_t idle_number(uint64_t node)
{
	unsigned server = (node >> 48) & SESSION_DEFAULT;
	return server == SESSION_DEFAULT ? node_of(ROOT, 0, IDLE) : node_of(SERVER, server, IDLE);
}

int tree_stat_type(uint64_t node, struct stat *st)
{
	*st = (struct stat){.st_ino = node, .st_nlink = 1, .st_uid = tree.owner, .st_gid = tree.group,
		.st_atim = tree.start, .st_mtim = tree.start, .st_ctim = tree.start, .st_blksize = 4096};
	if (is_idle(node))
		st->st_ino = idle_number(node);
	if (node & LEAF_NODE)
		st->st_mode = S_IFREG | 0666;
	else if (tree_is_folder(node))
		st->st_mode = S_IFDIR | (folder_of(node) == SESSIONS ? 0755 : 0555);    /* for the sockets */
	else if (folder_of(node) == SESSION && low_of(node) == SOCKET)
		st->st_mode = S_IFSOCK | 0666;
	else if (low_of(node) == LINK)
		st->st_mode = S_IFLNK | 0777;
	else if (tree_entry(node))
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
	if (node & LEAF_NODE) {
		if (node & HANDLE_NODE)
			st->st_size = (off_t)sizeof(struct ctl_handle);
		else
			st->st_size = is_idle(node) ? 0 : CTL_SIZE;
		return 0;
	}
	if (folder_of(node) == SESSION && relay_info(object_of(node), &s))
		st->st_uid = s.uid;
	if (folder_of(node) == SESSION && low_of(node) == SOCKET)
		return relay_has_socket(object_of(node)) ? 0 : -ENOENT;
	if (tree_is_folder(node))       /* one link: its folders are not counted */
		return folder_exists(node) ? 0 : -ENOENT;
	int e = tree_read(node, &text, &n);
	if (e)
		return e;
	free(text);
	st->st_size = (off_t)n;
	return 0;
}

int tree_read(uint64_t node, char **text, size_t *len)
{
	const struct entry *e = tree_entry(node);
	struct gpu_place p;
	*text = NULL;
	if ((node & LEAF_NODE) || (!e && low_of(node) != LINK))
		return -ENOENT;
	if (e && !folder_exists(node_of(e->in, object_of(node), FOLDER)))
		return -ENOENT;
	FILE *f = open_memstream(text, len);
	if (!f)
		return -ENOMEM;
	int r = 0;
	if (e)
		r = e->show(f, object_of(node));
	else if (inventory_place(object_of(node), &p))
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

/* ---- life ---- */

int tree_init(struct monitor *const *monitors, unsigned count, uid_t owner, gid_t group)
{
	tree.owner = owner;
	tree.group = group;
	clock_gettime(CLOCK_REALTIME, &tree.start);
	return inventory_init(monitors, count);
}

void tree_finish(void)
{
	inventory_finish();
}
