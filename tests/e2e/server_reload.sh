#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGHUP reads the keys again: a new name may come, one that was taken out may not, and its mount says so; a
# changed one is found in the client's file; a broken file changes nothing, and running sessions do not
# notice.
. "$(dirname "$0")/lib.sh"
requires mount

for name in alice bob; do
	"$bin/scudafs" keygen "$name" "$work/$name" 2>/dev/null
done
install -m 600 "$work/alice" "$work/keys"
start_server --keys "$work/keys"
start_mount -o "key=$work/alice"
start_program running steady
expect running 20 working

mkdir "$work/other"
mount_bob()
{
	"$bin/scudafs" mount "$address" "$work/other" -o "key=$work/bob" 2>"$work/err"
}
at_exit "$bin/scudafs" umount --lazy "$work/other"
mount_bob && fail "bob came in without being in the file"

cat "$work/bob" >>"$work/keys"
kill -HUP "$server"
within 5 contains "$work/server.log" 'keys read again' || fail "the log does not say that keys were read"
mount_bob || fail "bob is refused: $(cat "$work/err")"
"$bin/scudafs" umount "$work/other"

# A key that is taken out while the monitor has no room for one more order.
cp "$work/keys" "$work/both"
kill -STOP "$monitor"
python3 - "${address##*:}" <<'PY' || fail "no flood"
import socket, sys
for i in range(800):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"SCUD" + bytes([2, 3, 0, 0]) + bytes(16))
    s.close()
PY
within 10 contains "$work/server.log" 'monitor does not listen' || fail "800 connections fit into the queue"
install -m 600 "$work/alice" "$work/keys"
kill -HUP "$server"
read_times()
{
	[ "$(grep -c 'keys read again' "$work/server.log")" = "$1" ]
}
within 5 read_times 2 || fail "the keys were not read while the monitor stood still"
kill -CONT "$monitor"
bob_is_out()
{
	! mount_bob || ! "$bin/scudafs" umount "$work/other"
}
within 5 bob_is_out || fail "bob was taken out while the monitor stood still, and still mounts"
install -m 600 "$work/both" "$work/keys"
kill -HUP "$server"
within 5 read_times 3 || fail "the keys were not read after that"

echo rubbish >>"$work/keys"
kill -HUP "$server"
within 5 contains "$work/server.log" 'old keys stay' || fail "the broken file is not logged"
run_program small | grep -q right || fail "the old keys did not stay"

install -m 600 "$work/bob" "$work/keys"
kill -HUP "$server"
within 5 read_times 4 || fail "the keys were not read a second time"
run_program small >/dev/null 2>&1 && fail "alice is out of the file and still gets sessions"
within 10 contains "$mnt/status" lost ||
	fail "alice is out of the file, and her mount is $(cat "$mnt/status")"
tell running
expect running 10 rounds

# Another key for alice, at the server first: her mount finds it in her file, without being mounted again.
mv "$work/alice" "$work/alice.old"
"$bin/scudafs" keygen alice "$work/alice.new" 2>/dev/null
cat "$work/alice.new" "$work/bob" >"$work/keys"
kill -HUP "$server"
within 5 read_times 5 || fail "the keys were not read a third time"
run_program small >/dev/null 2>&1 && fail "a key that was changed gets sessions"
contains "$work/daemon.log" 'the old key stays' || fail "a missing key file is not in the daemon's log"
mv "$work/alice.new" "$work/alice"
run_program small | grep -q right || fail "the mount does not take the new key: $(run_program small 2>&1)"
within 10 contains "$mnt/status" ready || fail "with the new key the mount is $(cat "$mnt/status")"

# A broken file keeps nobody out that was in, mounts neither.
echo rubbish >"$work/keys"
kill -HUP "$server"
twice_broken()
{
	[ "$(grep -c 'old keys stay' "$work/server.log")" = 2 ]
}
within 5 twice_broken || fail "the broken file is not logged again"
mount_bob || fail "bob's mount is refused: $(cat "$work/err")"
exit 0
