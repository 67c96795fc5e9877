#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# limit: 120
# Each system call of a program is the one at which it is killed, and each of those that our library makes
# fails once with EIO, EINTR or ENOMEM: no crash, no hang, nothing left in mount and server.
. "$(dirname "$0")/lib.sh"
requires mount strace
strace -f -qq -o /dev/null true 2>/dev/null || skip "strace may not trace"
unsanitized "it stops at what fails here"
start_server
start_mount
export SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$lib
run_program small | grep -q right || fail "small"
descriptors()
{
	ls "/proc/$(daemon)/fd" | wc -l
}
within 5 no_sessions
before=$(descriptors)

at_most 20 strace -f -qq -o "$work/calls" "$progs/small" >/dev/null || fail "small under strace"
sed 's/^[0-9]* *//; s/(.*//' "$work/calls" | grep -E '^[a-z_0-9]+$' | sort | uniq -c >"$work/counts"
killed=0
while read -r count call; do
	for ((n = 1; n <= count && n <= 12; n++)); do
		at_most 10 strace -f -qq -o /dev/null -e "inject=$call:signal=KILL:when=$n" "$progs/small" \
			>/dev/null 2>&1
		[ $? != 124 ] || fail "killed at $call $n it does not end"
		killed=$((killed + 1))
	done
done <"$work/counts" 2>/dev/null
echo "killed at $killed calls"
[ "$killed" -ge 30 ] || fail "only $killed calls"
within 5 no_sessions || fail "sessions of killed programs are left"

failed=0
for call in ioctl pwritev pread64 mmap socket connect recvmsg sendto fstat openat; do
	for error in EIO EINTR ENOMEM; do
		# The first few of mmap and openat are the loader's: its status is 127, and for the first of
		# all a crash.
		for n in 1 2 3 5 8 13; do
			at_most 20 strace -f -qq -o /dev/null -e "inject=$call:error=$error:when=$n" \
				"$progs/small" >"$work/said" 2>&1
			code=$?
			[ "$code" != 124 ] || fail "$call $n with $error: it hangs"
			[ "$code" = 0 ] || failed=$((failed + 1))
			[ "$code" != 127 ] || continue
			contains "$work/said" 'right\|CUDA_ERROR' ||
				{ [ "$call" = mmap ] && [ "$n" = 1 ]; } ||
				fail "$call $n with $error: status $code: $(cat "$work/said")"
		done
	done
done
echo "$failed programs got an error"
within 5 no_sessions || fail "sessions are left"
as_before()
{
	[ "$(descriptors)" -le $((before + 4)) ]
}
within 5 as_before || fail "descriptors of the daemon: $(descriptors) of $before"
run_program small | grep -q right || fail "no service afterwards"
