#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole tree lists and reads while the server is dead, without hanging; status tells, and why; and it is
# ready again by itself when the server is back.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
[ "$(cat "$mnt/status")" = ready ] || fail "status is '$(cat "$mnt/status")'"
pkill -KILL -P "$server"
kill -KILL "$server"
wait "$server" 2>/dev/null
lost()
{
	[ "$(at_most 5 cat "$mnt/status")" != ready ]
}
within 10 lost || fail "status stays '$(cat "$mnt/status")'"
start=$(now_ms)
at_most 10 ls -lR "$mnt" >/dev/null || fail "the tree does not list"
find "$mnt" -type f ! -name ctl -exec timeout $((5 * slow)) cat {} + >/dev/null 2>&1
[ $(($(now_ms) - start)) -lt $((3000 * slow)) ] || fail "listing and reading took $(($(now_ms) - start)) ms"
"$bin/scudafs" status "$mnt" >"$work/out" && fail "scudafs status calls it ready: $(cat "$work/out")"
contains "$work/out" 'lost: ' || fail "scudafs status does not say why: $(cat "$work/out")"
within 10 contains "$mnt"/servers/*/reason 'connection refused: start scuda-server there' ||
	fail "the tree does not say why: $(cat "$mnt"/servers/*/reason)"
start_server --listen "$address"
ready()
{
	[ "$(cat "$mnt/status")" = ready ]
}
within 15 ready || fail "status is '$(cat "$mnt/status")' after the server came back"
[ -e "$(echo "$mnt"/servers/*)/reason" ] && fail "the reason stays: $(cat "$mnt"/servers/*/reason)"
[ -e "$mnt/gpu0/name" ] || fail "gpu0 is gone"
