#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong descriptions are refused with file, line and reason. Each bad-*.h states the expected message in its
# first line.
set -eu
cd "$(dirname "$0")/../.."
bad=0
for f in tests/gen/bad-*.h; do
	want=$(sed -n '1s|^/\* expect: \(.*\) \*/$|\1|p' "$f")
	if got=$(python3 wire/gen.py wire/cuda_types.h "$f" stubs.c 2>&1 >/dev/null); then
		echo "$f: accepted"
		bad=1
		continue
	fi
	case "$got" in *"$want"*) ;; *) echo "$f: want '$want', got '$got'"; bad=1 ;; esac
done
# The generator contains no API name.
if grep -nE '\bcu[A-Z][A-Za-z0-9]+\b' wire/gen.py wire/generator/*.py; then
	echo "the generator names an API function"
	bad=1
fi
exit $bad
