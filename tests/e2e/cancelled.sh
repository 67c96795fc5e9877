#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A thread that was cancelled (pthread_cancel) is not ended inside of a call: quietly, and with all that
# writes files beside the calls.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program cancelled "$work/image" "$work/graph" >"$work/quiet" || fail "a call is a cancellation point"
contains "$work/quiet" '^right' && contains "$work/quiet" '^print' || fail "it is not through"
contains "$work/graph" digraph || fail "the graph was not written"
mkdir "$work/hops" "$work/stats"
SCUDAFS_LOG=debug SCUDAFS_HOPS=$work/hops SCUDAFS_STATS=$work/stats SCUDAFS_TRACE=$work/trace \
	run_program cancelled "$work/image" "$work/graph" >"$work/loud" 2>"$work/loud.err" ||
		fail "one is that writes"
contains "$work/loud" '^right' || fail "it is not through when it writes"
for f in "$work"/hops/* "$work"/stats/* "$work/trace"; do
	[ -s "$f" ] || fail "$f is empty"
done
