/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the checked mode: their words, and that no place is told twice.
 *
 * Thread rule: see check_report.h. */
#include "server/soft/check_report.h"
#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/ir.h"
#include "server/soft/shadow.h"

enum { PLACES = 512, TEXT = 512, NEAR = 1 << 20 };
enum problem { MISALIGNED, OUTSIDE, VARIABLE, LOCAL, SHARED, UNWRITTEN, RACE };

static struct place {
	uint64_t launch;
	const struct code *code;
	const struct op *op;
	enum problem problem;
	uint32_t other; /* line of a race's other side */
	uint64_t more;
} places[PLACES];
static unsigned nplaces, told;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* "scale.cu:12 (PTX line 34)", or the PTX line alone. */
static const char *where(const struct code *c, uint32_t line, char *to, size_t n)
{
	const char *file;
	uint32_t source;
	if (ptx_source(c->func, line, &file, &source))
		snprintf(to, n, "%s:%u (PTX line %u)", file, source, line);
	else
		snprintf(to, n, "PTX line %u", line);
	return to;
}

/* The name that a C++ compiler made, without its types: "scale" of "_Z5scalePfi", "ns::sum<...>" of
 * "_ZN2ns3sumIfEEvPT_". */
static const char *readable(const char *name, char *to, size_t n)
{
	const char *p = name;
	size_t used = 0;
	if (strncmp(p, "_Z", 2))
		return name;
	p += 2;
	bool nested = *p == 'N';
	p += nested;
	do {
		char *end = NULL;
		unsigned long len = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0;
		if (!len || len > strlen(end) || used + len + 8 > n)
			return name;
		used += (size_t)snprintf(to + used, n - used, "%s%.*s", used ? "::" : "", (int)len, end);
		p = end + len;
	} while (nested && isdigit((unsigned char)*p));
	if (*p == 'I')
		snprintf(to + used, n - used, "<...>");
	return to;
}

static void thread_name(const struct block *b, uint32_t t, char *to, size_t n)
{
	const unsigned *d = b->launch->l->block;
	snprintf(to, n, "(%u,%u,%u)", t % d[0], t / d[0] % d[1], t / d[0] / d[1]);
}

/* One write, so that lines of several workers do not mix. */
static void tell(const struct report *r, const char *what)
{
	const struct block *b = r->w->block;
	char at[160], thread[48], names[2][200];
	const char *kernel = readable(b->code->func->name, names[0], sizeof names[0]), *function = kernel;
	if (r->code != b->code)
		function = readable(r->code->func->name, names[1], sizeof names[1]);
	thread_name(b, r->w->id * LANES + r->lane, thread, sizeof thread);
	fprintf(stderr,
		"scuda-check: %s\nscuda-check:     kernel %.200s%s%.200s, %s, block (%u,%u,%u), thread %s\n",
		what, kernel, kernel == function ? "" : ", function ", kernel == function ? "" : function,
		where(r->code, r->op->line, at, sizeof at), b->ctaid[0], b->ctaid[1], b->ctaid[2], thread);
}

__attribute__((format(printf, 4, 5))) static void say(
	const struct report *r, enum problem problem, uint32_t other, const char *fmt, ...)
{
	uint64_t launch = r->w->block->launch->id;
	char text[TEXT];
	va_list ap;
	pthread_mutex_lock(&lock);
	struct place *p = NULL;
	for (unsigned k = 0; k < nplaces && !p; k++)
		if (places[k].launch == launch && places[k].op == r->op && places[k].problem == problem &&
			places[k].other == other)
			p = &places[k];
	if (p) {
		p->more++;
	} else if (told < check.limit) {
		if (nplaces < PLACES)
			places[nplaces++] = (struct place){launch, r->code, r->op, problem, other, 0};
		va_start(ap, fmt);
		vsnprintf(text, sizeof text, fmt, ap);
		va_end(ap);
		tell(r, text);
		if (++told == check.limit)
			fprintf(stderr, "scuda-check: that was the last report of %u (limit=N)\n",
				check.limit);
	}
	pthread_mutex_unlock(&lock);
}

void check_launch_end(const struct launch *l)
{
	if (!check_on())
		return;
	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < nplaces; k++) {
		const struct place *p = &places[k];
		char at[160], name[200];
		if (p->launch != l->id)
			continue;
		if (p->more)
			fprintf(stderr, "scuda-check:     kernel %.200s, %s: %llu more like it\n",
				readable(l->code->func->name, name, sizeof name),
				where(p->code, p->op->line, at, sizeof at),
				(unsigned long long)p->more);
		memmove(places + k, places + k + 1, (--nplaces - k) * sizeof *places);
		k--;
	}
	pthread_mutex_unlock(&lock);
}

static const char *verb(unsigned kind)
{
	return !(kind & CHECK_WRITE) ? "read of" : kind & CHECK_READ ? "atomic operation on" : "write of";
}

static const char *kind_of(const struct allocation *a)
{
	switch (a->kind) {
	case ALLOCATION_MANAGED: return "a managed allocation";
	case ALLOCATION_PINNED: return "a pinned allocation";
	case ALLOCATION_REGISTERED: return "a registered range";
	case ALLOCATION_POOL: return "a stream-ordered allocation";
	case ALLOCATION_ARRAY: return "an array";
	case ALLOCATION_MAPPED: return "a mapped range";
	default: return "an allocation";
	}
}

void report_misaligned(const struct report *r)
{
	struct allocation a;
	char of[160] = "";
	if (allocation_find(r->at, &a))
		snprintf(of, sizeof of, ": byte %llu of %s of %zu bytes at %#llx",
				(unsigned long long)(r->at - a.base),
			kind_of(&a), a.bytes, (unsigned long long)a.base);
	say(r, MISALIGNED, 0, "misaligned %s %u bytes at %#llx%s", verb(r->kind), r->bytes,
		(unsigned long long)r->at, of);
}

void report_outside(const struct report *r, const struct allocation *a)
{
	uint64_t base;
	size_t bytes;
	struct allocation near;
	char text[200];
	if (a)
		snprintf(text, sizeof text, "the end of it is past byte %lld of %s of %zu bytes at %#llx",
			(long long)(r->at - a->base), kind_of(a), a->bytes, (unsigned long long)a->base);
	else if (shadow_freed(r->at, &base, &bytes))
		snprintf(text, sizeof text, "byte %llu of an allocation of %zu bytes at %#llx that was freed",
			(unsigned long long)(r->at - base), bytes, (unsigned long long)base);
	else if (allocation_near(r->at, &near) &&
		 (r->at > near.base ? r->at - near.base - near.bytes : near.base - r->at) < NEAR)
		snprintf(text, sizeof text, "byte %lld of %s of %zu bytes at %#llx",
			(long long)(r->at - near.base), kind_of(&near), near.bytes,
			(unsigned long long)near.base);
	else
		snprintf(text, sizeof text, "there is no allocation");
	say(r, OUTSIDE, 0, "%s %u bytes at %#llx: %s", verb(r->kind), r->bytes, (unsigned long long)r->at,
		text);
}

void report_variable(const struct report *r, const struct engine_module *m, const struct ptx_var *v)
{
	if (!v) /* the last one that begins below */
		for (unsigned k = 0; k < m->nglobals; k++)
			if (m->globals[k]->address && m->globals[k]->address <= r->at &&
				(!v || m->globals[k]->address > v->address))
				v = m->globals[k];
	if (v)
		say(r, VARIABLE, 0, "%s %u bytes at %#llx: byte %llu of the variable %.100s of %llu bytes",
			verb(r->kind), r->bytes, (unsigned long long)r->at,
			(unsigned long long)(r->at - v->address), v->name, (unsigned long long)v->bytes);
}

void report_local(const struct report *r)
{
	say(r, LOCAL, 0, "%s %u bytes of local memory: it is not this thread's", verb(r->kind), r->bytes);
}

void report_shared(const struct report *r, size_t bytes)
{
	say(r, SHARED, 0, "%s %u bytes of shared memory at byte %llu: the block has %zu", verb(r->kind),
		r->bytes, (unsigned long long)r->at, bytes);
}

void report_unwritten(const struct report *r, const struct allocation *a)
{
	if (a)
		say(r, UNWRITTEN, 0,
			"%s %u bytes at %#llx that nothing has written: byte %llu of %s of %zu bytes at "
			"%#llx",
			verb(r->kind), r->bytes, (unsigned long long)r->at,
			(unsigned long long)(r->at - a->base), kind_of(a), a->bytes,
			(unsigned long long)a->base);
	else
		say(r, UNWRITTEN, 0,
			"%s %u bytes of shared memory at byte %llu that the block has not written",
			verb(r->kind), r->bytes, (unsigned long long)r->at);
}

void report_race(const struct report *r, const struct race_other *o)
{
	char at[160], thread[48];
	thread_name(r->w->block, o->thread, thread, sizeof thread);
	say(r, RACE, o->line,
		"race: %s %u bytes of shared memory at byte %llu, and thread %s %s it at %s, no barrier "
		"between",
		verb(r->kind), r->bytes, (unsigned long long)r->at, thread, o->wrote ? "wrote" : "read",
		where(o->code, o->line, at, sizeof at));
}
