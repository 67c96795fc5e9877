/* SPDX-License-Identifier: Apache-2.0 */
/* Compression between a connection's bytes and the frames in them, for slow links: LZ4 by blocks. A block is
 *
 *     raw_len[4] wire_len[4]   wire_len bytes: LZ4 of raw_len bytes, or, when the two are equal, the bytes
 *
 * Bytes that are not compressed pass straight between the caller's memory and the connection. Whether to
 * compress is the sender's decision, again and again: when the link, neither the program nor the receiver, is
 * the limit, and is slower than LZ4 is; and while blocks become smaller.
 *
 * Thread rule: that of the stream: a reader and a writer, whose halves of struct pack are apart. */
#include <errno.h>
#include <lz4.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/frame.h"
#include "wire/stream.h"
#include "wire/transport.h"

#define BLOCK (64u << 10)           /* most bytes that are compressed at a time */
#define STORED (1u << 20)           /* most bytes of a block that is not */
#define SMALL 512u                  /* fewer are not worth a try */
#define SLOW (250u * 1000 * 1000)   /* bytes a second: LZ4 of a core does twice this */
#define MEASURE (1u << 20)          /* bytes between two looks at the link */
#define WINDOW_US 20000u            /* the link is judged by no less of its time; the kernel counts jiffies */
#define PATIENCE 63u                /* most blocks that are not tried after one that did not shrink */
#define AHEAD 256u                  /* read to see a header; what is small is read with it */

struct header { uint32_t raw, wire; };

struct pack {
	/* the writer's */
	bool always, slow, first;       /* first: the next frame goes as it is */
	void *state;
	size_t since;                   /* bytes since the link was looked at */
	uint64_t busy, acked;           /* when it was judged: microseconds and bytes so far */
	unsigned skip, patience;
	size_t stored;                  /* the caller's next bytes that belong to the block begun */
	size_t owed;                    /* bytes in `out` that the caller was not told of */
	size_t out_pos, out_len;
	uint8_t *out;                   /* a header, or a header and a compressed block */
	uint8_t *gathered;              /* BLOCK bytes of several pieces */

	/* the reader's */
	size_t plain;                   /* bytes that come as they are: the first frame */
	uint8_t ahead[AHEAD];
	size_t ahead_pos, ahead_len;
	size_t passing;                 /* left of a block that is not compressed */
	struct header packed;           /* raw != 0: a compressed block is being received ... */
	size_t have;                    /* ... and so much of it is there */
	uint8_t *wire, *raw;            /* BLOCK bytes each */
	size_t raw_pos, raw_len;
};

struct pack *pack_create(bool always, bool first)
{
	struct pack *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->always = always;
	p->first = first;
	p->plain = first ? sizeof(struct frame) : 0;
	p->state = malloc((size_t)LZ4_sizeofState());
	p->out = malloc(sizeof(struct header) + BLOCK);
	p->gathered = malloc(BLOCK);
	p->wire = malloc(BLOCK);
	p->raw = malloc(BLOCK);
	if (p->state && p->out && p->gathered && p->wire && p->raw)
		return p;
	pack_free(p);
	return NULL;
}

void pack_free(struct pack *p)
{
	if (!p)
		return;
	free(p->state);
	free(p->out);
	free(p->gathered);
	free(p->wire);
	free(p->raw);
	free(p);
}

/* ---- writing ---- */

/* Bytes that were acknowledged, over the time in which some were under way and the receiver had room: the
 * kernel counts both. (Its own delivery rate is that of the last burst, which a limited link carries at full
 * speed, too.) */
static void look_at_link(struct stream *s, struct pack *p, size_t n)
{
	struct tcp_info i;
	socklen_t len = sizeof i;

	p->since += n;
	if (p->since < MEASURE)
		return;
	p->since = 0;
	memset(&i, 0, sizeof i);
	if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &i, &len))
		return;
	uint64_t busy = i.tcpi_busy_time - i.tcpi_rwnd_limited, us = busy - p->busy;

	if (us < WINDOW_US)
		return;
	p->slow = (i.tcpi_bytes_acked - p->acked) * 1000000 / us < SLOW;
	p->busy = busy;
	p->acked = i.tcpi_bytes_acked;
}

/* Up to `most` bytes at `skip` of v as an array of its own: at most `cap` pieces of it. Returns their
 * number. */
static int slice(const struct iovec *v, int n, size_t skip, size_t most, struct iovec *out, int cap)
{
	int k = 0;

	for (int i = 0; i < n && most && k < cap; i++) {
		size_t part = v[i].iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		part = part < most ? part : most;
		out[k++] = (struct iovec){(uint8_t *)v[i].iov_base + skip, part};
		most -= part;
		skip = 0;
	}
	return k;
}

/* Begins a block with the caller's next bytes, of which there are `left`. */
static void begin_block(
	struct stream *s, struct pack *p, const struct iovec *v, int n, size_t skip, size_t left)
{
	struct iovec piece[STREAM_PIECES];
	size_t len = left < BLOCK ? left : BLOCK, at = 0;
	struct header h;
	int packed = 0;

	look_at_link(s, p, len);
	if ((p->always || p->slow) && len >= SMALL && !(p->skip && p->skip--)) {
		int k = slice(v, n, skip, len, piece, STREAM_PIECES);
		const uint8_t *from = piece[0].iov_base;

		if (k > 1) {
			for (int i = 0; i < k; i++) {
				memcpy(p->gathered + at, piece[i].iov_base, piece[i].iov_len);
				at += piece[i].iov_len;
			}
			from = p->gathered;
			len = at;
		}
		/* Less than fifteen sixteenths, or it is not worth the receiver's time. */
		packed = LZ4_compress_fast_extState(p->state, (const char *)from, (char *)p->out + sizeof h,
			(int)len, (int)(len - len / 16), 1);
		p->patience = packed ? 0 : p->patience < PATIENCE ? 2 * p->patience + 1 : PATIENCE;
		p->skip = p->patience;
	}
	if (packed) {
		h = (struct header){(uint32_t)len, (uint32_t)packed};
		p->owed = len;
	} else {
		if (!p->always && !p->slow)
			len = left < STORED ? left : STORED;
		h = (struct header){(uint32_t)len, (uint32_t)len};
		p->stored = len;
	}
	memcpy(p->out, &h, sizeof h);
	p->out_pos = 0;
	p->out_len = sizeof h + (size_t)packed;
}

/* What is in `out`, and behind it the caller's bytes of the same block. Bytes sent, or -errno. */
static ssize_t send_block(
	struct stream *s, struct pack *p, const struct iovec *v, int n, size_t skip, size_t left)
{
	struct iovec piece[STREAM_PIECES + 1];
	size_t most = p->stored < left ? p->stored : left;
	int k = 0;

	if (p->out_pos < p->out_len)
		piece[k++] = (struct iovec){p->out + p->out_pos, p->out_len - p->out_pos};
	k += slice(v, n, skip, most, piece + k, STREAM_PIECES);
	return transport_writev(s, piece, k);
}

ssize_t pack_writev(struct stream *s, const struct iovec *v, int n)
{
	struct pack *p = s->pack;
	size_t total = 0, done;

	if (p->first) {
		ssize_t r = transport_writev(s, v, n);

		p->first &= r <= 0;
		return r;
	}
	for (int i = 0; i < n; i++)
		total += v[i].iov_len;
	if (p->owed && p->out_pos == p->out_len) {
		done = p->owed < total ? p->owed : total;
		p->owed -= done;
	} else {
		done = 0;
	}
	while (done < total) {
		bool whole = p->out_pos == p->out_len;

		if (whole && !p->stored)
			begin_block(s, p, v, n, done, total - done);
		ssize_t r = send_block(s, p, v, n, done, total - done);

		if (r < 0)
			return done ? (ssize_t)done : r;
		size_t head = p->out_len - p->out_pos;

		head = (size_t)r < head ? (size_t)r : head;
		p->out_pos += head;
		p->stored -= (size_t)r - head;
		done += (size_t)r - head;
		if (p->owed && p->out_pos == p->out_len) {
			size_t told = p->owed < total - done ? p->owed : total - done;

			p->owed -= told;
			done += told;
		}
	}
	return (ssize_t)done;
}

/* ---- reading ---- */

/* Bytes that were read ahead, or else the connection's. */
static ssize_t take(struct stream *s, struct pack *p, void *to, size_t n, bool block, int timeout_ms)
{
	size_t there = p->ahead_len - p->ahead_pos;

	if (!there)
		return transport_read(s, to, n, block, timeout_ms);
	n = n < there ? n : there;
	memcpy(to, p->ahead + p->ahead_pos, n);
	p->ahead_pos += n;
	return (ssize_t)n;
}

static bool header_is_good(const struct header *h)
{
	return h->raw == h->wire ? h->raw && h->raw <= STORED :
				   h->wire && h->wire < h->raw && h->raw <= BLOCK;
}

/* The next block's header. 1, 0 at the end of the connection, or -errno. */
static ssize_t read_header(struct stream *s, struct pack *p, bool block, int timeout_ms)
{
	struct header h;

	while (p->ahead_len - p->ahead_pos < sizeof h) {
		memmove(p->ahead, p->ahead + p->ahead_pos, p->ahead_len - p->ahead_pos);
		p->ahead_len -= p->ahead_pos;
		p->ahead_pos = 0;
		uint8_t *free = p->ahead + p->ahead_len;
		ssize_t r = transport_read(s, free, AHEAD - p->ahead_len, block, timeout_ms);

		if (r <= 0)
			return r;
		p->ahead_len += (size_t)r;
	}
	memcpy(&h, p->ahead + p->ahead_pos, sizeof h);
	p->ahead_pos += sizeof h;
	if (!header_is_good(&h))
		return -EPROTO;
	if (h.raw == h.wire)
		p->passing = h.raw;
	else
		p->packed = h;
	return 1;
}

/* More of the compressed block; when it is whole, its bytes. The same results. */
static ssize_t read_packed(struct stream *s, struct pack *p, bool block, int timeout_ms)
{
	ssize_t r = take(s, p, p->wire + p->have, p->packed.wire - p->have, block, timeout_ms);

	if (r <= 0)
		return r;
	p->have += (size_t)r;
	if (p->have < p->packed.wire)
		return 1;
	if (LZ4_decompress_safe((const char *)p->wire, (char *)p->raw, (int)p->packed.wire, BLOCK) !=
		(int)p->packed.raw)
		return -EPROTO;
	p->raw_pos = 0;
	p->raw_len = p->packed.raw;
	p->packed.raw = 0;
	p->have = 0;
	return 1;
}

ssize_t pack_read(struct stream *s, void *to, size_t n, bool block, int timeout_ms)
{
	struct pack *p = s->pack;
	size_t got = 0;

	while (got < n) {
		bool wait = block && !got;
		size_t part = n - got;
		uint8_t *at = (uint8_t *)to + got;
		ssize_t r;

		if (p->raw_pos < p->raw_len) {
			part = part < p->raw_len - p->raw_pos ? part : p->raw_len - p->raw_pos;
			memcpy(at, p->raw + p->raw_pos, part);
			p->raw_pos += part;
			got += part;
			continue;
		}
		if (p->plain) {
			r = transport_read(s, at, part < p->plain ? part : p->plain, wait, timeout_ms);
			p->plain -= r > 0 ? (size_t)r : 0;
			got += r > 0 ? (size_t)r : 0;
		} else if (p->passing) {
			r = take(s, p, at, part < p->passing ? part : p->passing, wait, timeout_ms);
			p->passing -= r > 0 ? (size_t)r : 0;
			got += r > 0 ? (size_t)r : 0;
		} else if (p->packed.raw) {
			r = read_packed(s, p, wait, timeout_ms);
		} else {
			r = read_header(s, p, wait, timeout_ms);
		}
		if (r <= 0)
			return got && r != -EPROTO ? (ssize_t)got : r;
	}
	return (ssize_t)got;
}

bool pack_pending(const struct pack *p)
{
	size_t least = p->passing || p->packed.raw ? 1 : sizeof(struct header);

	return p->raw_pos < p->raw_len || p->ahead_len - p->ahead_pos >= least;
}
