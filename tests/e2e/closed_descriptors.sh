#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Server, daemon and command, started without standard input, output and error, as some supervisors do: no
# socket of theirs gets one of those numbers, so that no log line goes to a peer; and all works. A program
# started so has them closed, as natively.
. "$(dirname "$0")/lib.sh"
requires mount

at_exit stop_server
: >"$work/port"
"$bin/scuda-server" --driver "$driver" --listen 127.0.0.1:0 --ready-fd 3 3>"$work/port" <&- >&- 2>&- &
server=$!
within 10 server_is_up || fail "the server is not up"
monitor=$(pgrep -P "$server" | head -n 1)
address=127.0.0.1:$(head -n 1 "$work/port")
mkdir "$mnt"
at_exit stop_mount
"$bin/scudafs" mount "$address" "$mnt" <&- >&- 2>&- || fail "mount"
"$bin/scudafs" umount "$mnt/gpu0" <&- >&- 2>&- && fail "what is no mount was taken away"
"$bin/scudafs" status "$mnt" >&- 2>/dev/null && fail "status without standard output succeeds"
start_program held hold
expect held 20 ready
for p in "$server" "$monitor" $(sessions) $(daemon); do
	for fd in 0 1 2; do
		# A session has a pipe in place of its output, for what the driver prints.
		[[ $(readlink "/proc/$p/fd/$fd") =~ ^(/dev/null|pipe:.*)$ ]] ||
			fail "descriptor $fd of $(tr '\0' ' ' <"/proc/$p/cmdline") is" \
				"$(readlink "/proc/$p/fd/$fd")"
	done
done
tell held
expect held 10 right
for i in 1 2 3; do
	"$bin/scudafs" run --mount "$mnt" -- "$progs/small" <&- >"$work/small.out" 2>&- ||
		fail "small ended with status $?"
	contains "$work/small.out" right || fail "no result"
done
"$bin/scudafs" run --mount "$mnt" -- "$progs/small" <&- >&- 2>&- ||
	fail "small without any of the three ended with status $?"
"$bin/scudafs" run --mount "$mnt" -- bash -c '[ ! -e /proc/$$/fd/0 ] && [ ! -e /proc/$$/fd/2 ]' <&- 2>&- ||
	fail "a program was given descriptors that it was started without"
exit 0
