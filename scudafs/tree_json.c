/* SPDX-License-Identifier: Apache-2.0 */
/* The whole tree as one object, for programs: status.json. Thread rule: any thread. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/tree.h"
#include "scudafs/tree_values.h"

static bool all_digits(const char *s)
{
	return *s && strlen(s) <= 18 && !s[strspn(s, "0123456789")];
}

static bool add_json(void *arg, const char *name, uint64_t node)
{
	json_t *value = NULL;
	const struct entry *e = tree_entry(node);
	char *text;
	size_t n;
	unsigned server;
	if (tree_is_session(node, &server) || (e && e->show == tree_show_json))
		return true;
	if (tree_is_folder(node)) {
		value = json_object();
		tree_list(node, add_json, value);
	} else if (!tree_read(node, &text, &n)) {
		if (n && text[n - 1] == '\n')
			text[n - 1] = '\0';
		bool number = all_digits(text) && !(e && e->word);
		value = number ? json_integer(atoll(text)) : json_string(text);
		free(text);
	}
	if (value)
		json_object_set_new(arg, name, value);
	return true;
}

int tree_show_json(FILE *f, unsigned object)
{
	json_t *root = json_object();
	(void)object;
	if (!root)
		return -ENOMEM;
	tree_list(TREE_ROOT, add_json, root);
	int e = json_dumpf(root, f, JSON_INDENT(2)) ? -ENOMEM : 0;
	fputc('\n', f);
	json_decref(root);
	return e;
}
