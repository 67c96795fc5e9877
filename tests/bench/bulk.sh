#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large copies through the mount, and natively: GB/s, and seconds a GB of each busy thread of program, daemon
# and server; beside the connection's bandwidth of the same run, and with `ways` what other ways through a
# socket could do on this machine (ways.c). Variables as in lib.sh.
#
#     bulk.sh [ways] [MIB [SECONDS [WAY...]]]
. "$(dirname "$0")/lib.sh"
[ "${1:-}" != ways ] || {
	shift
	"$tools/ways"
}
measure_network
echo "network of this run: round trip $rtt us, one connection $bw GB/s"
native "$work/native" 60 "$tools/bulk" "$@"
sed -n 's/^\([a-z-]* [0-9.]*\)$/native \1/p' "$work/native"
bench_server
start_mount
through "$work/ours" 90 "$tools/bulk" "$@" daemon="$(daemon)" ${server:+server="$server"}
cat "$work/ours"
[ -s "$work/ours" ] || fail "nothing was measured: $(cat "$work/ours.err")"
