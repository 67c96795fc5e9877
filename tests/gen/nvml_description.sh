#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wire/nvml_types.h and wire/nvml.h against NVIDIA's nvml.h 13.0: sizes, offsets, constants, prototypes; and
# no function of the header is missing. The header is $NVML_H, a toolkit's, or that of the package
# nvidia-nvml-dev of a Python in $SCUDAFS_TEST_PYTHON. Newer things than that header's are not compared.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
header=${NVML_H:-}
for d in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-13* /usr; do
	[ -n "$header" ] || [ -z "$d" ] || [ ! -f "$d/include/nvml.h" ] || header=$d/include/nvml.h
done
for python in ${SCUDAFS_TEST_PYTHON:-}; do
	[ -n "$header" ] || header=$("$python" -c '
import glob, sysconfig
print("".join(glob.glob(sysconfig.get_path("purelib") + "/nvidia/cu13/include/nvml.h")))')
done
[ -n "$header" ] || { echo "SKIP no nvml.h: name one in NVML_H"; exit 77; }
[ -f "$header" ] || { echo "FAIL: there is no $header"; exit 1; }
grep -q '^#define NVML_API_VERSION  *13' "$header" || { echo "SKIP $header is not of version 13"; exit 77; }

# Structs and enumerators that the header has.
python3 wire/gen.py wire/nvml_types.h wire/nvml.h layout.c > "$work/all.c"
tr -cs 'A-Za-z0-9_' '\n' < "$header" | sort -u > "$work/words"
awk 'NR == FNR { word[$0]; next }
	match($0, /printf\("[A-Za-z0-9_]+/) && !(substr($0, RSTART + 8, RLENGTH - 8) in word) { next }
	{ print }' "$work/words" "$work/all.c" > "$work/layout.c"
gcc -w -I. -DTYPES='"wire/nvml_types.h"' "$work/layout.c" -o "$work/ours"
gcc -w -DTYPES="\"$header\"" "$work/layout.c" -o "$work/theirs"
"$work/ours" > "$work/ours.out"
"$work/theirs" > "$work/theirs.out"
diff "$work/ours.out" "$work/theirs.out"
[ "$(wc -l < "$work/ours.out")" -gt 700 ]

# Enumerators and plain constants: the values that both have.
{
	echo '#include <stdio.h>'
	echo '#include TYPES'
	echo 'int main(void) {'
	{
		sed -n 's/^#define \(NVML_[A-Z0-9_]*\) .*[0-9].*/\1/p' wire/nvml_types.h |
			grep -v -e FMT -e VERSION_STR -e _CAP_MIGRATION
		sed -n 's/^	\(NVML_[A-Za-z0-9_]*\)\( = .*\)*,*$/\1/p' wire/nvml_types.h
	} | sort -u | grep -Fx -f "$work/words" |
		sed 's/.*/printf("& %lld\\n", (long long)(&));/'
	echo '}'
} > "$work/values.c"
gcc -w -I. -DTYPES='"wire/nvml_types.h"' "$work/values.c" -o "$work/ours"
gcc -w -DTYPES="\"$header\"" "$work/values.c" -o "$work/theirs"
"$work/ours" > "$work/ours.values"
"$work/theirs" > "$work/theirs.values"
diff "$work/ours.values" "$work/theirs.values"

# Our prototypes after NVIDIA's: an empty stand-in hides our types. The header calls older functions by newer
# names unless told not to.
mkdir -p "$work/wire"
: > "$work/wire/nvml_types.h"
cp wire/annotate.h "$work/wire/"
awk 'NR == FNR { word[$0]; next }
	/^nvmlReturn_t / { entry = "" }
	{ entry = entry $0 "\n" }
	/;/ || !/^(nvmlReturn_t|	)/ {
		keep = 1
		n = split(entry, w, /[^A-Za-z0-9_]+/)
		for (i = 1; i <= n; i++)
			if (entry ~ /^nvmlReturn_t/ && w[i] ~ /^nvml[A-Z].*/ && !(w[i] in word)) keep = 0
		if (keep) printf "%s", entry
		entry = ""
	}' "$work/words" wire/nvml.h > "$work/wire/nvml.h"
cat > "$work/both.c" <<EOF
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "$header"
#include "wire/nvml.h"
EOF
gcc -Wall -Werror -I"$work" -fsyntax-only "$work/both.c"

sed -n 's/^nvmlReturn_t *DECLDIR *\(nvml[A-Za-z0-9_]*\)(.*/\1/p' "$header" | sort -u > "$work/declared"
sed -n 's/^nvmlReturn_t \(nvml[A-Za-z0-9_]*\)(.*/\1/p' wire/nvml.h | sort -u > "$work/described"
missing=$(comm -23 "$work/declared" "$work/described")
[ -z "$missing" ] || { echo "FAIL: not described: $missing"; exit 1; }
echo "description agrees with $header: $(wc -l < "$work/declared") functions," \
	"$(wc -l < "$work/ours.out") sizes and offsets," \
	"$(wc -l < "$work/ours.values") constants"
