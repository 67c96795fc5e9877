/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and comparing golden files.
 *
 * Thread rule: one thread. */
#include "tests/soft/engine/golden.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 8192, MAX_LINE = 8192, KEY = 192 };

struct line {
	char *text, *key, *rest;
	bool seen;
};
static struct line lines[MAX_LINES], differences[MAX_LINES];
static unsigned nlines, ndifferences;
static FILE *out;
static struct {
	char key[KEY];
	golden_near *near;
	const void *what;
	uint64_t in, result, word[GOLDEN_WORDS];
	unsigned n;
} now;
static unsigned equal, listed, unknown, refused, wrong;

static void mix(uint64_t *h, const void *p, size_t n)
{
	const uint8_t *b = p;
	while (n--)
		*h = (*h ^ *b++) * 1099511628211u;
}

/* Lines of tab-separated fields; `skip` of them stand in front of the key. */
static bool read_file(const char *name, unsigned skip, struct line *to, unsigned *n)
{
	FILE *f = fopen(name, "r");
	if (!f) {
		printf("FAILED %s: cannot be read\n", name);
		return false;
	}
	char text[MAX_LINE];
	while (fgets(text, sizeof text, f)) {
		text[strcspn(text, "\n")] = 0;
		if (!*text || *text == '#')
			continue;
		struct line *l = &to[*n];
		l->text = *n < MAX_LINES ? strdup(text) : NULL;
		l->key = l->text;
		for (unsigned k = 0; l->key && k < skip; k++)
			if ((l->key = strchr(l->key, '\t')))
				l->key++;
		l->rest = l->key ? strchr(l->key, '\t') : NULL;
		if (!l->rest) {
			printf("FAILED %s: line %u is none\n", name, *n + 1);
			fclose(f);
			return false;
		}
		*l->rest++ = 0;
		++*n;
	}
	fclose(f);
	return true;
}

static struct line *find(struct line *from, unsigned n, const char *key)
{
	for (unsigned k = 0; k < n; k++)
		if (!strcmp(from[k].key, key))
			return &from[k];
	return NULL;
}

bool golden_open(void)
{
	const char *to = getenv("GOLDEN_WRITE"), *with = getenv("GOLDEN"),
		   *differ = getenv("GOLDEN_DIFFERENCES");
	if (to && !(out = fopen(to, "a"))) {
		printf("FAILED %s: cannot be written\n", to);
		return false;
	}
	return (!with || read_file(with, 1, lines, &nlines)) &&
	       (!differ || read_file(differ, 0, differences, &ndifferences));
}

void golden_begin(const char *key, golden_near *near, const void *what)
{
	snprintf(now.key, sizeof now.key, "%s", key);
	now.near = near;
	now.what = what;
	now.in = now.result = 14695981039346656037u;
	now.n = 0;
}

void golden_input(const void *p, size_t n)
{
	mix(&now.in, p, n);
}

void golden_result(uint64_t v)
{
	mix(&now.result, &v, sizeof v);
	if (now.n < GOLDEN_WORDS)
		now.word[now.n++] = v;
}

static void write_line(void)
{
	fprintf(out, "%c\t%s\t%016llx\t", now.near ? 'A' : 'E', now.key, (unsigned long long)now.in);
	if (now.near)
		for (unsigned k = 0; k < now.n; k++)
			fprintf(out, "%s%llx", k ? " " : "", (unsigned long long)now.word[k]);
	else
		fprintf(out, "%016llx", (unsigned long long)now.result);
	fputc('\n', out);
}

/* 0: as recorded; else the first word that is not, from 1. */
static unsigned compare(const struct line *l, const char **problem)
{
	char *p;
	*problem = "results";
	if (strtoull(l->rest, &p, 16) != now.in || *p != '\t') {
		*problem = "inputs (record them again on a GPU)";
		return 1;
	}
	if (!now.near)
		return strtoull(p + 1, NULL, 16) != now.result;
	for (unsigned k = 0; k < now.n; k++) {
		char *start = p + 1;
		uint64_t w = strtoull(start, &p, 16);
		if (p == start)
			return k + 1;
		if (!now.near(now.what, now.word[k], w)) {
			printf("  word %u is %#llx, recorded %#llx\n", k, (unsigned long long)now.word[k],
				(unsigned long long)w);
			return k + 1;
		}
	}
	return 0;
}

bool golden_end(void)
{
	if (out)
		write_line();
	if (!nlines)
		return true;
	struct line *l = find(lines, nlines, now.key), *d = find(differences, ndifferences, now.key);
	if (!l || l->text[0] == 'R') {
		unknown += !l;
		refused += l != NULL;
		if (l)
			l->seen = true;
		return true;
	}
	l->seen = true;
	const char *problem;
	bool same = !compare(l, &problem);
	if (d) {
		listed++;
		if (same)
			printf("FAILED %s: listed as different from the GPU, and is not\n", now.key);
		wrong += same;
		return !same;
	}
	equal += same;
	wrong += !same;
	if (!same)
		printf("FAILED %s: other %s than a GPU's\n", now.key, problem);
	return same;
}

bool golden_refused(const char *key, const char *reason)
{
	if (out)
		fprintf(out, "R\t%s\t%s\n", key, reason);
	printf("refused: %s: %s\n", key, reason);
	return out;
}

bool golden_close(const char *prefix)
{
	if (out && fclose(out)) {
		printf("FAILED to write the golden file\n");
		return false;
	}
	out = NULL;
	unsigned left = 0;
	for (unsigned k = 0; k < nlines; k++)
		if (!lines[k].seen && !strncmp(lines[k].key, prefix, strlen(prefix))) {
			printf("FAILED %s: recorded, but no case\n", lines[k].key);
			left++;
		}
	if (nlines)
		printf("golden: %u cases as on a GPU, %u known to differ, %u not recorded, %u not valid "
		       "there\n",
			equal, listed, unknown, refused);
	for (unsigned k = 0; k < nlines; k++)
		free(lines[k].text);
	for (unsigned k = 0; k < ndifferences; k++)
		free(differences[k].text);
	nlines = ndifferences = 0;
	return !left && !wrong;
}
