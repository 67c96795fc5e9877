#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# Two hundred programs at once: each computes right, or is told at once that there are too many (808);
# nothing is left of them, nor of a hundred that are killed at any moment of their short lives.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
export SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$lib
"$progs/small" >/dev/null || fail "small"
memory() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
descriptors() { ls "/proc/$1/fd" | wc -l; }
before_d=$(descriptors "$(daemon)") before_s=$(descriptors "$server")

crowd=200 least=128
[ -z "$sanitizer" ] || crowd=30 least=30 # it takes minutes to start 200
jobs=()
for i in $(seq $crowd); do
	at_most 120 "$progs/small" >"$work/$i.said" 2>&1 &
	jobs+=($!)
done
right=0 refused=0
for i in $(seq $crowd); do
	if wait "${jobs[i - 1]}"; then
		contains "$work/$i.said" right || fail "program $i: $(cat "$work/$i.said")"
		right=$((right + 1))
	else
		contains "$work/$i.said" 'MAX_CLIENTS_REACHED\|(808)' ||
			fail "program $i: $(cat "$work/$i.said")"
		refused=$((refused + 1))
	fi
done
echo "$right right, $refused refused"
[ "$right" -ge $least ] || fail "only $right programs of $crowd were served"
within 10 no_sessions || fail "sessions are left: $(sessions | wc -w)"

for i in $(seq 100); do
	"$progs/small" >/dev/null 2>&1 &
	victim=$!
	read -r -t "0.$(printf %03d $((RANDOM % 80)))" <>"$clock"
	kill -KILL "$victim"
	wait "$victim"
done 2>/dev/null
within 10 no_sessions || fail "sessions of killed programs are left: $(sessions | wc -w)"
as_before()
{
	[ "$(descriptors "$(daemon)")" -le $((before_d + 4)) ] &&
		[ "$(descriptors "$server")" -le $((before_s + 2)) ]
}
within 10 as_before ||
	fail "descriptors: $(descriptors "$(daemon)") of $before_d, $(descriptors "$server") of $before_s"
[ -z "$(ls "$mnt/sessions")" ] || fail "the mount lists sessions: $(ls "$mnt/sessions")"
"$progs/small" | grep -q right || fail "no service after the crowd"
echo "the daemon has $(memory "$(daemon)") KiB"
