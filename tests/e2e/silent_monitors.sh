#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Connections of mounts that never begin their handshake: they keep nobody out, and are gone after the
# handshake's time.
. "$(dirname "$0")/lib.sh"
requires mount python3
"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
cp "$work/alice" "$work/keys"
chmod 600 "$work/keys"
start_server --keys "$work/keys"
mkfifo "$work/crowd.in"
exec {crowd}<>"$work/crowd.in"
at_most 60 python3 "$top/tests/e2e/progs/crowd.py" "${address##*:}" silent 200 <"$work/crowd.in" \
	>"$work/crowd.out" 2>&1 &
at_exit end TERM $!
within 30 test -s "$work/crowd.out" || fail "the crowd is not there"
contains "$work/crowd.out" silent || fail "the crowd: $(cat "$work/crowd.out")"
start=$(now_ms)
start_mount -o "key=$work/alice"
[ $(($(now_ms) - start)) -lt $((5000 * slow)) ] ||
	fail "a mount beside the crowd took $(($(now_ms) - start)) ms"
run_program small | grep -q right || fail "no service beside the crowd"
echo >&"$crowd"
