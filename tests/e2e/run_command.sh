#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scudafs run: the command's own exit code, 125/126/127 as env has them, --gpu, the mount found in every
# documented way, and a private mount that is gone afterwards.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

code() # EXPECTED ARGUMENT...
{
	local want=$1 got
	shift
	"$bin/scudafs" run "$@" >"$work/out" 2>"$work/err"
	got=$?
	[ "$got" = "$want" ] || fail "run $* gave $got, not $want: $(cat "$work/err")"
}
code 0 --mount "$mnt" -- true
code 7 --mount "$mnt" -- sh -c 'exit 7'
code 127 --mount "$mnt" -- "$work/no-such-program"
touch "$work/plain"
code 126 --mount "$mnt" -- "$work/plain"
code 125 --mount "$work" -- true
code 125 --mount "$mnt" --server x -- true
code 0 --mount "$mnt" -- sh -c 'echo "$SCUDAFS_MOUNT"'
[ "$(cat "$work/out")" = "$mnt" ] || fail "SCUDAFS_MOUNT is '$(cat "$work/out")'"
code 0 --mount "$mnt" -- "$progs/count"
contains "$work/out" 'init 0 count 1' || fail "count: $(cat "$work/out")"
code 0 --mount "$mnt" --gpu '' -- "$progs/count"
contains "$work/out" 'init 100' || fail "count with no GPU: $(cat "$work/out")"
code 0 --mount "$mnt" --gpu "$(cat "$mnt/gpu0/uuid")" -- "$progs/count"
contains "$work/out" 'init 0 count 1' || fail "count by uuid: $(cat "$work/out")"
code 125 --mount "$mnt/gpu0" -- true
contains "$work/err" 'no folder of a server' || fail "a GPU's folder: $(cat "$work/err")"
mkdir "$work/ro"
"$bin/scudafs" mount "$address" "$work/ro" -o ro || fail "a mount with ro"
at_exit "$bin/scudafs" umount "$work/ro"
[ "$(cat "$work/ro/status")" = ready ] || fail "status of a mount with ro"
code 125 --mount "$work/ro" -- true
contains "$work/err" 'option ro' || fail "a mount with ro: $(cat "$work/err")"
"$bin/scudafs" umount "$work/ro" || fail "umount of a mount with ro"
SCUDAFS_MOUNT=$mnt code 0 -- "$progs/small"
code 0 -- "$progs/count" # found in /proc/mounts

mounts=$(grep -cF "$address " /proc/mounts)     # of this server: others run beside us
code 0 --server "$address" -- "$progs/small"
contains "$work/out" right || fail "in a private mount: $(cat "$work/out")"
code 9 --server "$address" -- sh -c 'exit 9'
code 143 --server "$address" -- sh -c 'kill -TERM $$'
code 127 --server "$address" -- "$work/no-such-program"
[ "$(grep -cF "$address " /proc/mounts)" = "$mounts" ] || fail "a private mount is left"
code 125 --server 127.0.0.1:1 -- true
mkdir "$work/temporary"
XDG_RUNTIME_DIR='' TMPDIR=$work/temporary code 0 --server "$address" -- sh -c 'echo "$SCUDAFS_MOUNT"'
[[ $(cat "$work/out") == "$work/temporary/"* ]] || fail "TMPDIR does not say where: $(cat "$work/out")"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	for command in status 'run -- true' "umount $mnt" "mount $address $work/temporary"; do
		unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$bin/scudafs" $command \
			2>"$work/err"
		contains "$work/err" 'without /proc' || fail "$command without /proc: $(cat "$work/err")"
	done
fi

# `run` itself is killed: the private mount goes with it.
"$bin/scudafs" run --server "$address" -- sh -c 'echo $SCUDAFS_MOUNT; exec sleep 100' >"$work/private" \
	2>/dev/null &
runner=$!
within 10 test -s "$work/private" || fail "no private mount"
private=$(cat "$work/private")
mountpoint -q "$private" || fail "no mount at '$private'"
children=$(pgrep -P "$runner" sleep)
kill -KILL "$runner"
kill $children
not_mounted()
{
	! grep -q " $private " /proc/mounts
}
within 5 not_mounted || fail "$private is still mounted"
rmdir "$private"
