#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The description against NVIDIA's cuda.h 13.0, where a toolkit is installed: every prototype, every struct's
# size and offsets, every constant, and the set of exports against the toolkit's stub library; of the
# functions for graphics and video, which that has not, against what their headers declare.
set -eu
cd "$(dirname "$0")/../.."
gen=${B:-build}/gen
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for d in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-13*; do
	[ -n "$d" ] && [ -f "$d/include/cuda.h" ] && cuda=$d && break
done
[ -n "${cuda:-}" ] || { echo "SKIP no CUDA toolkit: cuda.h not found"; exit 77; }
header=$cuda/include/cuda.h
grep -q 'define CUDA_VERSION 13000' "$header" || { echo "SKIP the toolkit is not 13.0"; exit 77; }
py="python3 wire/gen.py wire/cuda_types.h wire/cuda.h"

# Our prototypes after NVIDIA's: an empty stand-in hides our types.
mkdir -p "$work/wire" "$work/layout"
: > "$work/wire/cuda_types.h"
cp wire/annotate.h wire/cuda.h "$work/wire/"
$py flavours.h > "$work/flavours.h"

# The headers of graphics and video include others', of which their prototypes need these types.
mkdir -p "$work/include/GL" "$work/include/EGL"
echo 'typedef unsigned int GLuint, GLenum;' > "$work/include/GL/gl.h"
echo 'typedef int EGLint; typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;' > "$work/include/EGL/egl.h"
: > "$work/include/EGL/eglext.h"
cat > "$work/include/nvidia.h" <<'EOF'
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaGL.h>
#include <cudaEGL.h>
#include <stdint.h>
typedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface;
typedef int VdpGetProcAddress(VdpDevice device, uint32_t function_id, void **function_pointer);
#include <cudaVDPAU.h>
EOF
cat > "$work/both.c" <<'EOF'
#include <nvidia.h>
#include "wire/cuda.h"
#include "flavours.h"
EOF
gcc -Wall -Werror -I"$work" -I"$work/include" -I"$cuda/include" -fsyntax-only "$work/both.c"

$py layout.c > "$work/layout/layout.c"
gcc -w -I. -DTYPES='"wire/cuda_types.h"' "$work/layout/layout.c" -o "$work/ours"
gcc -w -I"$work/include" -I"$cuda/include" -DTYPES='<nvidia.h>' \
	"$work/layout/layout.c" -o "$work/theirs"
"$work/ours" > "$work/ours.out"
"$work/theirs" > "$work/theirs.out"
diff "$work/ours.out" "$work/theirs.out"
[ "$(wc -l < "$work/ours.out")" -gt 1300 ]

sed -n 's/^CUresult \(cu[A-Za-z0-9_]*\)(.*/\1/p' wire/cuda.h "$work/flavours.h" | sort > "$work/described"
{
	nm -D "$cuda/lib64/stubs/libcuda.so" | sed -n 's/.* T \(cu.*\)/\1/p'
	echo '#include <nvidia.h>' | gcc -E -I"$work/include" -I"$cuda/include" - |
		sed -n 's/.*CUresult  *\(cu[A-Za-z0-9_]*\)(.*/\1/p'
} | sort -u > "$work/exported"
diff "$work/exported" "$work/described"
echo "description agrees with $cuda: $(wc -l < "$work/described") exports," \
	"$(wc -l < "$work/ours.out") sizes, offsets and constants"
