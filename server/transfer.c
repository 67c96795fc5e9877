/* SPDX-License-Identifier: Apache-2.0 */
/* A copy's bytes on their way, in pieces. A copy that fails still sends all the data that was announced,
 * since the program waits for it.
 *
 * Thread rule: as exec.h; no state of its own. */
#include "server/transfer.h"
#include <stdlib.h>
#include "server/lend.h"
#include "server/piece.h"
#include "server/serve.h"
#include "wire/copy.h"

CUresult transfer_receive(struct exec *x, const struct box *b)
{
	struct stage *stage = stage_get();
	struct part p = {0};
	CUresult r = CUDA_SUCCESS;

	if (!stage)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (!r && box_next(b, &p, STAGE_SLOT)) {
		struct slot *slot = stage_take(stage, b->use);

		if (!slot)
			return drv.cuStreamSynchronize(b->stream); /* says what the context is lost to */
		if (!exec_bulk(x, slot->p, p.w * p.h * p.d)) {
			stage_release(stage, slot);
			return SERVE_BAD;
		}
		r = box_issue(b, &p, slot->p);
		CUresult put = stage_put(stage, slot, b->stream);

		r = r ? r : put;
	}
	return r;
}

bool transfer_zeros(struct exec *x, uint64_t transfer, uint64_t offset, uint64_t total)
{
	static const uint8_t zeros[64 << 10];
	bool ok = true;

	for (; ok && offset < total; offset += sizeof zeros)
		ok = exec_send_data(x, transfer, offset, zeros,
			total - offset < sizeof zeros ? total - offset : sizeof zeros);
	return ok;
}

struct flight {
	struct slot *slot;
	size_t n;
};

/* Two pieces are on their way from the device while one is sent. */
CUresult transfer_send(struct exec *x, const struct box *b, uint64_t transfer, uint64_t total)
{
	struct stage *stage = stage_get();
	struct flight flight[2] = {{0}};
	unsigned head = 0, n = 0;
	uint64_t offset = 0;
	struct part p = {0};
	size_t most = total <= COPY_MEDIUM ? COPY_PIECE : STAGE_SLOT;
	CUresult r = stage ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	bool more = stage != NULL, ok = true;

	while (more || n) {
		while (more && n < 2) {
			struct slot *slot = r   ? NULL
					    : n ? stage_try(stage, b->use)
						: stage_take(stage, b->use);

			if (!slot && n && !r)
				break;
			if (!slot && !r) {
				r = drv.cuStreamSynchronize(b->stream);
				r = r ? r : CUDA_ERROR_UNKNOWN;
			}
			more = !r && box_next(b, &p, most);
			if (!more) {
				if (slot)
					stage_release(stage, slot);
				break;
			}
			r = box_issue(b, &p, slot->p);
			r = r ? r : stage_record(slot, b->stream);
			if (r) {
				stage_release(stage, slot);
				break;
			}
			flight[(head + n++) % 2] = (struct flight){slot, p.w * p.h * p.d};
		}
		if (!n)
			break;
		struct flight f = flight[head];

		head = (head + 1) % 2;
		n--;
		CUresult done = stage_wait(f.slot);

		r = r ? r : done;
		if (!r && ok) {
			f.slot->lent = lend_data(x->session, transfer, offset, f.slot->p, f.n);
			ok = f.slot->lent || exec_send_data(x, transfer, offset, f.slot->p, f.n);
			offset += f.n;
		}
		stage_release(stage, f.slot);
	}
	if (ok)
		ok = transfer_zeros(x, transfer, offset, total);
	return ok ? r : SERVE_BAD;
}

struct delivery_later {
	struct later later;
	struct piece *piece;
};

static int piece_finished(struct later *l, bool callback)
{
	struct delivery_later *d = (struct delivery_later *)l;

	return piece_state(d->piece, callback);
}

static void later_release(struct later *l)
{
	struct delivery_later *d = (struct delivery_later *)l;

	piece_release(d->piece);
	free(d);
}

CUresult transfer_deliver(struct exec *x, const struct box *b, uint64_t transfer, size_t n)
{
	struct piece *piece = piece_take(n);
	struct delivery_later *d = piece ? calloc(1, sizeof *d) : NULL;
	CUresult r;

	if (!d) {
		if (piece)
			piece_release(piece);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = box_issue(b, &(struct part){.w = b->w, .h = b->h, .d = b->d}, piece->p);
	r = r ? r : piece_mark(piece, b->stream);
	if (r) {
		piece_release(piece);
		free(d);
		return r;
	}
	d->piece = piece;
	d->later = (struct later){.transfer = transfer,
		.p = piece->p,
		.n = n,
		.finished = piece_finished,
		.release = later_release};
	session_deliver_later(x, &d->later);
	return CUDA_SUCCESS;
}
