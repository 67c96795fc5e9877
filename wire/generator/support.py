# SPDX-License-Identifier: Apache-2.0
"""The tables of what is supported (`make docs`): how each function is answered, and which tests name it."""
import pathlib
import re

from generator.describe import exports

HOW = {
    "WAIT": "waits for the server", "POST": "posted", "NEW": "posted, handle chosen by the client",
    "LOCAL": "answered in the shim", "CACHED": "asked once, until: {}", "HAND": "by hand at both ends",
    "SAME": "another name of `{}`", "UNSUPPORTED": "refused in the shim",
}
TESTS = ("tests/apps/*.c*", "tests/apps/conformance/*.c", "tests/e2e/*.sh", "tests/e2e/*.py",
         "tests/e2e/progs/*.c", "tests/soft/*.c", "tests/unit/*.c", "tests/apps/*/*.cu")
SOFT = ("server/soft/*.c", "devshim/errors.c", "devshim/tables.c", "devshim/procs.c")


def tree_files(*patterns):
    """Files of this tree, each with its text."""
    top = pathlib.Path(__file__).resolve().parents[2]
    for path in sorted(p for pattern in patterns for p in top.glob(pattern)):
        yield path, path.read_text(errors="replace")


def tests_of(calls):
    """Call name to the tests that name it. A name without its version is the newest one, as in NVIDIA's
    header."""
    newest, found = {}, {c.name: [] for c in calls}
    for c in calls:
        version = int((re.search(r"_v(\d+)$", c.name) or [0, 1])[1])
        if version >= newest.get(c.base, (0, ""))[0]:
            newest[c.base] = (version, c.name)
    for path, text in tree_files(*TESTS):
        for word in set(re.findall(r"\w+", text)):
            call = newest[word][1] if word in newest else word
            if call in found:
                found[call].append(f"{path.parent.name}/{path.stem}")
    return found


def row(api, c, tests, soft):
    """The cells of one function."""
    state = f"**not supported**: {c.words['UNSUPPORTED']}" if c.cls == "UNSUPPORTED" else "works"
    listed = tests or (["gen/loop"] if not c.hand and "SERVE" not in c.words else [])
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    yield f"`{c.name}`{' + ' + c.flavour.lower() if c.flavour else ''}"
    yield HOW[c.cls].format(c.words.get(c.cls))
    yield state
    if api.plain:
        yield "has it" if (c.words["SAME"] if c.cls == "SAME" else c.name) in soft else "lacks it"
    yield ", ".join(listed[:4]) + more
    yield c.words.get("SINCE", "")


def gen_support_md(api, calls, types):
    yes = [c for c in calls if c.cls != "UNSUPPORTED"]
    tests = tests_of(calls)
    defined = re.compile(r"^" + api.result + r" (\w+)\(", re.M)
    soft = {name for _, text in tree_files(*SOFT) for name in defined.findall(text)}
    named = sum(1 for c in yes if tests[c.name])
    print(f"# What is supported\n\nGenerated from `wire/{api.prefix}.h` (`make docs`). "
          f"{len(yes)} of {len(calls)} functions "
          f"({sum(1 for _ in exports(calls))} exports with the per-thread default stream flavours). "
          f"{named} of them are called by name in the programs below `tests/`; what NVIDIA's runtime and "
          "libraries call is not counted. Every call whose encoding is generated goes once through stub and "
          "dispatch in `tests/gen/loop.sh`.\n")
    columns = ["function", "answer", "state", *(["software device"] if api.plain else []), "tests", "since"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for c in calls:
        print("| " + " | ".join(row(api, c, tests[c.name], soft)) + " |")
