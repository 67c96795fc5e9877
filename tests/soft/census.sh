#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What nvcc makes of everything that CUDA's headers declare for device code, one kernel for each function,
# and how much of it the software device has. It covers all but what census/known.txt lists. ARCHES="75 80 90
# 120" takes minutes; by default one.
# limit: 240
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
command -v nvcc >/dev/null || { echo "no nvcc"; exit 77; }
python3 -c '' 2>/dev/null || { echo "no python3"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0 all=0 lacking=0
for arch in ${ARCHES:-90}; do
	python3 tests/soft/census/headers.py "$arch" "$tmp" || exit 1
	for f in functions objects; do
		"$B/bin/scuda-softcheck" "$tmp/$f.ptx" >"$tmp/said"
		[ $? = 2 ] && { cat "$tmp/said"; exit 1; }
		new=$(grep ': kernel ' "$tmp/said" | grep -v -F -f tests/soft/census/known.txt)
		[ -z "$new" ] || { echo "FAIL: compute_$arch, $f: not covered:"; echo "$new"; bad=1; }
		all=$((all + $(grep -c '^\.visible \.entry\|^	*\.entry' "$tmp/$f.ptx")))
		lacking=$((lacking + $(grep -c ': kernel ' "$tmp/said")))
	done
done
echo "$((all - lacking)) of $all functions of CUDA's headers covered"
[ "$all" -gt 2000 ] || { echo "FAIL: the headers were not read"; bad=1; }
exit $bad
