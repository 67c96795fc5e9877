/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the mount's sessions: what is found by a number or a node, what the tree shows of it, and the
 * end of all of them with the daemon's.
 *
 * Thread rule: any thread. The table has its own lock, taken before a relay's. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>
#include "scudafs/answerer.h"
#include "wire/deadline.h"

static atomic_uint last_id;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct relay *list;
	unsigned threads;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

void sessions_add(struct relay *r)
{
	pthread_mutex_lock(&table.lock);
	table.threads++;
	struct relay **at = &table.list;
	while (*at)
		at = &(*at)->next;
	*at = r;
	pthread_mutex_unlock(&table.lock);
}

void sessions_remove(struct relay *r)
{
	pthread_mutex_lock(&table.lock);
	struct relay **at = &table.list;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	pthread_mutex_unlock(&table.lock);
}

void sessions_thread_ended(void)
{
	pthread_mutex_lock(&table.lock);
	table.threads--;
	pthread_cond_broadcast(&table.ended);
	pthread_mutex_unlock(&table.lock);
}

struct relay *sessions_find(unsigned id)
{
	pthread_mutex_lock(&table.lock);
	struct relay *r = table.list;
	while (r && r->id != id)
		r = r->next;
	if (r)
		relay_ref(r);
	pthread_mutex_unlock(&table.lock);
	return r;
}

unsigned relay_new_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

/* ---- what the tree shows ---- */

bool relay_has_socket(unsigned id)
{
	struct relay *r = sessions_find(id);
	bool has = r && atomic_load(&r->socket) == SOCKET_THERE;
	relay_unref(r);
	return has;
}

bool relay_make_socket(unsigned id)
{
	struct relay *r = sessions_find(id);
	int coming = SOCKET_COMING;
	bool made = r && atomic_compare_exchange_strong(&r->socket, &coming, SOCKET_THERE);
	relay_unref(r);
	return made;
}

unsigned relay_id(const struct relay *r)
{
	return r->id;
}

bool relay_server(uint64_t node, unsigned *server)
{
	pthread_mutex_lock(&table.lock);
	const struct relay *r = table.list;
	while (r && r->node != node)
		r = r->next;
	if (r)
		*server = r->server;
	pthread_mutex_unlock(&table.lock);
	return r;
}

bool relay_is_used(uint64_t node)
{
	pthread_mutex_lock(&table.lock);
	struct relay *r = table.list;
	while (r && r->node != node)
		r = r->next;
	bool used = false;
	if (r) {
		pthread_mutex_lock(&r->lock);
		used = r->asked || r->batch;
		pthread_mutex_unlock(&r->lock);
	}
	pthread_mutex_unlock(&table.lock);
	return used;
}

bool relay_info(unsigned id, struct relay_info *out)
{
	struct relay *r = sessions_find(id);
	if (!r)
		return false;
	*out = (struct relay_info){.id = id,
		.pid = r->pid,
		.uid = r->uid,
		.bytes_out = atomic_load(&r->bytes_out),
		.bytes_in = atomic_load(&r->bytes_in),
		.bytes_lent = atomic_load(&r->bytes_lent),
		.waits = atomic_load(&r->waits)};
	memcpy(out->command, r->command, sizeof(out->command));
	relay_unref(r);
	return true;
}

unsigned relay_list(unsigned after, unsigned *ids, unsigned max)
{
	unsigned n = 0;
	pthread_mutex_lock(&table.lock);
	for (struct relay *r = table.list; r && n < max; r = r->next)
		if (r->id > after)
			ids[n++] = r->id;
	pthread_mutex_unlock(&table.lock);
	return n;
}

/* ---- the end of the daemon ---- */

bool relay_end_all(int timeout_ms)
{
	unsigned ids[64], last = 0;
	for (unsigned n; (n = relay_list(last, ids, 64));) {
		for (unsigned i = 0; i < n; i++) {
			struct relay *r = sessions_find(ids[i]);
			struct answers a;
			if (!r)
				continue;
			answers_init(&a);
			pthread_mutex_lock(&r->lock);
			relay_fail(r, ESHUTDOWN, &a);
			pthread_mutex_unlock(&r->lock);
			answers_send(&a);
			relay_unref(r);
		}
		last = ids[n - 1];
	}
	struct timespec end = deadline_in(timeout_ms);
	pthread_mutex_lock(&table.lock);
	while (table.threads && !pthread_cond_clockwait(&table.ended, &table.lock, CLOCK_MONOTONIC, &end))
		;
	bool done = !table.threads;
	pthread_mutex_unlock(&table.lock);
	answerer_finish();
	return done;
}
