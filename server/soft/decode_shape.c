/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of one address register in straight-line code: the shape of its 32 addresses (see
 * handlers_mem.inc) is found out by the first and kept for the others in a cell of the register file. From a
 * full warp at the first one follows a full warp at the others only as long as nothing is between where lanes
 * can part or meet.
 *
 * Thread rule: the caller holds the module's lock. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/check.h"
#include "server/soft/decode.h"

static bool temporary(const struct decoder *d, uint32_t slot)
{
	for (unsigned k = 0; k < d->ntemps32; k++)
		if (d->temps32[k] == slot)
			return true;
	for (unsigned k = 0; k < d->ntemps64; k++)
		if (d->temps64[k] == slot)
			return true;
	return false;
}

void shape_access(struct decoder *d, uint32_t slot, bool shared, unsigned step)
{
	if (check_on() || d->i->pred || temporary(d, slot)) /* checks may leave lanes out */
		return;
	uint32_t op = d->nops - 1;
	for (unsigned k = 0; k < d->nshapes; k++) {
		struct shape *s = &d->shapes[k];
		if (s->slot != slot || s->shared != shared || s->step != step)
			continue;
		if (!s->cell) {
			s->cell = slot_new(d, 4);
			d->ops[s->op].y = s->cell | SHAPE_KEEP;
		}
		d->ops[op].y = s->cell | SHAPE_KEPT;
		return;
	}
	unsigned k = d->nshapes < MAX_SHAPES ? d->nshapes++ : d->next_shape++ % MAX_SHAPES;
	d->shapes[k] = (struct shape){.slot = slot, .op = op, .step = step, .shared = shared};
}

static void changed(void *arg, uint32_t reg, bool def)
{
	struct decoder *d = arg;
	if (!def || d->reg_slot[reg] == NONE)
		return;
	uint32_t from = d->reg_slot[reg], to = from + (lane_bytes(d->f->regs[reg]) == 8 ? SLOT64 : SLOT32);
	for (unsigned k = 0; k < d->nshapes; k++)
		if (d->shapes[k].slot + (d->shapes[k].shared ? SLOT32 : SLOT64) > from &&
			d->shapes[k].slot < to)
			d->shapes[k--] = d->shapes[--d->nshapes];
}

void shape_forget(struct decoder *d, bool plain)
{
	if (!plain)
		d->nshapes = 0;
	else if (d->nshapes)
		insn_registers(d->i, changed, d);
}
