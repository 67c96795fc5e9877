/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's inputs, in those of their forms that hold PTX: text, fat binary, object, archive, from memory
 * and from files, mixed, wrong, missing, in a wrong order of calls. Machine code is in linkcode.c. */
#include "parts.h"

static void forms(void)
{
	begin();
	for (int file = 0; file < 2; file++) {
		link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", file, 0, 0);
		link_parts(CU_JIT_INPUT_FATBINARY, "caller.fatbin", CU_JIT_INPUT_FATBINARY, "callee.fatbin",
			file, 0, 0);
		link_parts(CU_JIT_INPUT_OBJECT, "caller.o", CU_JIT_INPUT_OBJECT, "callee.o", file, 0, 0);
		link_parts(CU_JIT_INPUT_LIBRARY, "both.a", CU_JIT_INPUT_LIBRARY, NULL, file, 0, 0);
	}
}

static void together(void)
{
	begin();
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_OBJECT, "callee.o", false, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "caller.o", CU_JIT_INPUT_PTX, "callee.ptx", false, 0, 0);
	link_parts(CU_JIT_INPUT_FATBINARY, "caller.fatbin", CU_JIT_INPUT_LIBRARY, "both.a", false, 0, 0);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_LIBRARY, "both.a", false, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "callee.o", CU_JIT_INPUT_OBJECT, "caller.o", true, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "caller.o", CU_JIT_INPUT_OBJECT, "caller.o", false, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "caller.o", CU_JIT_INPUT_OBJECT, NULL, false, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "callee.o", CU_JIT_INPUT_OBJECT, NULL, false, 0, 0);
}

/* Each form as each type. */
static void wrong_types(void)
{
	static const char *const names[] = {"caller.ptx", "caller.fatbin", "caller.o", "both.a"};
	static const CUjitInputType types[] = {CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX, CU_JIT_INPUT_FATBINARY,
		CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_NVVM, 77};
	CUlinkState l;

	begin();
	for (size_t i = 0; i < COUNT(names); i++)
		for (size_t k = 0; k < COUNT(types); k++) {
			NEED(cuLinkCreate(0, NULL, NULL, &l));
			add_part(l, types[k], names[i], false);
			ASK(cuLinkDestroy(l));
		}
}

static void options(void)
{
	begin();
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false,
		CU_JIT_OPTIMIZATION_LEVEL, 2);
	link_parts(
		CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false, CU_JIT_LOG_VERBOSE, 1);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false,
		CU_JIT_GENERATE_LINE_INFO, 1);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false,
		CU_JIT_MAX_REGISTERS, 32);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false, CU_JIT_LTO, 1);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_PTX, "callee.ptx", false, CU_JIT_TARGET, 31);
}

/* A link of both inputs, to be completed. */
static CUlinkState of_both(void)
{
	CUlinkState l;

	NEED(cuLinkCreate(0, NULL, NULL, &l));
	add_part(l, CU_JIT_INPUT_PTX, "caller.ptx", false);
	add_part(l, CU_JIT_INPUT_PTX, "callee.ptx", false);
	return l;
}

/* In a wrong order, or again. */
static void order(void)
{
	CUlinkState l;
	CUmodule m;
	void *image = NULL, *again = NULL;
	size_t n = 0, k = 0;

	begin();
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	add_part(l, CU_JIT_INPUT_PTX, "caller.ptx", false);
	ASK(cuLinkComplete(l, &image, &n));
	add_part(l, CU_JIT_INPUT_PTX, "callee.ptx", false);
	ASK(cuLinkComplete(l, &image, &n));
	ASK(cuLinkDestroy(l));
	l = of_both();
	ASK(cuLinkComplete(l, &image, &n));
	ASK(cuLinkComplete(l, &again, &k));
	SAY("the same image %d", image == again && n == k);
	add_part(l, CU_JIT_INPUT_PTX, "callee.ptx", false);
	ASK(cuModuleLoadData(&m, image));
	ASK(cuLinkDestroy(l));
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	add_part(l, CU_JIT_INPUT_PTX, "callee.ptx", false);
	add_part(l, CU_JIT_INPUT_PTX, "callee.ptx", false);
	ASK(cuLinkComplete(l, &image, NULL));
	ASK(cuLinkDestroy(l));
	ASK(cuLinkCreate(1, NULL, NULL, &l));
}

/* The image of a link as the input of another, and as a library. */
static void images(void)
{
	CUlinkState l, next;
	CUlibrary lib;
	CUkernel f;
	void *image = NULL, *second = NULL;
	size_t n = 0, k = 0;

	begin();
	l = of_both();
	NEED(cuLinkComplete(l, &image, &n));
	ASK(cuLibraryLoadData(&lib, image, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryGetKernel(&f, lib, "call"));
	ASK(cuLibraryUnload(lib));
	NEED(cuLinkCreate(0, NULL, NULL, &next));
	if (!ASK(cuLinkAddData(next, CU_JIT_INPUT_CUBIN, image, n, "image", 0, NULL, NULL)) &&
		!ASK(cuLinkComplete(next, &second, &k)))
		use_image(second, k);
	ASK(cuLinkDestroy(next));
	use_image(image, n);
	ASK(cuLinkDestroy(l));
}

SECTIONS({"forms", forms}, {"together", together}, {"wrong_types", wrong_types}, {"options", options},
	{"order", order}, {"images", images})
