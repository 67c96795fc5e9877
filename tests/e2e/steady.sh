#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# In a steady state nothing waits for the server: ten more steps of a program that launches, copies to the
# device, records events and asks what frameworks ask cost no round trip, and with a read-back in each
# exactly ten. And the start: round trips ahead of the first kernel.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount

step() # FILE STEPS HOW
{
	at_most 30 "$bin/scudafs" run --mount "$mnt" --stats="$work/$1" -- "$progs/iteration" "$2" "$3" ||
		fail "iteration $2 $3"
}
step warm 1 read
# On a machine with much else to do the device falls so far behind that a host function has to wait for room:
# that happens, but not three times in a row.
ten_steps_are_free() # none | read
{
	local how=$1
	step few 2 $how
	step more 12 $how
	python3 - "$work/few" "$work/more" $how <<-'PY'
		import json, sys
		few, more = (json.load(open(f)) for f in sys.argv[1:3])
		want = {"cuMemcpyDtoH_v2": 10} if sys.argv[3] == "read" else {}
		before = few["waits"]
		waited = {k: n - before.get(k, 0) for k, n in more["waits"].items() if n != before.get(k, 0)}
		trips = more["round_trips"] - few["round_trips"]
		kinds = ("local", "cached", "post", "wait", "round_trips")
		print(sys.argv[3], "ten steps:", {k: more[k] - few[k] for k in kinds}, waited)
		assert waited == want, f"waited: {waited}"
		assert trips == sum(want.values()), f"{trips} round trips"
		# The steps were there: 27 launches and copies and the like each, which nobody waited for.
		assert more["calls"]["cuLaunchKernel"] - few["calls"]["cuLaunchKernel"] == 120
		assert more["post"] - few["post"] >= 270
		assert more["local"] - few["local"] >= 500 and more["cached"] - few["cached"] >= 200
	PY
}
for how in none read; do
	ten_steps_are_free $how || ten_steps_are_free $how || ten_steps_are_free $how || fail "$how"
done

# The start. A trace shows what came before the first kernel; the first run of a program teaches the server
# its module.
before_first_kernel() # MOST PROGRAM [ARGUMENT...]
{
	local most=$1 n
	shift
	rm -f "$work/trace"
	SCUDAFS_TRACE=$work/trace at_most 30 "$bin/scudafs" run --mount "$mnt" -- "${foreign[@]}" "$@" \
		>"$work/out" || fail "$1: $(tail -n 1 "$work/out")"
	grep -q ' cuLaunchKernel' "$work/trace" || fail "$1 launched nothing"
	n=$(sed '/ cuLaunchKernel/,$d' "$work/trace" | grep -c ' wait ')
	echo "${1##*/}: $n round trips before the first kernel"
	[ "$n" -le "$most" ] || fail "$n: $(sed '/ cuLaunchKernel/,$d' "$work/trace" | grep ' wait ')"
}
before_first_kernel 8 "$progs/counted" 1 return
apps=${SCUDAFS_TEST_APPS:-$B/tests/apps}
[ ! -x "$apps/vectoradd" ] || before_first_kernel 8 "$apps/vectoradd"
[ ! -x "$apps/vectoradd" ] || before_first_kernel 8 "$apps/vectoradd"
