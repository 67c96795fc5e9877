/* SPDX-License-Identifier: Apache-2.0 */
/* What travels between the mount and the server, and, as the same bytes, between a program and the mount
 * (wire/ctl.h). docs/protocol.md tells the story; this file is the truth.
 *
 * A connection starts with a clear preamble from the client, then TLS 1.3 when it says so, then frames in
 * both directions. A frame is a 40-byte little-endian header, `head_len` bytes of msgpack and `bulk_len` raw
 * bytes. The daemon reads headers only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Goes up with each release in which frames, records or values are read differently: the list of calls tells
 * their arguments apart, not what hand-written code puts behind them. */
#define PROTOCOL_VERSION 2

enum preamble_flags {
	PREAMBLE_TLS = 1,           /* a TLS handshake follows */
	PREAMBLE_MONITOR = 2,       /* tree values instead of a session */
	PREAMBLE_PACK = 4,          /* behind each direction's first frame come blocks (wire/pack.c),
	                             * compressed where that is faster */
	PREAMBLE_PACK_ALWAYS = 8,   /* the same, compressed whatever the link is like */
	PREAMBLE_SECOND = 16,       /* the second connection of the session that `routing` names: a PING, its
	                             * PONG, and then stripes (FRAME_STRIPED) without frames; or memory is
	                             * lent by it (struct lending) */
};
struct preamble {
	char magic[4];              /* "SCUD" */
	uint8_t version;            /* PROTOCOL_VERSION */
	uint8_t flags;
	uint16_t zero;
	uint8_t routing[16];        /* of a second connection: the token of FRAME_SECOND; else zero */
};
_Static_assert(sizeof(struct preamble) == 24, "preamble");
#define PREAMBLE_MAGIC "SCUD"

enum frame_kind {
	/* program to server: records, in the order of the program's calls */
	FRAME_HELLO = 1,            /* head: see hello below; answered by FRAME_REPLY */
	FRAME_POST,                 /* a call without an answer */
	FRAME_WAIT,                 /* a call answered by FRAME_REPLY with the same seq */
	FRAME_THREAD_END,           /* `thread` has ended */
	/* outside the ordered stream */
	FRAME_UPCALL_DONE,          /* program to server: the host function of the UPCALL with this seq has
	                             * returned */
	FRAME_PING,                 /* daemon to server, every TIME_HEARTBEAT */
	FRAME_PONG,
	/* server to program */
	FRAME_REPLY,
	FRAME_DATA,                 /* bytes of a copy to the host: ctx = transfer id, seq = offset in the
	                             * transfer, bulk */
	FRAME_UPCALL,               /* run a host function: seq = upcall id, head = the id that the program
	                             * gave it, and up to UPCALL_VALUES numbers for it */
	FRAME_OUTPUT,               /* what kernels print: bulk is text for the program's standard output;
	                             * travels like an upcall */
	FRAME_BYE,                  /* the server ends the session: head = code, text; then the connection
	                             * closes */
	/* monitor connection (PREAMBLE_MONITOR) */
	FRAME_GET_SNAPSHOT,         /* answered by FRAME_SNAPSHOT with the same seq */
	FRAME_SNAPSHOT,             /* head: the snapshot map */
	FRAME_KEEP,                 /* seq, ctx: the token of a file that the mount opened for a shared
	                             * handle; answered by FRAME_KEPT */
	FRAME_KEPT,                 /* of that token; call: not 0 when the mount has too many */
	FRAME_DROP,                 /* the file with that token is closed */
	/* both directions */
	FRAME_SECOND,               /* seq: the daemon's word on a second connection (enum second_word); the
	                             * server answers the first one with the token that opens it (seq, ctx),
	                             * 0: it has none to give */
	FRAME_KINDS
};

enum frame_flags {
	FRAME_PTDS = 1,             /* record: default stream means per-thread (the _ptsz and _ptds
	                             * flavours) */
	FRAME_MORE = 2,             /* REPLY: `deliveries` DATA transfers were sent ahead of it */
	FRAME_LENT = 2,             /* record, set by the daemon; DATA: in place of the bulk come the places
	                             * where its bytes lie in memory that the sender shares, see below */
	FRAME_STDERR = 4,           /* OUTPUT: for standard error instead */
	FRAME_LOG = 32,             /* OUTPUT: a message of the driver's log instead: a byte, its level, and
	                             * its text */
	FRAME_ASIDE = 64,           /* may go ahead of records that wait behind a POST that is stuck in the
	                             * driver: a WAIT of a thread that runs an UPCALL, and every exchange of
	                             * memory used in place (wire/mirror.h) */
	FRAME_STRIPED = 128,        /* record, set by the daemon, and DATA: of its bulk every second STRIPE
	                             * comes by the second connection */
	FRAME_PACE = 16,            /* WAIT that asks nothing: its REPLY, without failures or deliveries, says
	                             * that its turn has come */
	FRAME_CHANGED = 8,          /* REPLY that may tell of work's end: memory used in place (wire/mirror.h)
	                             * has changed */
};

struct frame {
	uint32_t head_len;
	uint8_t kind, flags;
	uint16_t call;              /* record: index in the hello's function list; REPLY: OUTPUT frames sent
	                             * so far, low 16 bits */
	uint64_t bulk_len;
	uint32_t thread;            /* record: the program's thread, from 1; REPLY: code of the first failed
	                             * post not told yet, else 0 */
	uint32_t deliveries;        /* REPLY: number of finished transfers to the host in its bulk, see
	                             * below */
	uint64_t seq;               /* record: 1, 2, 3, ... in stream order; REPLY: of the record answered */
	uint64_t ctx;               /* record: the calling thread's current context handle; REPLY, UPCALL: low
	                             * half: deliveries of all frames so far, this one included; high half:
	                             * low half of the failed post's seq */
};
_Static_assert(sizeof(struct frame) == 40, "frame");

/* Deliveries. A copy to the host whose completion is told later (cuMemcpyDtoHAsync to pinned memory) is a
 * post with a transfer id; the server keeps the bytes until a REPLY tells completion. That REPLY has
 * `deliveries` > 0 and its bulk starts with that many {u64 transfer, u64 bytes} pairs; transfers of at most
 * DELIVERY_INLINE bytes follow in the same bulk, in order, while they fit; the others were sent before it as
 * DATA frames. The program puts all bytes in place before its call returns. */
#define DELIVERY_INLINE 4096
/* The seq of a PONG that nobody asked for, in the middle of a record whose rest has not come. Its ctx: 1 when
 * it is the second connection by which that is to come. */
#define PONG_REST UINT64_MAX
#define UPCALL_VALUES 2
#define UPCALL_HEAD (9u * (1 + UPCALL_VALUES))  /* bytes of an UPCALL's head at most */
struct delivery { uint64_t transfer, bytes; };

/* Names a handle that sessions of one server share (docs/protocol.md). */
struct share_token { uint64_t word[2]; };

/* The maps that are sent as heads.
 *
 * hello request (FRAME_HELLO): "protocol" int, "version" text (build), "pid" int, "uid" int, "user" text,
 *   "command" text, "list" u64 (CALL_LIST: the call ids of this session are those of a build with that list)
 *   or "calls" array of [name text, signature u32] (they are indices of this array), "env" map of the CUDA_*
 *   variables that the driver reads.
 * hello reply: "protocol", "version", "session" int (id at the server), "driver" text ("real" or "soft"),
 *   "keeps" bool (module images), "unknown" array of call ids that this server lacks or describes otherwise,
 *   "snapshot" map. Or, to a list that it does not know: "again" true.
 * snapshot: "driver_version" int (13000), "nvidia_version" text ("580.159.04", or ""), "driver" text, "host"
 *   text, "sessions" int, "devices" array of maps: "name" text, "uuid" bin 16, "luid" bin 8, "node_mask" int,
 *   "total" int, "free" int, "pci_bus_id" text ("0000:00:06.0" or ""), "attributes" array of int or nil (nil:
 *   the driver gave an error), index = CUdevice_attribute, first element unused.
 * FRAME_BYE: an array [code int (a CUresult), text]. */

/* What the daemon says of the second connection: it wants one, once; it is in place, so DATA may be striped;
 * it has ended, so DATA is not to be any more. In place of the first: it wants one to lend memory by. */
enum second_word { SECOND_WANTED, SECOND_SERVES, SECOND_ENDS, SECOND_LENDS };

/* A striped bulk: stripes 0, 2, 4, ... follow the header, stripes 1, 3, ... come by the second connection. */
#define STRIPE ((uint64_t)256 << 10)
/* How many of n bytes that is. */
static inline uint64_t stripes_apart(uint64_t n)
{
	uint64_t rest = n % (2 * STRIPE);
	return n / (2 * STRIPE) * STRIPE + (rest > STRIPE ? rest - STRIPE : 0);
}

/* Lent memory. Between two processes of one host, which have a unix socket for their connection, the bytes of
 * large bulks stay where they are: each end gives the other a descriptor of its memory, by the second
 * connection, whose PING and PONG are followed by
 *
 *     daemon: struct lending, the arena of wire/ring.h beside it (size 0: none)
 *     server: struct lending, its staging memory beside it (size 0: none)
 *     daemon: u64, 1 when it has taken that
 *
 * When neither was taken, stripes come by it after all. Otherwise each end says there, as u64, how much it
 * has taken of what was lent to it: the server pieces, the daemon DATA frames, since the beginning.
 *
 * Of a lent record's bulk each piece of LENT_PIECE bytes, but for the last, is in one place, and those
 * numbers, u64, follow the head; those of a DATA frame are all in one place. */
#define LENT_PIECE STRIPE
struct lending { uint64_t size, taken; };   /* bytes of memory; the server's: it has the daemon's */

static inline bool frame_is_lent(const struct frame *f)
{
	return f->flags & FRAME_LENT && f->kind != FRAME_REPLY;
}
/* How many places a record has. */
static inline uint64_t frame_places(const struct frame *f)
{
	return frame_is_lent(f) ? f->bulk_len / LENT_PIECE + (f->bulk_len % LENT_PIECE != 0) : 0;
}

/* Bytes of head and bulk of a record that come by the second connection, and those that follow the header. */
static inline uint64_t frame_apart(const struct frame *f)
{
	return f->flags & FRAME_STRIPED ? stripes_apart(f->bulk_len) : 0;
}
static inline uint64_t frame_inline(const struct frame *f)
{
	if (frame_is_lent(f))
		return f->head_len + frame_places(f) * sizeof(uint64_t);
	return f->head_len + f->bulk_len - frame_apart(f);
}

/* Copies a header out of / into wire order (little-endian hosts only: a no-op copy) and checks it against the
 * limits of the direction. Returns 0, or -EPROTO and a word of explanation in *why (a constant). `to_server`:
 * the frame was sent by a program or a daemon. */
int frame_check(const struct frame *f, bool to_server, const char **why);
const char *frame_kind_name(unsigned kind);
