/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's inputs that are machine code, or code that is optimised when it is linked. A device that runs
 * PTX alone says of each that it has nothing for it. */
#include "parts.h"

static void machine_code(void)
{
	begin();
	for (int file = 0; file < 2; file++)
		link_parts(
			CU_JIT_INPUT_CUBIN, "caller.cubin", CU_JIT_INPUT_CUBIN, "callee.cubin", file, 0, 0);
	link_parts(CU_JIT_INPUT_CUBIN, "caller.cubin", CU_JIT_INPUT_PTX, "callee.ptx", false, 0, 0);
	link_parts(CU_JIT_INPUT_PTX, "caller.ptx", CU_JIT_INPUT_CUBIN, "callee.cubin", false, 0, 0);
	link_parts(CU_JIT_INPUT_CUBIN, "caller.cubin", CU_JIT_INPUT_LIBRARY, "both.a", false, 0, 0);
	link_parts(CU_JIT_INPUT_OBJECT, "caller.cubin", CU_JIT_INPUT_OBJECT, "callee.cubin", false, 0, 0);
	link_parts(
		CU_JIT_INPUT_FATBINARY, "caller.cubin", CU_JIT_INPUT_FATBINARY, "callee.cubin", false, 0, 0);
}

static void optimised(void)
{
	begin();
	for (unsigned lto = 0; lto < 2; lto++) {
		link_parts(CU_JIT_INPUT_NVVM, "caller.ltoir", CU_JIT_INPUT_NVVM, "callee.ltoir", false,
			CU_JIT_LTO, lto);
		link_parts(CU_JIT_INPUT_OBJECT, "caller.lto.o", CU_JIT_INPUT_OBJECT, "callee.lto.o", false,
			CU_JIT_LTO, lto);
		link_parts(CU_JIT_INPUT_LIBRARY, "both.lto.a", CU_JIT_INPUT_LIBRARY, NULL, true, CU_JIT_LTO,
			lto);
		link_parts(CU_JIT_INPUT_OBJECT, "caller.lto.o", CU_JIT_INPUT_PTX, "callee.ptx", false,
			CU_JIT_LTO, lto);
	}
}

SECTIONS({"machine_code", machine_code}, {"optimised", optimised})
