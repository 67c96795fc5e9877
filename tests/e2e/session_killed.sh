#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# One session's process is killed: its program gets a CUDA error within 2 s, another program and new ones do
# not notice.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

start_program other steady
expect other 20 working
before=$(sessions)
start_program victim block
expect victim 20 blocking
session=$(comm -13 <(sort <<<"$before") <(sessions | sort))
[ "$(wc -w <<<"$session")" = 1 ] || fail "the victim's session is '$session' (before: $before)"
killed=$(now_ms)
kill -KILL $session
expect victim 3 '^code'
[ $(($(now_ms) - killed)) -lt $((2000 * slow)) ] || fail "the error came after $(($(now_ms) - killed)) ms"
said victim '^code 8[01][0-9] ' || fail "$(cat "$work/victim.out")"
run_program small | grep -q right || fail "a new program does not work"
tell other
expect other 10 rounds
