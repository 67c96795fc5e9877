/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's view of its inputs: forms, as a real driver's linker takes and refuses them, and names.
 *
 * Thread rule: a link is one thread's alone. */
#include "server/soft/link_input.h"
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/archive.h"
#include "server/soft/module.h"

/* ---- forms */

enum form { TEXT, FATBIN, LINKED, OBJECT, CUBIN, ARCHIVE };
enum {
	IMAGE = CUDA_ERROR_INVALID_IMAGE,
	ODD = CUDA_ERROR_UNKNOWN,
	NONE = CUDA_ERROR_NO_BINARY_FOR_GPU
};

static enum form form_of(const char *data, size_t size)
{
	if (archive_is(data, size))
		return ARCHIVE;
	if (archive_is_object(data, size))
		return OBJECT;
	if (size >= 4 && !memcmp(data, "\177ELF", 4))
		return CUBIN;
	if (image_is_linked(data, size))
		return LINKED;
	return image_is_fatbin(data, size) ? FATBIN : TEXT;
}

/* What machine code is answered as is not in the table: this device has nothing for it. */
CUresult link_form(CUjitInputType type, const void *data, size_t size)
{
	/* in the order of the types: cubin, PTX, fat binary, object, library */
	static const short answers[][CU_JIT_INPUT_LIBRARY + 1] = {
		[TEXT] = {IMAGE, 0, 0, ODD, IMAGE},
		[FATBIN] = {IMAGE, 0, 0, ODD, ODD},
		[LINKED] = {NONE, 0, 0, ODD, ODD},
		[OBJECT] = {ODD, IMAGE, IMAGE, 0, ODD},
		[CUBIN] = {0, 0, 0, IMAGE, 0},
		[ARCHIVE] = {IMAGE, IMAGE, IMAGE, ODD, 0},
	};
	if (type == CU_JIT_INPUT_NVVM)
		return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
	return (CUresult)answers[form_of(data, size)][type];
}

/* ---- names */

struct link_name {
	const char *name, *input; /* both in text */
	bool weak;
	char text[];
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct link_name *)a)->name, ((const struct link_name *)b)->name);
}

/* The name in that tree, put there by this input if it was not; NULL: memory is short. */
static struct link_name *name_of(void **tree, const struct engine_name *n, const char *input, bool *fresh)
{
	struct link_name key = {.name = n->name}, *made, **at = tfind(&key, tree, compare);
	size_t bytes = strlen(n->name) + 1;
	*fresh = !at;
	if (at)
		return *at;
	made = malloc(sizeof *made + bytes + strlen(input) + 1);
	if (!made)
		return NULL;
	*made = (struct link_name){.name = memcpy(made->text, n->name, bytes),
		.input = strcpy(made->text + bytes, input),
		.weak = n->kind == ENGINE_NAME_WEAK};
	if (tsearch(made, tree, compare))
		return made;
	free(made);
	return NULL;
}

/* One part of one input on its way in. */
struct adding {
	struct link_names *names;
	const char *input;
	struct jit *jit;
	bool *twice;
};

static bool add(void *arg, const struct engine_name *n)
{
	const struct adding *a = arg;
	bool used = n->kind == ENGINE_NAME_USED, fresh;
	struct link_name *have = name_of(used ? &a->names->used : &a->names->defined, n, a->input, &fresh);
	if (!have || fresh || used || n->kind == ENGINE_NAME_WEAK)
		return have;
	if (have->weak) {
		have->weak = false;
		return true;
	}
	jit_error(a->jit, "error   : Multiple definition of '%s' in '%s', first defined in '%s'", n->name,
		a->input, have->input);
	return *a->twice = true;
}

bool link_names_add(
	struct link_names *l, struct engine_module *part, const char *input, struct jit *jit, bool *twice)
{
	return engine_names(part, add, &(struct adding){l, input, jit, twice});
}

/* What is looked for, and whether all was there. */
struct looking {
	const struct link_names *names;
	struct jit *jit;
	bool device_runtime, missing;
};

static void look(const void *at, VISIT visit, void *arg)
{
	const struct link_name *n = *(struct link_name *const *)at;
	struct looking *l = arg;
	if ((visit != postorder && visit != leaf) || tfind(n, &l->names->defined, compare) ||
		(l->device_runtime && module_of_device_runtime(n->name)))
		return;
	jit_error(l->jit, "error   : Undefined reference to '%s' in '%s'", n->name, n->input);
	l->missing = true;
}

bool link_names_complete(const struct link_names *l, bool device_runtime, struct jit *jit)
{
	struct looking looking = {l, jit, device_runtime, false};
	twalk_r(l->used, look, &looking);
	return !looking.missing;
}

void link_names_free(struct link_names *l)
{
	tdestroy(l->defined, free);
	tdestroy(l->used, free);
}
