# SPDX-License-Identifier: Apache-2.0
# The figures of two runs side by side: of each file named, the last line that is a JSON object.
import json
import sys


def read(path):
    with open(path) as f:
        for line in reversed(f.read().splitlines()):
            if line.startswith("{"):
                return json.loads(line)
    return {}


def number(v):
    return isinstance(v, (int, float))


def shown(v):
    return f"{v:.4g}" if number(v) else str(v)[:60]


a, b = read(sys.argv[1]), read(sys.argv[2])
for k in list(a) + [k for k in b if k not in a]:
    x, y = a.get(k), b.get(k)
    ratio = f" {y / x:>8.3}" if number(x) and number(y) and x else ""
    print(f"{k:28} {shown(x):>12} {shown(y):>12}" + ratio)
