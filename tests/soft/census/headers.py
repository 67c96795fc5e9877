# SPDX-License-Identifier: Apache-2.0
# headers.py ARCH FOLDER: makes PTX of everything that CUDA's headers declare for device code. One kernel
# calls one function; what only takes literals is left out and counted. Needs nvcc. census.sh runs it and
# looks what of it the software device lacks.
import os
import re
import subprocess
import sys

HEADERS = ("cuda_fp16.h cuda_bf16.h cuda_fp8.h cuda_fp6.h cuda_fp4.h "
           "cuda_pipeline_primitives.h cuda_awbarrier_primitives.h "
           "texture_indirect_functions.h surface_indirect_functions.h").split()
# Not functions to call: the compiler's own, declarations without a body, what only exists in one translation
# mode.
SKIPPED = re.compile(r"^(?:atexit|abort|exit|_?_?assert\w*|clock_t|operator\b.*|std|main|printf|vprintf|"
                     r"new|delete|__cudaGet\w*|cuda\w+|__cuda\w+|__ptx_\w+|__nv_tex_\w+|__nv_itex_\w*|"
                     r"_ZN?\w+|"
                     r"__all|__any|__ballot|__shfl(?:_up|_down|_xor)?|__nvvm_\w+|__(?:i|b|h|d|s)mma_\w+|"
                     r"__mma_\w+|__syncthreads\w*|__barrier_sync\w*|syncthreads|__trap|__brkpt|"
                     r"__builtin_\w+|mem\w+|malloc|free|alloca|surf\w+|tex\w+|isurf\w+|itex\w+)$")
# A device function's declaration or head: what stands before its name, the name, its arguments.
NESTED = r"\((?:[^()]|\([^()]*\))*\)"
DECLARATION = re.compile(rf"__attribute__\(\(device\)\)((?:[^;{{}}()]|{NESTED})*?)\b(\w+) ?"
                         r"\(((?:[^(){};]|\([^()]*\))*)\) ?"
                         r"(?:throw ?\(\)|noexcept ?(?:\([^)]*\))?)? ?[;{]")
NO_TYPE = re.compile(rf"__attribute__ ?\({NESTED}\)|__declspec\([^)]*\)|"
                     r"\b(?:static|inline|__inline__|__forceinline__|extern|constexpr|explicit)\b|\"C\"")


def declarations(text):
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    text = re.sub(r"\s+", " ", text)
    found = {}
    for m in DECLARATION.finditer(text):
        before, name, args = m.groups()
        before = NO_TYPE.sub("", before).strip()
        start = text[max(0, m.start() - 120):m.start()]
        if SKIPPED.match(name) or not before or re.search(r"template ?<[^;{}]*$", start) or "::" in before:
            continue
        types = []
        for a in split(args):
            a = re.sub(r"=.*", "", a).strip()
            if a in ("", "void"):
                continue
            if "..." in a or "[" in a:
                types = None
                break
            a = re.sub(r"\b(?:__restrict__|__restrict|volatile)\b", "", a).strip()
            words = re.match(r"^(.*?[\s*&])(\w+)$", a)
            basic = {"int", "unsigned", "long", "short", "char", "float", "double", "bool"}
            types.append((words.group(1) if words and words.group(2) not in basic and
                          words.group(1).strip() not in ("const", "enum", "struct") else a).strip())
        if types is not None:
            found[(name, tuple(types))] = before
    return sorted(found)


def split(args):
    depth, out, now = 0, [], ""
    for c in args:
        depth += c in "(<"
        depth -= c in ")>"
        if c == "," and not depth:
            out.append(now)
            now = ""
        else:
            now += c
    return out + [now]


# Overloads of templates: textures and surfaces.
def objects():
    tex, at = [], {"1D": "f,", "2D": "f,f,", "3D": "f,f,f,", "1DLayered": "f,i,", "2DLayered": "f,f,i,",
                   "Cubemap": "f,f,f,", "CubemapLayered": "f,f,f,i,"}
    size = {"1D": ("f", 1), "2D": ("float2", 2), "3D": ("float4", 3), "1DLayered": ("f", 1),
            "2DLayered": ("float2", 2), "Cubemap": ("float4", 3), "CubemapLayered": ("float4", 3)}
    take = {"f": "TAKE(float)", "i": "TAKE(int)"}
    for t in ("float", "float4", "int2", "uchar4", "unsigned", "short"):
        for shape, c in at.items():
            xs = ",".join(take[x] for x in c.strip(",").split(","))
            g = "TAKE(%s)" % {"f": "float"}.get(size[shape][0], size[shape][0])
            tex += ["tex%s<%s>(TAKE(cudaTextureObject_t),%s)" % (shape, t, xs),
                    "tex%sLod<%s>(TAKE(cudaTextureObject_t),%s,TAKE(float))" % (shape, t, xs),
                    "tex%sGrad<%s>(TAKE(cudaTextureObject_t),%s,%s,%s)" % (shape, t, xs, g, g)]
            if shape in ("2D", "3D", "2DLayered"):
                tex += ["tex%s<%s>(TAKE(cudaTextureObject_t),%s,TAKE(bool*))" % (shape, t, xs)]
                if "3D" not in shape:
                    tex += ["tex%sLod<%s>(TAKE(cudaTextureObject_t),%s,TAKE(float),TAKE(bool*))" %
                            (shape, t, xs),
                            "tex%sGrad<%s>(TAKE(cudaTextureObject_t),%s,%s,%s,TAKE(bool*))" % (shape, t, xs,
                            g, g)]
        tex += ["tex1Dfetch<%s>(TAKE(cudaTextureObject_t),TAKE(int))" % t]
        tex += ["tex2Dgather<%s>(TAKE(cudaTextureObject_t),TAKE(float),TAKE(float),%d)" % (t, k)
                for k in range(4) if t in ("float4", "uchar4")]
        for shape, n in (("1D", 1), ("2D", 2), ("3D", 3), ("1DLayered", 2), ("2DLayered", 3), ("Cubemap", 3),
                         ("CubemapLayered", 3)):
            for mode in ("cudaBoundaryModeTrap", "cudaBoundaryModeClamp", "cudaBoundaryModeZero"):
                xs = ",".join(["TAKE(int)"] * n)
                tex += ["surf%sread<%s>(TAKE(cudaSurfaceObject_t),%s,%s)" % (shape, t, xs, mode),
                        "surf%swrite<%s>(TAKE(%s),TAKE(cudaSurfaceObject_t),%s,%s)" % (shape, t, t, xs, mode)]
    return tex


def entry_at(ptx, line):
    """The number of the kernel that a line of PTX belongs to."""
    with open(ptx) as f:
        before = "".join(f.readlines()[:line])
    return int(re.findall(r"\.entry _Z\d+k(\d+)v", before)[-1])


def compile_ptx(arch, folder, name, calls, headers):
    """Compiles; calls that the compiler refuses are taken out and compiled without, until nothing is
    refused."""
    refused = set()
    source, out = os.path.join(folder, name + ".cu"), os.path.join(folder, name + ".ptx")
    for _ in range(12):
        with open(source, "w") as f:
            f.write("".join("#include <%s>\n" % h for h in headers) +
                    "#include <type_traits>\n__device__ char *source;\n"
                    "template <class F> __device__ void run(F f) "
                    "{ if constexpr (std::is_void<decltype(f())>::value) f(); "
                    "else *(decltype(f()) *)source = f(); }\n"
                    "#define TAKE(T) (*(std::remove_const<std::remove_reference<T>::type>::type *)source)\n")
            base = 5 + len(headers)
            for i, c in enumerate(calls):
                body = "" if i in refused else "run([]{return %s;});" % c
                f.write("__global__ void k%d(){%s}\n" % (i, body))
        run = subprocess.run(["nvcc", "-std=c++17", "-w", "-arch=compute_" + arch, "-rdc=true", "-ptx",
                              "-Xcudafe", "--error_limit=100000", "-o", out, source],
                             capture_output=True, text=True)
        if run.returncode == 0:
            break
        lines = {int(n) - base
                 for n in re.findall(re.escape(source) + r"\((\d+)\): error", run.stdout + run.stderr)}
        lines |= {entry_at(out, int(n))
                  for n in re.findall(r"ptxas \S+, line (\d+)", run.stdout + run.stderr)}
        if not lines - refused:
            sys.exit("headers.py: nvcc: " + (run.stdout + run.stderr)[:3000])
        refused |= lines
    print("%s, compute_%s: %d calls, %d of them refused by the compiler%s" %
        (name, arch, len(calls), len(refused),
        ": " + "; ".join(calls[i] for i in sorted(refused))[:int(os.environ.get("SHOWN", "0"))]))


def main():
    arch, folder = sys.argv[1:]
    everything = os.path.join(folder, "everything.cu")
    with open(everything, "w") as f:
        f.write("".join("#include <%s>\n" % h for h in HEADERS))
    text = subprocess.run(["nvcc", "-std=c++17", "-w", "-arch=compute_" + arch, "-E", "-x", "cu", everything],
                          capture_output=True, text=True, check=True).stdout
    calls = ["%s(%s)" % (name, ",".join("TAKE(%s)" % t for t in types)) for name, types in declarations(text)]
    compile_ptx(arch, folder, "functions", calls, HEADERS)
    compile_ptx(arch, folder, "objects", objects(), HEADERS)


main()
