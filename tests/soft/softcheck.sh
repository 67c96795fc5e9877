#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 120
# scuda-softcheck: texts, fat binaries and object files with and without what the device lacks; what is no
# code; damage.
. "$(dirname "$0")/../e2e/lib.sh"
requires python3 objcopy
py=$top/tests/soft/softcheck.py

expect_check() # STATUS TEXT FILE...: the status, and a line that holds the text
{
	local want=$1 text=$2 code
	shift 2
	"$bin/scuda-softcheck" "$@" >"$work/check.out" 2>&1
	code=$?
	[ "$code" = "$want" ] || fail "$*: status $code instead of $want"
	grep -qF -e "$text" "$work/check.out" || fail "$*: nothing says '$text'"
}

printf '.version 7.5\n.target sm_75\n.address_size 64\n.visible .entry fine() { ret; }\n' >"$work/fine.ptx"
sed 's/fine/lacking/; s/ret;/\ntcgen05.wait::ld.sync.aligned;\nret;/' "$work/fine.ptx" >"$work/lacking.ptx"
echo 'no code' >"$work/text"
python3 "$py" fatbin "$work/both.fatbin" "75:$work/fine.ptx" "90:$work/lacking.ptx" 80:
python3 "$py" fatbin "$work/machine.fatbin" 90:
echo 'int x;' | ${CC:-gcc} -x c -c -o "$work/plain.o" - || fail "no compiler"
for n in both machine; do
	objcopy --add-section ".nv_fatbin=$work/$n.fatbin" "$work/plain.o" "$work/$n.o" || fail "objcopy"
done
objcopy --add-section "__nv_relfatbin=$work/both.fatbin" "$work/plain.o" "$work/parts.o"

expect_check 0 '1 kernels, 0 not covered' "$work/fine.ptx"
expect_check 1 'kernel lacking: tcgen05.wait::ld.sync.aligned at line 5' "$work/lacking.ptx"
expect_check 0 '1 kernels, 0 not covered' "$work/both.fatbin"
expect_check 1 'kernel lacking: ' --capability 9.0 "$work/both.fatbin"
expect_check 1 'sm_90 cubin' "$work/machine.fatbin"
expect_check 0 '1 kernels, 0 not covered' "$work/both.o"
expect_check 1 'kernel lacking: ' -c 9.0 "$work/both.o"
expect_check 0 '1 kernels, 0 not covered' "$work/parts.o"
expect_check 1 'no PTX' "$work/machine.o"
expect_check 2 'no device code' "$work/plain.o"
expect_check 2 'neither PTX text nor a fat binary' "$work/text"
expect_check 2 'No such file' "$work/none"
expect_check 2 'Is a directory' "$work"
expect_check 2 usage
expect_check 2 usage --capability 6 "$work/fine.ptx"
expect_check 2 'fine.ptx: 1 kernels' "$work/lacking.ptx" "$work/none" "$work/fine.ptx"

for f in both.o both.fatbin machine.o lacking.ptx; do
	python3 "$py" damage "$bin/scuda-softcheck" "$work/$f" 150 || fail "damage"
done
