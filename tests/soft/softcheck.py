# SPDX-License-Identifier: Apache-2.0
# What softcheck.sh needs: softcheck.py fatbin FILE SM:TEXT... writes a fat binary (an empty TEXT: machine
# code); softcheck.py damage PROGRAM FILE COUNT runs PROGRAM on COUNT damaged copies of FILE: it must say
# something and end.
import os
import random
import struct
import subprocess
import sys


def entry(sm, text):
    payload = text if text else b"\x7fELF\0.text.kernel\0"
    payload += b"\0" * (8 - len(payload) % 8)
    kind = 1 if text else 2
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, 0, 0, sm, 0, 0, 0x11, 0,
                       0) + payload


def fatbin(path, entries):
    body = b"".join(entry(int(e.split(":", 1)[0]), open(e.split(":", 1)[1], "rb").read()
                          if e.split(":", 1)[1] else b"")
                    for e in entries)
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body)


def damage(program, path, count):
    dice = random.Random(75)
    whole = open(path, "rb").read()
    seen, limit = {}, 20 * int(os.environ.get("SLOW") or 1)
    for i in range(count):
        copy = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            what = dice.randrange(4)
            if what == 0 or not copy:
                copy = copy[:dice.randint(0, len(copy))]
            elif what == 1:
                copy[dice.randrange(len(copy))] = dice.randrange(256)
            else:  # a header's number
                at = dice.choice([dice.randrange(64), dice.randrange(len(copy))])
                number = dice.choice([0, 1, 0xFFFF, 0x7FFFFFFF, 1 << 40, (1 << 64) - 1, len(whole)])
                copy[at:at + 8] = struct.pack("<Q", number)
        with open(path + ".damaged", "wb") as f:
            f.write(copy)
        run = subprocess.run([program, path + ".damaged"], capture_output=True, timeout=limit)
        code = run.returncode
        if code not in (0, 1, 2) or b"Sanitizer" in run.stderr or b"runtime error" in run.stderr:
            sys.exit(f"copy {i} of {path}: status {code}: {run.stderr.decode(errors='replace')[:3000]}")
        seen[code] = seen.get(code, 0) + 1
    print(f"{count} damaged copies of {path.rsplit('/', 1)[-1]}: " +
          ", ".join(f"{n} x {c}" for c, n in sorted(seen.items())))


if sys.argv[1] == "fatbin":
    fatbin(sys.argv[2], sys.argv[3:])
else:
    damage(sys.argv[2], sys.argv[3], int(sys.argv[4]))
