/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a program and its mount share for one session: a ring of records towards the mount, and
 * slots for answers. The bytes of records and answers are those of wire/frame.h; what is written here in
 * place of pwrite and ioctl are the same numbered batches (wire/ctl.h), and both ways may be used side by
 * side.
 *
 * The program appends segments and moves `head`; the mount takes them and moves `tail`. Both count bytes from
 * the start of the session; a byte's place is its number modulo RING_BYTES. A segment is a struct
 * ring_segment, `len` bytes of records, and padding up to a multiple of 8. One that ends with a FRAME_WAIT or
 * FRAME_HELLO may name a slot for the answer, and a large slot, the area, for the data of a transfer.
 *
 * A slot is the program's until a segment names it, then the mount's until its `done` is the record's number.
 * The answer is `len` bytes behind the struct; with the flag RING_ELSEWHERE it is larger than the slot, and
 * is fetched with pread at CTL_REPLY. An area's `got` counts the bytes of the transfer that are there, from
 * the front; it is the mount's as long as the slot.
 *
 * Bytes of a large record need not go through the ring. With it comes a second memory, the arena, of
 * LIMIT_ARENA bytes of which only the pages in use exist; the program says what lies where in it. A struct
 * ring_bulk names a stretch there that is a batch of its own: bytes of one record's bulk, no header. There
 * are RING_BULKS of them, the program moves `given`, the mount `sent` when it needs the bytes no longer; a
 * bulk's place is its number modulo RING_BULKS. The numbers of batches in them rise; those between them come
 * by the ring or by ctl. Who wants to sleep until `sent` has moved does so in an ioctl (CTL_UNTIL).
 *
 * In place of an area a wait may name RING_SINK: then its slot says where in the arena the data goes, all
 * `n` bytes of it at `at`, or, when `room` is not 0, around a stretch of so many bytes; there the program
 * counts in `taken` what may be overwritten, and the mount, which has stopped for it, is woken as by the move
 * of `head`. The slot's `got` counts the bytes that are there.
 *
 * Who finds `asleep` set after moving `head` or `given` clears it, and sends a byte through the socket that
 * came with the memory, if it was the one to clear it. `error` is an errno, or 0: the session is over.
 *
 * Each side believes only what it has copied out and checked. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include "wire/frame.h"
#include "wire/limits.h"

#define RING_VERSION 2
#define RING_BYTES (2u << 20)               /* a power of 2 */
#define RING_RECORD (192u << 10)            /* bytes of a segment at most */
#define RING_SMALL 64                       /* slots, numbers 0 to 63 */
#define RING_SMALL_BYTES (16u << 10)        /* of one, its struct included */
#define RING_LARGE 4                        /* large slots: the numbers behind */
#define RING_LARGE_BYTES (LIMIT_REPLY + LIMIT_HEAD + 4096u)
#define RING_BULKS 64                       /* stretches of the arena under way */
#define RING_SLOTS (RING_SMALL + RING_LARGE)
#define RING_AREA LIMIT_REPLY               /* bytes of a transfer in an area at most */

struct ring_control {
	_Alignas(128) _Atomic uint64_t head;    /* the program's */
	_Alignas(128) _Atomic uint64_t tail;    /* the mount's */
	_Alignas(128) _Atomic uint32_t asleep;
	_Atomic int32_t error;
	_Alignas(128) _Atomic uint64_t given;   /* the program's */
	_Alignas(128) _Atomic uint64_t sent;    /* the mount's */
};

struct ring_bulk {
	uint64_t batch, at, len;                /* bytes [at, at + len) of the arena */
};

struct ring_segment {
	uint32_t len;
	uint8_t slot, area;                     /* number + 1, 0: none; area: or RING_SINK */
	uint16_t zero;
	uint64_t batch;
	uint64_t seq;                           /* with a slot: of the record that is answered there */
	uint64_t transfer;                      /* with an area: its low bits, as in CTL_DATA */
};
_Static_assert(sizeof(struct ring_segment) == 32 && RING_BYTES % sizeof(struct ring_segment) == 0, "segment");

#define RING_SINK 255

enum { RING_ELSEWHERE = 1 };
struct ring_slot {
	_Alignas(64) _Atomic uint64_t done;     /* the last record answered here */
	_Atomic uint64_t got;
	uint32_t len, flags;
	_Atomic uint64_t taken;                 /* this and what follows is the program's */
	uint64_t at, n, room;
	_Alignas(64) uint8_t bytes[];
};
_Static_assert(sizeof(struct ring_slot) == 64 && RING_LARGE_BYTES >= sizeof(struct ring_slot) +
									     sizeof(struct frame) +
									     LIMIT_HEAD + LIMIT_REPLY,
	"slot");

/* The layout. */
#define RING_BULKS_AT 1024u
#define RING_AT 4096u
_Static_assert(sizeof(struct ring_control) <= RING_BULKS_AT &&
	RING_BULKS_AT + RING_BULKS * sizeof(struct ring_bulk) <= RING_AT, "bulks");
#define RING_SMALL_AT (RING_AT + RING_BYTES)
#define RING_LARGE_AT (RING_SMALL_AT + RING_SMALL * RING_SMALL_BYTES)
#define RING_ALL (RING_LARGE_AT + RING_LARGE * RING_LARGE_BYTES)

static inline struct ring_slot *ring_slot_at(uint8_t *memory, unsigned i)
{
	return (struct ring_slot *)(memory + (i < RING_SMALL ? RING_SMALL_AT + i * RING_SMALL_BYTES :
		RING_LARGE_AT + (i - RING_SMALL) * RING_LARGE_BYTES));
}

static inline struct ring_bulk *ring_bulk_at(uint8_t *memory, uint64_t i)
{
	return (struct ring_bulk *)(memory + RING_BULKS_AT) + i % RING_BULKS;
}

/* Bytes of an answer that the slot has room for. */
static inline size_t ring_slot_room(unsigned i)
{
	return (i < RING_SMALL ? RING_SMALL_BYTES : RING_LARGE_BYTES) - sizeof(struct ring_slot);
}

/* n bytes into and out of the ring from byte number `at` on. */
static inline void ring_copy_in(uint8_t *memory, uint64_t at, const void *p, size_t n)
{
	size_t from = at % RING_BYTES, first = n < RING_BYTES - from ? n : RING_BYTES - from;
	memcpy(memory + RING_AT + from, p, first);
	if (n > first)
		memcpy(memory + RING_AT, (const uint8_t *)p + first, n - first);
}

static inline void ring_copy_out(const uint8_t *memory, uint64_t at, void *p, size_t n)
{
	size_t from = at % RING_BYTES, first = n < RING_BYTES - from ? n : RING_BYTES - from;
	memcpy(p, memory + RING_AT + from, first);
	if (n > first)
		memcpy((uint8_t *)p + first, memory + RING_AT, n - first);
	/* What is checked is the copy: the compiler may not go back to the memory for a value. */
	atomic_signal_fence(memory_order_seq_cst);
}

/* A stretch, copied out in the same way. */
static inline struct ring_bulk ring_bulk_out(const uint8_t *memory, uint64_t i)
{
	struct ring_bulk b;
	memcpy(&b, memory + RING_BULKS_AT + i % RING_BULKS * sizeof b, sizeof b);
	atomic_signal_fence(memory_order_seq_cst);
	return b;
}

/* Bytes that a segment with `len` bytes of records takes. */
static inline size_t ring_bytes(size_t len)
{
	return sizeof(struct ring_segment) + ((len + 7) & ~(size_t)7);
}
