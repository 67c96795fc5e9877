#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking
# Bytes of a copy to the host are in place for whoever learns of its end, also when another thread's answer
# brought them.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
for i in 1 2 3; do
	run_program told | grep -q told || fail "a thread went on before the bytes were there"
done

# More at once than one answer tells, and than the arena of the server holds.
for copies in "5000 4" "2000 4096"; do
	# shellcheck disable=SC2086 # two words
	run_program crowded $copies | grep -q crowded || fail "copies $copies"
done
