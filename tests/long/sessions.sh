#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 3600
# SESSIONS (10000) short sessions of one mount, some of them killed: neither the daemon nor the server's
# listener and monitor grow by them. The first fifth fills what they keep.
. "$(dirname "$0")/../e2e/lib.sh"
requires mount
sessions=${SESSIONS:-10000}
start_server
start_mount
memory() # of daemon, listener and monitor: KiB each
{
	local p
	for p in "$(daemon)" "$server" "$monitor"; do
		awk '/^VmRSS/ {print $2}' "/proc/$p/status"
	done | xargs
}
some() # COUNT
{
	at_most 3000 "$bin/scudafs" run --mount "$mnt" -- "$progs/sessions" "$1" >"$work/sessions.out" 2>&1 ||
		fail "$(cat "$work/sessions.out")"
	within 10 no_sessions || fail "sessions are left: $(sessions | wc -w)"
}
some $((sessions / 5))
before=$(memory)
some $((sessions - sessions / 5))
after=$(memory)
descriptors=$(ls "/proc/$(daemon)/fd" | wc -l)
echo "$sessions sessions: KiB of daemon, listener, monitor: $before, then $after; $descriptors descriptors"
read -r -a b <<<"$before"
read -r -a a <<<"$after"
for i in 0 1 2; do
	[ $((a[i] - b[i])) -le $((1024 + sessions / 20)) ] || fail "one grew"
done
[ "$descriptors" -le 40 ] || fail "the daemon keeps descriptors"
