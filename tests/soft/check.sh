#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The checked mode of the software device: what each kernel of faulty.ptx does to memory is reported to the
# letter, in each build of the vector handlers; what only looks wrong is not. Addresses are replaced by a
# word. SHOW=1 prints what was said, for a new expected.txt.
# limit: 120
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/scudafs-test.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
san=()
case $(readelf -d "$B/lib/libscuda-soft.so") in
*libasan*) san=(-fsanitize=address) ;;
*libtsan*) san=(-fsanitize=thread) ;;
esac
${CC:-gcc} -std=gnu11 -O1 -g -Wall -Wextra "${san[@]}" -D_GNU_SOURCE -I. -o "$work/faulty" \
	tests/e2e/progs/faulty.c "$B/lib/libscuda-soft.so" \
	-Wl,-rpath,"$(cd "$B/lib" && pwd)" || exit 1
export SCUDAFS_SOFT_WORKERS=1
limit=$((20 * ${SLOW:-1})) # seconds
said() # SIMD
{
	local options words
	while IFS='|' read -r options words; do
		case $options in '#'*) continue ;; esac
		echo "== ${options% } |$words"
		# shellcheck disable=SC2086 # words
		SCUDA_SOFT_SIMD=$1 SCUDAFS_SOFT_CHECK=${options% } timeout $limit "$work/faulty" \
			tests/soft/check/faulty.ptx $words 2>&1 || echo "status $?"
	done <tests/soft/check/cases.txt |
		sed 's/0x5[0-9a-f]\{11\}/ADDRESS/g; s/scuda-soft\[[0-9]*\]/scuda-soft/'
}
[ -z "${SHOW:-}" ] || { said avx2; exit; }
bad=0
for simd in sse2 avx2 avx512; do
	said $simd >"$work/said"
	if ! diff tests/soft/check/expected.txt "$work/said" >"$work/diff"; then
		echo "FAIL: $simd:"
		cat "$work/diff"
		bad=1
	fi
done
# Nothing is said, and nothing is slower, when it is off: no operation is in front of an access then.
if timeout $limit "$work/faulty" tests/soft/check/faulty.ptx put 128 0 2>&1 | grep -q scuda-check; then
	echo "FAIL: it checks unasked"
	bad=1
fi
[ $bad = 0 ] && echo "$(grep -c '^==' tests/soft/check/expected.txt) cases as expected in each build"
exit $bad
