#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program whose shim is of another build: the server does not know the number of its list of calls, asks
# for the list, and all works as before. The other build is this one with another number in its code.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount
mkdir "$work/lib"
for name in libcuda.so.1:cuda:CALL_LIST libnvidia-ml.so.1:nvml:NVML_CALL_LIST; do
	IFS=: read -r file api define <<<"$name"
	number=$(sed -n "s/^#define $define 0x\([0-9a-f]*\)ull$/\1/p" "$B/gen/$api.calls.h")
	[ -n "$number" ] || fail "no $define"
	python3 - "$lib/$file" "$work/lib/$file" "$number" <<-'PY' || fail "the number is not in $file"
		import sys
		code, number = open(sys.argv[1], "rb").read(), int(sys.argv[3], 16)
		was, other = number.to_bytes(8, "little"), (number ^ 1 << 40).to_bytes(8, "little")
		assert code.count(was) >= 1
		open(sys.argv[2], "wb").write(code.replace(was, other))
	PY
done

other() # PROGRAM [ARGUMENT...]
{
	SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$work/lib at_most 60 "$progs/$1" "${@:2}"
}
sent() # to the server so far
{
	cat "$mnt/stats/bytes_out"
}
before=$(sent)
run_program count >"$work/same"
same=$(($(sent) - before))
other count >"$work/other" || fail "cuInit with another list"
differs=$(($(sent) - before - same))
cmp -s "$work/same" "$work/other" || fail "count: $(cat "$work/other"), not $(cat "$work/same")"
[ "$same" -lt 1000 ] || fail "a hello of the same build takes $same bytes"
[ "$differs" -gt 10000 ] || fail "the list was not sent: $differs bytes"
other small | grep -q right || fail "a wrong result with another list"
[ "$driver" = soft ] || exit 0 # nvml_loop knows what the software device answers
before=$(sent)
run_program nvml_loop 1 >"$work/same" || fail "nvml_loop"
same=$(($(sent) - before))
other nvml_loop 1 >"$work/other" || fail "NVML with another list"
differs=$(($(sent) - before - same))
[ "$differs" -gt $((same + 10000)) ] ||
	fail "NVML's list was not sent: $differs bytes, $same with the same list"
exit 0
