# SPDX-License-Identifier: Apache-2.0
# Compares what a program of this folder printed natively and through the mount: compare.py NATIVE MOUNTED
# [NATIVE AGAIN]. With a second native run, the lines that two native runs do not agree on are left out and
# told as such, and it gives the tolerance of the numbers that have none of their own: twice the largest
# distance of the two, and a ten-thousandth at least. The first line is the verdict, the others what differs;
# status 1 when something does.
import re
import sys

LINE = re.compile(r"(.*) (\S+) within (\S+|the spread of native runs)$")


def read(path):
    with open(path, errors="replace") as f:
        return [line.rstrip("\n") for line in f if not line.startswith("~ ")]


def number(line):
    """(name, value, tolerance), the tolerance None where it is that of native runs; None for a line that must
    be the same."""
    m = LINE.match(line)
    if not m:
        return None
    return m[1], float(m[2]), None if m[3].startswith("the ") else float(m[3])


def near(a, b, tolerance):
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b)) or a == b


def main():
    native, mounted, *more = (read(p) for p in sys.argv[1:])
    again = more[0] if more else native
    if len(native) != len(mounted) or len(again) != len(native):
        missing = [line for line in native if line not in mounted and line in again]
        new = [line for line in mounted if line not in native and line not in again]
        print(f"{len(native)} lines natively, {len(again)} again, {len(mounted)} mounted"
              if more else f"{len(native)} lines natively, {len(mounted)} mounted")
        for mark, lines in (("<", missing), (">", new)):
            for line in lines:
                print(mark, line)
        return 1
    spread = 0.0
    for a, b in zip(native, again):
        x, y = number(a), number(b)
        if x and y and x[0] == y[0] and x[2] is None:
            spread = max(spread, abs(x[1] - y[1]) / max(1.0, abs(x[1])))
    limit = max(2 * spread, 1e-4)
    equal = within = 0
    unstable, differ = [], []
    for a, b, c in zip(native, mounted, again):
        x, y = number(a), number(b)
        if a == b:
            equal += 1
        elif x and y and x[0] == y[0] and near(x[1], y[1], limit if x[2] is None else x[2]):
            within += 1
        elif a != c and not x:
            unstable.append(a)
        else:
            differ.append((a, b))
    text = f"{equal} of {len(native)} lines the same"
    if within:
        text += f", {within} within tolerance"
    if more and any(number(a) and number(a)[2] is None for a in native):
        text += f" (two native runs: {spread:.2g} apart)"
    if unstable:
        text += f", {len(unstable)} not the same in two native runs either"
    print(text)
    for a, b in differ:
        print("<", a)
        print(">", b)
    for a in unstable:
        print("natively unstable:", a)
    return bool(differ)


sys.exit(main())
