/* SPDX-License-Identifier: Apache-2.0 */
/* Is a mnemonic PTX at all? A module with an instruction that the engine lacks loads; one with a word that is
 * no instruction does not.
 *
 * Thread rule: constants only. */
#pragma once
#include <stdbool.h>

/* `mnemonic` as the engine tells it: "tex.2d.v4.f32.f32 at line 12". */
bool opcode_known(const char *mnemonic);
