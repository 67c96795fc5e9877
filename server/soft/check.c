/* SPDX-License-Identifier: Apache-2.0 */
/* Checked mode: its options, and what is looked at for each access: alignment, the allocation or space that
 * it falls in, whether that was ever written, and the order of threads in shared memory.
 *
 * Thread rule: see check.h. */
#include "server/soft/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/check_report.h"
#include "server/soft/ir.h"
#include "server/soft/shadow.h"

enum {
	ILLEGAL_ADDRESS = 700,
	MISALIGNED_ADDRESS = 716,
	LAUNCH_FAILED = 719,
	LIMIT = 100,
	GUARD = 4096,
	MAX_LIMIT = 1000000
};

struct check_options check;

/* What a block keeps for it. */
struct check_state {
	struct allocation last; /* the allocation found last, while nothing was freed since */
	uint64_t generation;
	const struct ptx_var *variable; /* the variable found last */
	struct race *race;
};

static bool word(const char *s, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(s, name, n);
}

bool engine_set_check(const char *text, char *why, size_t room)
{
	struct check_options o = {.limit = LIMIT};
	while (text && *text) {
		size_t n = strcspn(text, ",");
		if (word(text, n, "bounds"))
			o.bounds = true;
		else if (word(text, n, "init"))
			o.init = true;
		else if (word(text, n, "race"))
			o.race = true;
		else if (word(text, n, "all"))
			o.bounds = o.init = o.race = true;
		else if (word(text, n, "fail"))
			o.stop = true;
		else if (word(text, n, "continue"))
			o.go_on = true;
		else if (n > 6 && !memcmp(text, "limit=", 6)) {
			char *end;
			unsigned long v = strtoul(text + 6, &end, 10);
			if (text[6] < '0' || text[6] > '9' || end != text + n || v > MAX_LIMIT) {
				snprintf(why, room, "limit= wants a number up to %d", MAX_LIMIT);
				return false;
			}
			o.limit = (unsigned)v;
		} else if (n) {
			snprintf(why, room,
				"\"%.*s\" is none of bounds, init, race, all, fail, continue, limit=N",
				(int)(n < 40 ? n : 40), text);
			return false;
		}
		text += n + (text[n] == ',');
	}
	if (o.stop && o.go_on) {
		snprintf(why, room, "fail and continue are opposites");
		return false;
	}
	if (o.init && !shadow_open()) {
		snprintf(why, room, "no address space to remember what was written");
		return false;
	}
	check = o;
	return true;
}

static uint32_t first_thread(const struct warp *w)
{
	return w->id * LANES;
}

/* Outside of everything: the code of the fault, or leave it out. */
static int refused(int code)
{
	return check.go_on ? CHECK_SKIP : code;
}

/* Wrong, but it can be done. */
static int doubtful(void)
{
	return check.stop ? LAUNCH_FAILED : 0;
}

static bool find(struct check_state *s, uint64_t at)
{
	uint64_t now = soft_generation();
	if (s->generation == now && at - s->last.base < s->last.bytes)
		return true;
	s->generation = now;
	if (allocation_find(at, &s->last))
		return true;
	s->last.bytes = 0;
	return false;
}

/* The variable of the module that holds an address of its memory. */
static const struct ptx_var *variable_at(struct check_state *s, const struct engine_module *m, uint64_t at)
{
	const struct ptx_var *v = s->variable;
	if (v && at - v->address < v->bytes)
		return v;
	for (unsigned k = 0; k < m->nglobals; k++) {
		v = m->globals[k];
		if (v->address && at - v->address < v->bytes)
			return s->variable = v;
	}
	return NULL;
}

static bool of_module(const struct engine_module *m, uint64_t base)
{
	return base == m->memory[0] || base == m->memory[1] || base == m->memory[2];
}

/* An address outside of shared memory. */
static int look_global(struct check_state *s, struct report *r)
{
	const struct block *b = r->w->block;
	uint64_t own = b->memory + ((b->shared_bytes + 255) & ~255ull);
	if (r->at - own < b->local_stride * b->nthreads + GUARD) {
		uint64_t mine = r->w->local_base + r->lane * r->w->local_stride;
		if (!check.bounds || (r->at >= mine && r->at - mine + r->bytes <= r->w->local_stride))
			return 0;
		report_local(r);
		return refused(ILLEGAL_ADDRESS);
	}
	bool found = find(s, r->at), inside = found && s->last.bytes - (r->at - s->last.base) >= r->bytes;
	const struct engine_module *m = b->launch->module;
	if (check.bounds) {
		if (!inside) {
			report_outside(r, found ? &s->last : NULL);
			return refused(ILLEGAL_ADDRESS);
		}
		if (s->last.kind == ALLOCATION_MODULE && of_module(m, s->last.base)) {
			const struct ptx_var *v = variable_at(s, m, r->at);
			if (!v || v->bytes - (r->at - v->address) < r->bytes) {
				report_variable(r, m, v);
				return doubtful();
			}
		}
	}
	if (!check.init || !inside || (s->last.kind != ALLOCATION_DEVICE && s->last.kind != ALLOCATION_POOL))
		return 0;
	bool unwritten = false;
	for (unsigned k = 0; r->kind & CHECK_READ && k < r->bytes && !unwritten; k += r->each)
		unwritten = shadow_unwritten(r->at + k, r->each);
	if (r->kind & CHECK_WRITE)
		shadow_written(r->at, r->bytes);
	if (!unwritten)
		return 0;
	report_unwritten(r, &s->last);
	return doubtful();
}

static int look_shared(struct check_state *s, struct report *r, const uint8_t *value)
{
	const struct block *b = r->w->block;
	if (r->at > b->shared_bytes || b->shared_bytes - r->at < r->bytes) {
		if (!check.bounds)
			return 0;
		report_shared(r, b->shared_bytes);
		return refused(ILLEGAL_ADDRESS);
	}
	if (!s->race)
		return 0;
	int result = 0;
	/* What other blocks of a cluster write there is not seen. */
	for (unsigned k = 0; check.init && !b->cluster && r->kind & CHECK_READ && k < r->bytes; k += r->each)
		if (race_unwritten(s->race, r->at + k, r->each)) {
			report_unwritten(r, NULL);
			result = doubtful();
			break;
		}
	struct race_other other;
	if (!race_note(s->race, r->code, r->op->line, first_thread(r->w) + r->lane, r->at, r->bytes, r->kind,
		    value, &other) &&
		check.race) {
		report_race(r, &other);
		result = doubtful();
	}
	return result;
}

int check_access(struct warp *w, const struct op *o, uint32_t lane, uint64_t at, unsigned bytes,
	unsigned each, unsigned kind, const uint8_t *value)
{
	struct block *b = w->block;
	struct check_state *s = b->check;
	struct report r = {.w = w,
		.op = o,
		.code = w->split[w->cur].f->code,
		.lane = lane,
		.at = at,
		.bytes = bytes,
		.each = each,
		.kind = kind};
	if (!s)
		return 0;
	if (check.bounds && !(kind & CHECK_LOOSE) && at & (bytes - 1)) {
		report_misaligned(&r);
		return refused(MISALIGNED_ADDRESS);
	}
	if (!(kind & CHECK_SHARED) && at - b->memory < b->shared_bytes) { /* a generic address of it */
		r.at = at - b->memory;
		r.kind |= CHECK_SHARED;
	}
	return r.kind & CHECK_SHARED ? look_shared(s, &r, value) : look_global(s, &r);
}

bool check_inside(
	struct warp *w, const struct op *o, uint32_t lane, uint64_t at, unsigned bytes, unsigned kind)
{
	int r = check_access(w, o, lane, at, bytes, bytes, kind | CHECK_LOOSE, NULL);
	if (r > 0)
		warp_fault(w, o, r);
	return !r;
}

static void fence(struct warp *w)
{
	struct check_state *s = w->block->check;
	if (s && s->race)
		race_fence(s->race, first_thread(w), w->mask);
}

/* In front of a load, store or atomic; x: bytes of each lane, y: kind, and the bytes of an element from bit 8
 * on. */
const struct op *x_checked(struct warp *w, const struct op *o)
{
	const struct op *access = o + 1;
	const uint32_t slots[4] = {access->d, access->b, access->c, access->e};
	unsigned bytes = o->x, kind = o->y & 255, each = o->y >> 8;
	bool store = (kind & (CHECK_READ | CHECK_WRITE)) == CHECK_WRITE;
	uint32_t left = w->mask;
	if (kind & CHECK_FENCE)
		fence(w);
	int code = 0;
	FOR_LANES(w, l)
	{
		uint8_t value[32];
		for (unsigned k = 0; store && k < bytes / each; k++)
			memcpy(value + k * each, w->r + slots[k] + l * (each == 8 ? 8u : 4u), each);
		uint64_t at = kind & CHECK_SHARED
				      ? (uint32_t)(REG(w, uint32_t, access->a)[l] + (uint32_t)access->imm)
				      : REG(w, uint64_t, access->a)[l] + (uint64_t)access->imm;
		int r = check_access(w, access, l, at, bytes, each, kind, store ? value : NULL);
		if (r == CHECK_SKIP)
			left &= ~(1u << l);
		else if (r)
			code = r;
	}
	if (code)
		return warp_fault(w, access, code);
	if (!left)
		return access + 1;
	uint32_t old = w->mask;
	const int32_t *lm = w->lm;
	_Alignas(64) int32_t lanes[LANES];
	if (left != old) {
		for (uint32_t l = 0; l < LANES; l++)
			lanes[l] = -(int32_t)(left >> l & 1);
		w->lm = lanes;
		w->mask = left;
	}
	const struct op *next = left == ~0u ? access->fn(w, access) : access->pfn(w, access);
	w->lm = lm;
	w->mask = old;
	if (kind & CHECK_FENCE)
		fence(w);
	return next;
}

void check_fence(struct warp *w)
{
	fence(w);
}

void check_join(struct warp *w, uint32_t lanes)
{
	struct check_state *s = w->block->check;
	if (s && s->race)
		race_join(s->race, first_thread(w), lanes & w->exists & ~w->exited);
}

void check_arrive(struct warp *w, unsigned barrier, uint32_t lanes)
{
	struct check_state *s = w->block->check;
	const struct barrier *r = &w->block->bar[barrier];
	if (s && s->race && r->expected && r->expected < w->block->live)
		race_arrive(s->race, barrier, first_thread(w), lanes);
}

void check_leave(struct warp *w, unsigned barrier, uint32_t lanes)
{
	struct check_state *s = w->block->check;
	const struct barrier *r = &w->block->bar[barrier];
	if (s && s->race && r->expected && r->expected < w->block->live)
		race_leave(s->race, barrier, first_thread(w), lanes);
}

void check_barrier(struct block *b, unsigned barrier)
{
	struct check_state *s = b->check;
	const struct barrier *r = &b->bar[barrier];
	if (!s || !s->race)
		return;
	if (r->expected && r->expected < b->live)
		race_reset(s->race, barrier);
	else
		race_barrier(s->race);
}

void check_block_start(struct block *b)
{
	if (!check_on())
		return;
	if (!b->check)
		b->check = calloc(1, sizeof *b->check);
	if (!b->check)
		return;
	b->check->variable = NULL; /* of another module, perhaps */
	if (check_shared())
		race_start(&b->check->race, b);
}

void check_block_release(struct block *b)
{
	if (b->check)
		race_free(b->check->race);
	free(b->check);
	b->check = NULL;
}
