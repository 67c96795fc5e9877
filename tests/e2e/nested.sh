#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A call inside a begun call: the one that had begun is refused, with a line in the log, and the session goes
# on. Under a sanitizer, as in development, the program ends there.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
SCUDAFS_LOG=error run_program nested >"$work/nested.out" 2>"$work/nested.err"
status=$?
contains "$work/nested.err" 'another call was made before it had ended' || fail "nothing tells of it"
if [ -n "$sanitizer" ]; then
	[ $status = 134 ] || fail "the program did not end there: $status"
else
	contains "$work/nested.out" right || fail "the session did not go on: $status"
fi
within 3 no_sessions || fail "a session is left: $(sessions)"
