#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking
# Threads that copy to the host in every way and poll, beside host functions: the bytes are there when a call
# says so, and nobody waits for a thread that waits.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program polls $((3 * slow)) >"$work/polls.out" || fail "$(cat "$work/polls.out")"
[ "$(sed -n 's/^rounds \([0-9]*\),.*/\1/p' "$work/polls.out")" -ge 50 ] ||
	fail "few rounds: $(cat "$work/polls.out")"
