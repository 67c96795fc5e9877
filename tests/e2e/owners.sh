#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Functions and levels taken while another context is current do not end with that context, be they asked
# for, or taken without an answer because the server told of them.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
{
	printf '%s\n' '.version 7.0' '.target sm_70' '.address_size 64' \
		'.visible .entry add(.param .u64 p, .param .u32 v, .param .u32 n)' '{' \
		'.reg .b32 %r<3>;' '.reg .b64 %d;' 'ld.param.u64 %d, [p];' 'ld.param.u32 %r0, [v];' \
		'ld.global.u32 %r1, [%d];' 'add.u32 %r2, %r1, %r0;' \
		'st.global.u32 [%d], %r2;' 'ret;' '}'
	# So that it is worth keeping.
	yes '// nothing' | head -n 40000
} >"$work/add.ptx"
for how in asked told; do
	run_program owners "$work/add.ptx" >"$work/$how" 2>&1 || fail "$how: $(cat "$work/$how")"
	contains "$work/$how" '^right' || fail "$how: $(cat "$work/$how")"
done
