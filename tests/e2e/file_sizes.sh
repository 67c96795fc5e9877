#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 180
# A limit of file sizes (ulimit -f) is not for what a program sends to its GPU, though it goes by a file:
# with room for no file at all, programs' copies of any size, host functions (which fetch large ones to
# pinned memory) and images go on, through shared memory and through the file. A mount and a server under
# such a limit serve, too.
. "$(dirname "$0")/lib.sh"
requires mount prlimit
[ "$sanitizer" != tsan ] || unsanitized "its runtime writes a file"

narrow() # WORD COMMAND...: what it says last, read through a pipe
{
	local said
	said=$(at_most 60 prlimit --fsize=0:0 "$bin/scudafs" run --mount "$mnt" -- "${@:2}" 2>&1 <<<go) ||
		fail "$what: ${2##*/} ended with $?: $said"
	[[ $said == *"$1" ]] || fail "$what: ${2##*/} said: $said"
}
all()
{
	what=$1
	narrow right "$progs/small"
	narrow right "$progs/image" 7 300 0 39 5
	narrow over "$progs/large"
}
start_server
start_mount
all shared
export SCUDAFS_CHANNEL=fuse
all file
unset SCUDAFS_CHANNEL
stop_mount

# The log, too, may not grow.
at_exit "$bin/scudafs" umount --lazy "$mnt"
prlimit --fsize=0:0 "$bin/scudafs" mount "$address" "$mnt" -o "log=$work/narrow.log" || fail "no mount"
all "a narrow mount"
"$bin/scudafs" umount "$mnt" || fail "umount"
[ ! -s "$work/narrow.log" ] || fail "the limit was none"

prlimit --pid "$server" --fsize=0:0
start_mount
all "a narrow server"
kill -0 "$server" || fail "the server has ended"
