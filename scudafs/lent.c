/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to the host out of memory that the server lends (wire/frame.h, Lent memory): what the session's
 * thread puts in place for the program (receive.c) is copied from there, and the server told when it is.
 *
 * Thread rule: see relay_state.h. second.c's thread takes the memory, ahead of the first byte there; from
 * then on it is the session's thread's. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "scudafs/guard.h"
#include "wire/lending.h"

bool lent_take(struct relay *r, uint64_t size, int fd)
{
	struct lent *l = &r->lent;
	const char *why = "its size, or no descriptor came";
	const uint8_t *memory = fd >= 0 && size <= LIMIT_LENT ? lending_map(fd, size, &why) : NULL;
	if (memory && !(l->guard = guard_add((void *)memory, size))) {
		munmap((void *)memory, size);
		memory = NULL;
		why = "no memory";
	}
	if (!memory) {
		log_info("session %u takes none of the memory that %s lends: %s", r->id, r->address, why);
		return false;
	}
	l->size = size;
	atomic_store(&l->memory, memory);
	return true;
}

void lent_finish(struct relay *r)
{
	struct lent *l = &r->lent;
	guard_drop(l->guard);
	if (l->memory)
		munmap((void *)l->memory, l->size);
}

const uint8_t *lent_at(const struct relay *r, uint64_t at, uint64_t n)
{
	const struct lent *l = &r->lent;
	const uint8_t *memory = atomic_load(&l->memory);
	if (memory && at <= l->size && n <= l->size - at)
		return memory + at;
	log_warning("session %u: %s lends bytes where it has none", r->id, r->address);
	return NULL;
}

int lent_taken(struct relay *r, uint64_t n)
{
	struct lent *l = &r->lent;
	uint64_t count = ++l->taken;
	struct iovec v = {&count, sizeof(count)};
	if (guard_is_broken(l->guard)) {
		log_warning("session %u: a page of the memory that %s lends is missing", r->id, r->address);
		return EPROTO;
	}
	atomic_fetch_add_explicit(&r->bytes_lent, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.bytes_lent, n, memory_order_relaxed);
	/* There is room for all that it may lend us before it reads this. */
	ssize_t sent = stream_writev(r->lend.stream, &v, 1);
	if (sent == (ssize_t)sizeof(count))
		return 0;
	log_warning("session %u: the second connection: %s", r->id,
		sent == -EAGAIN || sent > 0 ? "nobody reads what is said" : strerror((int)-sent));
	return sent == -EAGAIN || sent > 0 ? EPROTO : ECONNRESET;
}
