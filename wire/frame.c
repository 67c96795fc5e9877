/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame header may say, by direction. Both ends check every header here before they look at
 * anything behind it.
 *
 * Thread rule: pure functions. */
#include "wire/frame.h"

#include <errno.h>

#include "wire/limits.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames travel as they lie in memory");

/* What each kind may carry. */
static const struct kind {
	const char *name;
	bool to_server, from_server;
	uint32_t head;
	uint64_t bulk;
	uint32_t flags;
} kinds[FRAME_KINDS] = {
	[FRAME_HELLO] = {"HELLO", true, false, LIMIT_HEAD, 0, FRAME_PTDS},
	[FRAME_POST] = {"POST", true, false, LIMIT_HEAD, LIMIT_BULK,
		FRAME_PTDS | FRAME_ASIDE | FRAME_STRIPED | FRAME_LENT},
	[FRAME_WAIT] = {"WAIT", true, false, LIMIT_HEAD, LIMIT_BULK,
		FRAME_PTDS | FRAME_PACE | FRAME_ASIDE | FRAME_STRIPED | FRAME_LENT},
	[FRAME_THREAD_END] = {"THREAD_END", true, false, 0, 0, FRAME_PTDS},
	[FRAME_UPCALL_DONE] = {"UPCALL_DONE", true, false, 0, 0, 0},
	[FRAME_PING] = {"PING", true, false, 0, 0, 0},
	[FRAME_PONG] = {"PONG", false, true, 0, 0, 0},
	[FRAME_REPLY] = {"REPLY", false, true, LIMIT_HEAD, LIMIT_REPLY, FRAME_MORE | FRAME_CHANGED},
	[FRAME_DATA] = {"DATA", false, true, 0, LIMIT_REPLY, FRAME_STRIPED | FRAME_LENT},
	[FRAME_UPCALL] = {"UPCALL", false, true, LIMIT_UPCALL - sizeof(struct frame),
		LIMIT_UPCALL - sizeof(struct frame), 0},
	[FRAME_OUTPUT] = {"OUTPUT", false, true, 0, LIMIT_UPCALL - sizeof(struct frame),
		FRAME_STDERR | FRAME_LOG},
	[FRAME_BYE] = {"BYE", false, true, LIMIT_HEAD, 0, 0},
	[FRAME_GET_SNAPSHOT] = {"GET_SNAPSHOT", true, false, 0, 0, 0},
	[FRAME_SNAPSHOT] = {"SNAPSHOT", false, true, LIMIT_SNAPSHOT, 0, 0},
	[FRAME_KEEP] = {"KEEP", true, false, 0, 0, 0},
	[FRAME_KEPT] = {"KEPT", false, true, 0, 0, 0},
	[FRAME_DROP] = {"DROP", true, false, 0, 0, 0},
	[FRAME_SECOND] = {"SECOND", true, true, 0, 0, 0},
};

const char *frame_kind_name(unsigned kind)
{
	return kind < FRAME_KINDS && kinds[kind].name ? kinds[kind].name : "unknown";
}

static int refuse(const char **why, const char *text)
{
	if (why)
		*why = text;
	return -EPROTO;
}

int frame_check(const struct frame *f, bool to_server, const char **why)
{
	const struct kind *k = &kinds[f->kind < FRAME_KINDS ? f->kind : 0];
	bool record = f->kind >= FRAME_HELLO && f->kind <= FRAME_THREAD_END;

	if (!k->name)
		return refuse(why, "unknown frame kind");
	if (to_server ? !k->to_server : !k->from_server)
		return refuse(why, "frame of the other direction");
	if (f->head_len > k->head)
		return refuse(why, "head too long");
	if (f->bulk_len > k->bulk)
		return refuse(why, "bulk too long");
	if (f->kind == FRAME_UPCALL && f->head_len + f->bulk_len > LIMIT_UPCALL - sizeof *f)
		return refuse(why, "upcall too long");
	if (f->flags & ~k->flags)
		return refuse(why, "unknown flags");
	if (f->flags & FRAME_STRIPED && f->flags & FRAME_ASIDE)
		return refuse(why, "a striped record that may go ahead");
	if (frame_is_lent(f) && f->flags & (FRAME_ASIDE | FRAME_STRIPED))
		return refuse(why, "a lent record that may go ahead or is striped");
	if (frame_is_lent(f) && !f->bulk_len)
		return refuse(why, "nothing is lent");
	if (record && !f->thread)
		return refuse(why, "record of no thread");
	if (f->deliveries && (to_server || (f->kind != FRAME_REPLY && f->kind != FRAME_UPCALL)))
		return refuse(why, "deliveries where none belong");
	if (f->deliveries > f->bulk_len / sizeof(struct delivery))
		return refuse(why, "more deliveries than the bulk holds");
	return 0;
}
