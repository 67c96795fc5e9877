#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server behind a unix socket: programs without any network, who may connect and as whom, a socket that is
# somebody else's, and the way of fstab.
. "$(dirname "$0")/lib.sh"
requires mount
# Other users come here, too.
reach=$(mktemp -d /tmp/scudafs-unix.XXXXXX)
at_exit rm -rf "$reach"
chmod 755 "$reach"
mkdir -m 755 "$reach/run"
start_server --listen "unix:$reach/run/s"
[ "$(stat -c %a "$reach/run/s")" = 600 ] || fail "the socket's mode is $(stat -c %a "$reach/run/s")"

# Relative to where the user is; the right results; the user's number is the session's name.
address=unix:s
(cd "$reach/run" && "$bin/scudafs" mount unix:s "$work/relative" 2>"$work/err") &&
	fail "mounted on a folder that is not there"
at_exit stop_mount
mkdir "$mnt"
(cd "$reach/run" && "$bin/scudafs" mount unix:s "$mnt" -o "log=$work/daemon.log") ||
	fail "mount of a relative path"
address=unix:$reach/run/s
run_program small | grep -q right || fail "no result over a unix socket"
within 5 contains "$work/server.log" "of uid:$(id -u) from" || fail "the session is not called by its user"
[ "$(cat "$mnt"/servers/*/address)" = "$address" ] ||
	fail "the address in the tree: $(cat "$mnt"/servers/*/address)"
[ "$(cat "$mnt"/servers/*/tls)" = none ] || fail "tls: $(cat "$mnt"/servers/*/tls)"
run_program crowded 2000 4096 | grep -q crowded || fail "many copies over a unix socket"
stop_mount

# fstab's form: the helper's command line.
ln -s "$bin/scudafs" "$work/mount.fuse.scudafs"
"$work/mount.fuse.scudafs" "$address" "$mnt" -o rw,_netdev,nofail || fail "mount.fuse.scudafs gave $?"
run_program small | grep -q right || fail "no result behind the helper"
umount "$mnt"
helper_gone()
{
	[ -z "$(pgrep -f "mount.fuse.scudafs .*$mnt")" ]
}
within 5 helper_gone || fail "the helper's daemon is left"

# Without a network at all, as in a neighbouring container that shares the folder.
if [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
	unshare -n "$bin/scudafs" mount "$address" "$mnt" || fail "mount without a network"
	at_most 60 unshare -n "$bin/scudafs" run --mount "$mnt" -- "$progs/small" | grep -q right ||
		fail "no result without a network"
	stop_mount
fi
stop_server
[ -e "$reach/run/s" ] && fail "the socket is left"

# Who may connect, and that a client looks at whose socket it is.
at_most 5 "$bin/scuda-server" --driver soft --listen "unix:$reach/run/x" --socket-mode 0770 2>"$work/err"
[ $? = 2 ] || fail "a mode with execute bits: $(cat "$work/err")"
at_most 5 "$bin/scuda-server" --driver soft --listen "unix:$reach/run/x" --socket-group no-such-group \
	2>"$work/err"
[ $? = 2 ] || fail "a group that is not there: $(cat "$work/err")"
contains "$work/err" "no group 'no-such-group'" || fail "it is not named: $(cat "$work/err")"
at_most 5 "$bin/scuda-server" --driver soft --listen "unix:$reach/none/x" 2>"$work/err"
contains "$work/err" 'its folder is not there' || fail "a socket in no folder: $(cat "$work/err")"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null &&
	setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$bin/scudafs"
then
	as_nobody()
	{
		PATH=/usr/bin:/bin setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
	}
	start_server --listen "unix:$reach/run/s" --socket-mode 0660 --socket-group 65534
	[ "$(stat -c %a:%g "$reach/run/s")" = 660:65534 ] ||
		fail "mode and group: $(stat -c %a:%g "$reach/run/s")"
	echo 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])' >"$reach/connect.py"
	as_nobody python3 "$reach/connect.py" "$reach/run/s" || fail "the group cannot connect"
	PATH=/usr/bin:/bin setpriv --reuid 65534 --regid 65533 --clear-groups python3 "$reach/connect.py" \
		"$reach/run/s" 2>/dev/null && fail "others can connect"
	stop_server
	# Nobody's server: fine in a folder of nobody's, not where anyone may listen, or make such a folder.
	mkdir -m 1777 "$reach/anyone"
	mkdir -m 755 "$reach/nobody"
	mkdir -m 755 "$reach/anyone/made"
	chown 65534 "$reach/nobody" "$reach/anyone/made"
	touch "$work/port"
	for folder in anyone anyone/made nobody; do
		HOME=/nonexistent XDG_CACHE_HOME=/nonexistent setpriv --reuid 65534 --regid 65534 \
			--clear-groups "$bin/scuda-server" --ready-fd 3 \
			--driver soft --listen "unix:$reach/$folder/s" 3>"$work/port" 2>>"$work/server.log" &
		server=$!
		at_exit stop "$server"
		within 10 server_is_up || fail "nobody's server is not up"
		if [ $folder != nobody ]; then
			"$bin/scudafs" mount "unix:$reach/$folder/s" "$mnt" 2>"$work/err" &&
				fail "anyone's socket was believed"
			contains "$work/err" "another user" || fail "anyone's socket: $(cat "$work/err")"
		else
			"$bin/scudafs" mount "unix:$reach/$folder/s" "$mnt" || fail "nobody's own folder"
			run_program small | grep -q right || fail "no result from nobody's server"
			within 5 contains "$work/server.log" "modules are not kept" ||
				fail "no word of the cache"
			stop_mount
		fi
		stop "$server"
		[ -e "$reach/$folder/s" ] && fail "nobody's server left its socket: was it stopped?"
		: >"$work/port"
	done
fi
exit 0
