#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 150
# A network of 50 ms there and back, whose packets overtake each other and of which one in a hundred is lost:
# slow, but every result is right and nothing takes it for dead.
. "$(dirname "$0")/lib.sh"
requires mount root ip unshare python3
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
if [ -z "${BAD_NETWORK:-}" ]; then
	unshare -mn true 2>/dev/null || skip "no namespaces"
	rm -rf "$work"
	BAD_NETWORK=1 exec unshare -mn "$0"
fi
ip link set lo up
unshare -n sleep 600 &
far=$!
at_exit end TERM "$far"
other()
{
	[ "$(readlink "/proc/$far/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
within 5 other || fail "no other network"
mkfifo "$work/cable.in"
exec {cable}<>"$work/cable.in"
python3 "$top/tests/e2e/progs/cable.py" $$ 10.99.3.1 "$far" 10.99.3.2 22 6 1 <"$work/cable.in" \
	>"$work/cable.out" 2>"$work/cable.err" &
at_exit end TERM $!
within 10 contains "$work/cable.out" carrying || skip "no tun device: $(tail -n 1 "$work/cable.err")"

"$bin/scudafs" keygen far "$work/key" 2>/dev/null
at_exit stop_server
nsenter -t "$far" -n "$bin/scuda-server" --ready-fd 3 --driver "$driver" --keys "$work/key" \
	--listen 10.99.3.2:0 3>"$work/port" 2>"$work/server.log" &
server=$!
within 10 server_is_up || fail "the server is not up"
monitor=$(pgrep -P "$server" | head -n 1)
address=10.99.3.2:$(head -n 1 "$work/port")
start_mount -o "key=$work/key"
start=$(now_ms)
run_program small | grep -q right || fail "no service"
echo "a small program took $(($(now_ms) - start)) ms"
# What it copies, launches and reads is checked by the program.
for tag in a b; do
	start_program $tag steady
done
for tag in a b; do
	expect $tag 40 working
done
at_most 60 "$bin/scudafs" run --mount "$mnt" -- "$progs/large" </dev/null >"$work/large.out" 2>&1 ||
	fail "large copies: $(cat "$work/large.out")"
for tag in a b; do
	tell $tag
	expect $tag 40 rounds
	echo "$tag: $(tail -n 1 "$work/$tag.out")"
done
[ "$(cat "$mnt/status")" = ready ] || fail "the mount is $(cat "$mnt/status")"
[ "$(cat "$mnt/stats/reconnects")" = 0 ] ||
	fail "the monitor lost its connection $(cat "$mnt/stats/reconnects") times"
echo >&"$cable"
within 5 contains "$work/cable.out" carried || fail "the cable: $(cat "$work/cable.err")"
tail -n 1 "$work/cable.out"
grep -qE 'dropped [1-9][0-9]* overtaken [1-9]' "$work/cable.out" || fail "nothing was lost or overtaken"
exit 0
