#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse two
# limit: 120
# A network that swallows everything for a while: for 3 or 4 s nothing happens but a pause; for good, every
# kind of waiting call, and a copy in the middle, gives an error within 10 s, the server has freed their
# sessions as soon, those of programs that are stopped in a copy, too, and a mount or program that starts
# meanwhile says so in 5 s; mended, all works without remounting.
. "$(dirname "$0")/lib.sh"
requires mount root ip unshare setpriv
apart -mn
ip link set lo up
new_network() # its pid is in $!
{
	setpriv --pdeathsig KILL unshare -n sleep 600 &
	at_exit end TERM $!
	within 5 is_other $! || fail "no other network"
}
is_other()
{
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
new_network
middle=$!
new_network
far=$!
in_middle() { nsenter -t "$middle" -n "$@"; }
in_far() { nsenter -t "$far" -n "$@"; }
ip link add near type veth peer name left netns "$middle" 2>"$work/err" || skip "no veth: $(cat "$work/err")"
in_middle ip link add right type veth peer name far netns "$far"
ip addr add 10.99.1.1/24 dev near
ip link set near up
in_middle ip addr add 10.99.1.2/24 dev left
in_middle ip link set left up
in_middle ip addr add 10.99.2.1/24 dev right
in_middle ip link set right up
in_far ip addr add 10.99.2.2/24 dev far
in_far ip link set far up
ip route add 10.99.2.0/24 via 10.99.1.2
in_far ip route add 10.99.1.0/24 via 10.99.2.1
# What does not pass in the middle vanishes without a word to either side.
cable() # up | down
{
	in_middle sh -c 'echo '"$([ "$1" = up ] && echo 1 || echo 0)"' >/proc/sys/net/ipv4/ip_forward'
}
cable up

"$bin/scudafs" keygen far "$work/key" 2>/dev/null
at_exit stop_server
# Not by in_far, a function: its process would not be the server's.
nsenter -t "$far" -n "$bin/scuda-server" --ready-fd 3 --driver "$driver" --keys "$work/key" \
	--insecure-no-auth --listen 10.99.2.2:0 3>"$work/port" 2>"$work/server.log" &
server=$!
within 10 server_is_up || fail "the server is not up"
monitor=$(pgrep -P "$server" | head -n 1)
address=10.99.2.2:$(head -n 1 "$work/port")
secure=(-o "key=$work/key")
[ -z "$two" ] || secure=() # a second connection is one in clear
start_mount "${secure[@]}"
run_program small | grep -q right || fail "no service over the network"

start_program patient steady
expect patient 20 working
moved_on() # BYTES
{
	[ "$(cat "$mnt/stats/bytes_in")" -gt $(($1 + (1 << 20))) ]
}
# At 4 s TCP by itself would try again at 6.2 s. The monitor, whose last answer may be 2 s old by then, may
# connect anew.
for pause in 3 4; do
	cable down
	read -r -t "$pause" <>"$clock"
	bytes=$(cat "$mnt/stats/bytes_in")
	cable up
	start=$(now_ms)
	within 5 moved_on "$bytes" ||
		fail "nothing moves 5 s after a pause of $pause s: $(cat "$work/patient.err")"
	echo "it moves on $(($(now_ms) - start)) ms after a pause of $pause s"
done
tell patient
expect patient 20 rounds
within 5 contains "$mnt/status" ready || fail "after 4 s without a network the mount is $(cat "$mnt/status")"

ways="sync read alloc to_device to_host pinned_to_host host"
for w in $ways; do
	start_program "$w" waits "$w"
done
for w in $ways; do
	expect "$w" 40 working
done
halted="to_device to_host pinned_to_device"
for w in $halted; do
	start_program "halted_$w" waits "$w"
done
for w in $halted; do
	expect "halted_$w" 40 working
	kill -STOP "${pid[halted_$w]}"
done
start_program up bigcopy
expect up 20 copying
cable down
start=$(now_ms)
start_program late count
for w in $ways; do
	within 12 said "$w" '^code' || fail "$w still waits after $(($(now_ms) - start)) ms"
	took=$(($(now_ms) - start))
	[ "$took" -le $((10000 * slow)) ] || fail "$w: the error came after $took ms"
	said "$w" '^code 806 ' || fail "$w: $(cat "$work/$w.out")"
done
left() # SECONDS: how many of them are left since the cut; `within` stretches them
{
	echo $((($1 * slow - ($(now_ms) - start) / 1000 + slow - 1) / slow))
}
within "$(left 11)" gone "${pid[up]}" || fail "a copy still waits after $(($(now_ms) - start)) ms"
expect late 10 '^init'
said late 'init 0 ' && fail "cuInit succeeded without a network"
mkdir "$work/second"
began=$(now_ms)
"$bin/scudafs" mount "$address" "$work/second" "${secure[@]}" 2>"$work/err" &&
	fail "a mount succeeded without a network"
took=$(($(now_ms) - began))
[ "$took" -le $((6000 * slow)) ] || fail "a mount without a network took $took ms"
contains "$work/err" "$address" || fail "a mount without a network: $(cat "$work/err")"
at_most 2 ls -R "$mnt" >/dev/null || fail "the tree does not list"
contains "$mnt/status" lost || fail "without a network the mount is $(cat "$mnt/status")"
within "$(left 12)" no_sessions ||
	fail "sessions are left $(($(now_ms) - start)) ms after the cut: $(sessions)"
for w in $halted; do
	kill -CONT "${pid[halted_$w]}"
done
for w in $halted; do
	within 12 said "halted_$w" '^code 806 ' || fail "$w, which was stopped: $(cat "$work/halted_$w.out")"
done

cable up
works()
{
	run_program small 2>/dev/null | grep -q right
}
within 15 works || fail "after the network is back: $(run_program small 2>&1)"
