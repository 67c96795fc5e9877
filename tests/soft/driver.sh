#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver side of the software device: its table of memory, its reading of images, and what its API does
# beyond the recorded answers.
# limit: 300
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/scudafs-test.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
# As the library was built: a program that loads a sanitized library has to be sanitized itself.
san=()
case $(readelf -d "$B/lib/libscuda-soft.so") in
*libasan*) san=(-fsanitize=address) ;;
*libtsan*) san=(-fsanitize=thread) ;;
esac
cc=(${CC:-gcc} -std=gnu11 -O1 -g -Wall -Wextra "${san[@]}" -D_GNU_SOURCE -I. -I"$B/gen" -pthread)

"${cc[@]}" -o "$work/table" tests/soft/driver/table.c server/soft/{memory,file,reserved,shadow}.c \
	wire/log.c &&
"${cc[@]}" -o "$work/images" tests/soft/driver/images.c server/soft/{image,jit,ptx_target}.c \
	wire/log.c -llz4 -lzstd &&
"${cc[@]}" -o "$work/mutate_images" tests/soft/driver/mutate_images.c tests/soft/mutate.c wire/image.c \
	"$B/lib/libscuda-soft.so" \
	-llz4 -lzstd -Wl,-rpath,"$(cd "$B/lib" && pwd)" || exit 1
for t in cluster linking limits shared memory together ends; do
	"${cc[@]}" -o "$work/$t" "tests/soft/driver/$t.c" "$B/lib/libscuda-soft.so" \
		-Wl,-rpath,"$(cd "$B/lib" && pwd)" || exit 1
done
bad=0
for t in table images "mutate_images ${MUTATE_COUNT:-20000}" memory together ends linking limits shared \
	cluster "cluster 7.5"
do
	# shellcheck disable=SC2086
	timeout $((100 * ${SLOW:-1})) "$work"/$t || { echo "FAIL: $t: status $?"; bad=1; }
done
exit $bad
