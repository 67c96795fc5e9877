# SPDX-License-Identifier: Apache-2.0
# What the programs of this folder share: how a result is checked against a reference made on the CPU, and
# how it is printed so that frameworks.sh can compare two runs. A program is a script of sections; a section
# that raises is wrong, the others still run. The lines:
#     NAME VALUE                                   must be the same in both runs
#     NAME VALUE within T                          a number that may differ by T, relative to the larger of 1
#                                                  and itself
#     NAME VALUE within the spread of native runs  a number that may differ as two native runs do
#     WRONG NAME: why                              the program ends with status 1
#     ~ anything                                   not compared
# `--device cpu` tries a program's own logic on a machine without a GPU; sections that are about the GPU are
# left out then.
import argparse
import faulthandler
import hashlib
import os
import sys
import time
import traceback

# A few programs run at a time: each takes a few processors for its references.
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "4")

program = os.path.basename(sys.argv[0]).removesuffix(".py")
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
device = parser.parse_known_args()[0].device
gpu = device == "cuda"
wrong = []
ran = []
if os.environ.get("FRAMEWORKS_LIMIT"):  # where it hangs, told before the time limit ends it
    faulthandler.dump_traceback_later(max(1, int(os.environ["FRAMEWORKS_LIMIT"]) - 4))


def fault(name, why):
    wrong.append(name)
    print(f"WRONG {name}: {why}", flush=True)


def section(needs_gpu=False):
    """Runs the decorated function at once. What it raises is a wrong result with the place it came from."""

    def run(f):
        name = f.__name__
        if needs_gpu and not gpu:
            print(f"~ {name}: only on a GPU", flush=True)
            return f
        start = time.perf_counter()
        ran.append(name)
        try:
            f()
        except Exception as e:
            place = traceback.extract_tb(e.__traceback__)
            mine = [p for p in place if p.filename == sys.argv[0]] or place
            text = " ".join(str(e).split())
            fault(name, f"line {mine[-1].lineno}: {type(e).__name__}: {text[:400]}")
            if os.environ.get("FRAMEWORKS_TRACE"):
                traceback.print_exc()
        print(f"~ {name}: {time.perf_counter() - start:.2f} s", flush=True)
        return f

    return run


def array(x):
    """A NumPy array of anything that holds numbers."""
    import numpy

    if hasattr(x, "detach"):
        x = x.detach().cpu()
        if x.is_complex():
            return x.resolve_conj().to(dtype=sys.modules["torch"].complex128).numpy()
        return x.double().numpy()
    if hasattr(x, "get") and not isinstance(x, dict):
        x = x.get()
    x = numpy.asarray(x)
    return x if x.dtype.kind == "c" else x.astype("f8")


def close(name, got, want, tolerance):
    """Every element within the tolerance, relative to the larger of 1 and the largest magnitude that is
    expected."""
    import numpy

    a, b = array(got), array(want)
    if a.shape != b.shape:
        return fault(name, f"shape {a.shape}, expected {b.shape}")
    if not a.size:
        return fault(name, "nothing to compare")
    if not numpy.isfinite(a).all():
        return fault(name, f"{int((~numpy.isfinite(a)).sum())} of {a.size} numbers are not finite")
    error = float(numpy.abs(a - b).max() / max(1.0, float(numpy.abs(b).max())))
    if not error <= tolerance:
        return fault(name, f"error {error:.3g}, tolerance {tolerance:g}")
    print(f"~ {name}: error {error:.3g}")
    print(f"{name} right to {tolerance:g}", flush=True)


def same(name, got, want):
    import numpy

    a, b = array(got), array(want)
    if a.shape != b.shape or not numpy.array_equal(a, b):
        return fault(name, f"{int((a != b).sum()) if a.shape == b.shape else (a.shape, b.shape)} differ")
    print(f"{name} exact", flush=True)


def holds(name, condition, why=""):
    if not condition:
        return fault(name, why or "does not hold")
    print(f"{name} holds", flush=True)


def say(name, value):
    """Must be the same natively and mounted."""
    print(f"{name} {value}", flush=True)


def number(name, value, tolerance):
    print(f"{name} {float(value):.9g} within {tolerance:g}", flush=True)


def spread(name, value):
    print(f"{name} {float(value):.9g} within the spread of native runs", flush=True)


def note(text):
    print(f"~ {text}", flush=True)


def digest(x):
    if hasattr(x, "detach"):
        torch = sys.modules["torch"]
        x = x.detach().cpu().contiguous()
        if x.is_complex():
            x = torch.view_as_real(x.resolve_conj())
        data = x.reshape(-1).view(torch.uint8).numpy().tobytes()
    else:
        import numpy

        data = numpy.ascontiguousarray(x.get() if hasattr(x, "get") else x).tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def bits(name, x):
    """The very bits must be the same natively and mounted: for what is deterministic."""
    say(f"{name} bits", digest(x))


def skip(why):
    print(f"SKIP {program}: {why}", flush=True)
    sys.exit(77)


def driver_libraries():
    with open("/proc/self/maps") as f:
        paths = {line.split(None, 5)[5].strip() for line in f if "/" in line}
    return sorted(p for p in paths if os.path.basename(p).startswith("libcuda.so"))


def done():
    """The end of a program. Through a mount the one libcuda in the process has to be ours, else all of it was
    for nothing."""
    libraries = driver_libraries()
    note(f"libcuda: {' '.join(libraries) or 'none'}")
    folder = os.environ.get("FRAMEWORKS_SHIM")
    if gpu and folder:
        other = [p for p in libraries if os.path.realpath(os.path.dirname(p)) != os.path.realpath(folder)]
        if other or not libraries:
            fault("libcuda", f"not the mount's but {' '.join(other) or 'none'}")
    if not ran:
        fault("sections", "none ran")
    print(f"FAIL {program}: {', '.join(wrong)}" if wrong else f"PASS {program}", flush=True)
    sys.exit(bool(wrong))
