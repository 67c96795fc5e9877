/* SPDX-License-Identifier: Apache-2.0 */
/* Output of kernels. Each launch has a buffer in launch order; a flush writes what there is, oldest launch
 * first. The FIFO bounds the bytes that wait; what comes when it is full is lost, and vprintf returns -1.
 *
 * Thread rule: one lock for all buffers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "server/soft/builtin.h"
#include "server/soft/memory.h"

enum { MAX_TEXT = 1 << 16, MAX_FORMAT = 1 << 14, SPEC = 40, MAX_WIDTH = 4096 };

struct printf_buffer {
	struct printf_buffer *next;
	char *text;
	size_t n, cap;
	bool closed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct printf_buffer *first, **last = &first;
static size_t waiting, fifo = 1 << 20;

struct printf_buffer *printf_open(void)
{
	struct printf_buffer *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	pthread_mutex_lock(&lock);
	*last = b;
	last = &b->next;
	pthread_mutex_unlock(&lock);
	return b;
}

static void forget(struct printf_buffer **p)
{
	struct printf_buffer *b = *p;
	*p = b->next;
	if (last == &b->next)
		last = p;
	free(b->text);
	free(b);
}

void printf_close(struct printf_buffer *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&lock);
	b->closed = true;
	for (struct printf_buffer **p = &first; *p && !b->n; p = &(*p)->next)
		if (*p == b) {
			forget(p);
			break;
		}
	pthread_mutex_unlock(&lock);
}

static void write_all(const char *s, size_t n)
{
	while (n) {
		ssize_t r = write(STDOUT_FILENO, s, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return;
		s += r;
		n -= (size_t)r;
	}
}

void engine_printf_flush(void)
{
	pthread_mutex_lock(&lock);
	bool any = waiting != 0;
	if (any)
		fflush(stdout); /* what the program printed before comes first */
	for (struct printf_buffer **p = &first; *p && any;) {
		struct printf_buffer *b = *p;
		write_all(b->text, b->n);
		waiting -= b->n;
		b->n = 0;
		if (b->closed)
			forget(p);
		else
			p = &b->next;
	}
	pthread_mutex_unlock(&lock);
}

void engine_set_printf_fifo(size_t bytes)
{
	pthread_mutex_lock(&lock);
	fifo = bytes;
	pthread_mutex_unlock(&lock);
}

/* A string of the kernel, bounded by the allocation that holds it. */
static size_t device_text(uint64_t p, size_t most)
{
	uint64_t base;
	size_t bytes;
	if (!soft_find(p, &base, &bytes))
		return 0;
	size_t room = bytes - (size_t)(p - base);
	return strnlen((const char *)p, room < most ? room : most);
}

struct text {
	char *s;
	size_t n;
};

static void add(struct text *t, const char *s, size_t n)
{
	if (n > MAX_TEXT - 1 - t->n)
		n = MAX_TEXT - 1 - t->n;
	memcpy(t->s + t->n, s, n);
	t->n += n;
}

/* The next argument of `size` bytes at its natural alignment. */
static uint64_t argument(uint64_t args, size_t *at, size_t size)
{
	uint64_t base, v = 0;
	size_t bytes;
	*at = (*at + size - 1) & ~(size - 1);
	if (args && soft_find(args, &base, &bytes) && args - base <= bytes &&
		bytes - (args - base) >= *at + size)
		memcpy(&v, (const char *)args + *at, size);
	*at += size;
	return v;
}

static void formatted(struct text *t, const char *spec, uint64_t v, char conv, size_t size)
{
	char b[MAX_WIDTH * 2];
	int n;
	if (strchr("aAeEfFgG", conv)) {
		double d;
		memcpy(&d, &v, 8);
		n = snprintf(b, sizeof b, spec, d);
	} else if (conv == 's') {
		size_t len = device_text(v, MAX_TEXT);
		char *s = v && len ? strndup((const char *)v, len) : NULL;
		n = snprintf(b, sizeof b, spec, s ? s : v ? "" : "(null)");
		if (s && n >= (int)sizeof b && spec[1] == 's') {
			add(t, s, len);
			n = 0;
		}
		free(s);
	} else if (conv == 'p') {
		n = snprintf(b, sizeof b, spec, (void *)v);
	} else if (size == 8) {
		n = snprintf(b, sizeof b, spec, v);
	} else {
		n = snprintf(b, sizeof b, spec, (unsigned)v);
	}
	if (n > 0)
		add(t, b, (size_t)n < sizeof b ? (size_t)n : sizeof b - 1);
}

/* One conversion from the % on; returns how many characters it took. */
static size_t conversion(struct text *t, const char *f, size_t left, uint64_t args, size_t *at)
{
	char spec[SPEC + 32] = "%";
	size_t k = 1, n = 1;
	bool wide = false;
	while (k < left && strchr("-+ #0", f[k]) && f[k] && n < 8)
		spec[n++] = f[k++];
	for (int part = 0; part < 2; part++) {
		if (part) {
			if (k >= left || f[k] != '.')
				break;
			spec[n++] = f[k++];
		}
		long width = 0;
		if (k < left && f[k] == '*') {
			width = (int)argument(args, at, 4);
			k++;
		} else {
			while (k < left && f[k] >= '0' && f[k] <= '9' && width < MAX_WIDTH)
				width = width * 10 + f[k++] - '0';
			if (!width && !part)
				continue;
		}
		width = width > MAX_WIDTH - 1      ? MAX_WIDTH - 1
			: width < -(MAX_WIDTH - 1) ? -(MAX_WIDTH - 1)
						   : width;
		n += (size_t)snprintf(spec + n, 16, "%ld", width);
	}
	unsigned longs = 0;
	for (; k < left && strchr("hlLjzt", f[k]) && f[k]; k++)
		longs += f[k] == 'l' || f[k] == 'j' || f[k] == 'z' || f[k] == 't';
	wide = longs > 0;
	if (k >= left) {
		add(t, f, k);
		return k;
	}
	char c = f[k++];
	if (c == '%') {
		add(t, "%", 1);
		return k;
	}
	if (!strchr("diouxXcaAeEfFgGsp", c)) {
		add(t, f, k);
		return k;
	}
	bool integer = strchr("diouxX", c) != NULL;
	if (integer && wide)
		n += (size_t)snprintf(spec + n, 4, "ll");
	spec[n++] = c;
	spec[n] = 0;
	size_t size = c == 's' || c == 'p' || strchr("aAeEfFgG", c) || (integer && wide) ? 8 : 4;
	formatted(t, spec, argument(args, at, size), c, size);
	return k;
}

int printf_lane(struct printf_buffer *b, uint64_t format, uint64_t args)
{
	/* kept: reading the kernel's text may end in a fault, and never come back */
	static __thread char *scratch;
	if (!scratch)
		scratch = malloc(MAX_TEXT);
	if (!scratch)
		return -1;
	size_t len = device_text(format, MAX_FORMAT), at = 0;
	struct text t = {.s = scratch};
	const char *f = (const char *)format;
	for (size_t i = 0; i < len;) {
		if (f[i] == '%') {
			i += conversion(&t, f + i, len - i, args, &at);
		} else {
			add(&t, f + i, 1);
			i++;
		}
	}
	int r = (int)t.n;
	pthread_mutex_lock(&lock);
	if (waiting + t.n > fifo) {
		r = -1;
	} else if (b->n + t.n > b->cap) {
		size_t cap = b->cap * 2 > b->n + t.n ? b->cap * 2 : b->n + t.n + 256;
		char *s = realloc(b->text, cap);
		if (s) {
			b->text = s;
			b->cap = cap;
		} else {
			r = -1;
		}
	}
	if (r > 0) {
		memcpy(b->text + b->n, t.s, t.n);
		b->n += t.n;
		waiting += t.n;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
