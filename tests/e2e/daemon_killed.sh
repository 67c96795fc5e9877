#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# The daemon is killed with -9: pending calls fail at once, the sessions end at the server, and the same
# folder can be mounted again without help.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

start_program victim block
expect victim 20 blocking
start_program poster poster
expect poster 20 posting
killed=$(now_ms)
kill -KILL $(daemon)
expect victim 3 '^code'
took=$(($(now_ms) - killed))
[ "$took" -lt $((2000 * slow)) ] || fail "the error came after $took ms"
expect poster 2 '^code'
said poster '^code 806$' || fail "who only posts was told: $(cat "$work/poster.out")"
said victim '^code 806 ' || fail "$(cat "$work/victim.out")"
expect victim 3 'later calls took'
within 3 no_sessions || fail "the server still has sessions: $(sessions)"
ls "$mnt" 2>/dev/null && fail "the dead mount lists"
"$bin/scudafs" status "$mnt" >"$work/status.out" && fail "status calls a dead mount ready"
contains "$work/status.out" gone || fail "status does not say that the daemon is gone"
start_mount
run_program small | grep -q right || fail "after mounting again"
[ "$(grep -c " $mnt " /proc/mounts)" = 1 ] || fail "mounts are stacked: $(grep "$mnt" /proc/mounts)"
