# SPDX-License-Identifier: Apache-2.0
# The tables of docs/programs.md, from results that were seen and nothing else.
#
#     programs.py seen LABEL RESULTS     takes over what a run of tests/device/run.sh left (its folder
#                                        results) into seen.tsv
#     programs.py soft LABEL FILE...     takes over what tests/apps/native.sh or mounted.sh printed on the
#                                        software device
#     programs.py write                  writes the tables between the marks of docs/programs.md
#
# A program of which nothing was seen says so. A later result takes the place of an earlier one.
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
top = os.path.dirname(os.path.dirname(here))
FILE = os.path.join(here, "seen.tsv")
PAGE = os.path.join(top, "docs", "programs.md")


def load():
    rows = {}
    if os.path.exists(FILE):
        with open(FILE) as f:
            for line in f:
                if not line.startswith("#"):
                    kind, name, native, mounted, label = line.rstrip("\n").split("\t")
                    rows[kind, name] = (native, mounted, label)
    return rows


def save(rows):
    with open(FILE, "w") as f:
        f.write("# SPDX-License-Identifier: Apache-2.0\n"
                "# kind, program, natively, through the mount, when: written by programs.py\n")
        for key in sorted(rows):
            f.write("\t".join(key + rows[key]) + "\n")


def text(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return None


def outcome(folder, name):
    """right, skipped or wrong; None where the program was not run."""
    status = text(os.path.join(folder, name + ".status"))
    if status is None:
        return None
    return {"0": "right", "77": "skipped"}.get(status.strip(), f"wrong ({status.strip()})")


def seen(label, results):
    rows = load()
    native, mount = os.path.join(results, "native"), os.path.join(results, "mount")
    for file in sorted(os.listdir(native)) if os.path.isdir(native) else []:
        name, end = os.path.splitext(file)
        if end != ".status":
            continue
        a, b = outcome(native, name), outcome(mount, name)
        if b == "right" and text(os.path.join(mount, name + ".diff")):
            b = "right, prints something else"
        rows["program", name] = (a, b or "not run", label)
    for line in (text(os.path.join(results, "frameworks", "frameworks.tsv")) or "").splitlines():
        name, a, b, same, *_ = line.split("\t")
        if b == "right" and same != "same":
            b = "right, prints something else"
        rows["framework", name] = (a, b, label)
    save(rows)


def soft(label, files):
    rows = load()
    for file in files:
        for line in text(file).splitlines():
            m = re.match(r"(ok|FAILED|skipped) (?:SKIP )?([a-z0-9_.]+)", line)
            if m:
                rows["soft", m[2]] = ("-", {"ok": "right", "FAILED": "wrong", "skipped": "skipped"}[m[1]],
                                      label)
    save(rows)


def first_words(path):
    """The first sentence of the paragraph at the top of a source file."""
    words = []
    for line in (text(path) or "").splitlines()[1:]:
        m = re.match(r"(?://|/\*| \*|#)\s?(.*?)\s*(?:\*/)?$", line)
        if not m or re.match(r"(group|limit|native runs|alone): ", m[1]):
            if words or not m:
                break
            continue
        words.append(m[1])
    sentence = re.split(r"(?<=[.;]) ", " ".join(words))[0].rstrip(".;").replace("|", "\\|")
    return sentence if len(sentence) <= 170 else sentence[:170].rsplit(",", 1)[0] + ", ..."


def source(name):
    for path in (f"{name}.cu", f"{name}.c", f"{name}/main.cu"):
        if os.path.exists(os.path.join(top, "tests", "apps", path)):
            return os.path.join(top, "tests", "apps", path)


def cell(row, column):
    return "not seen" if row is None else row[column]


def listed():
    heading = None
    for line in text(os.path.join(top, "tests", "apps", "list")).splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line and not line.startswith("#"):
            name, builds, *_ = line.split()
            yield heading, name, [name if b in ("static", "driver") else f"{name}.{b}"
                                  for b in builds.split(",")]


def tables():
    rows = load()
    out, heading, programs, good = [], None, 0, 0
    for h, name, variants in listed():
        if h != heading:
            out += ["", f"### {h}", "",
                "| program | what it does | H200, natively | H200, mounted | software device |",
                "|---|---|---|---|---|"]
            heading = h
        for v in variants:
            gpu, cpu = rows.get(("program", v)), rows.get(("soft", v))
            programs += 1
            good += gpu is not None and gpu[:2] == ("right", "right")
            what = first_words(source(name)) if v == variants[0] else "the same, built differently"
            out.append(f"| {v} | {what} | {cell(gpu, 0)} | {cell(gpu, 1)} | {cell(cpu, 1)} |")
    out += ["", "### Frameworks", "", "| program | what it does | H200, natively | H200, mounted |",
            "|---|---|---|---|"]
    folder = os.path.join(here, "frameworks")
    for file in sorted(os.listdir(folder)):
        name = file.removesuffix(".py")
        if name == file or name in ("checks", "compare"):
            continue
        row = rows.get(("framework", name))
        programs += 1
        good += row is not None and row[:2] == ("right", "right")
        what = first_words(os.path.join(folder, file))
        out.append(f"| {name} | {what} | {cell(row, 0)} | {cell(row, 1)} |")
    labels = sorted({r[2] for k, r in rows.items() if k[0] != "soft"})
    soft_labels = sorted({r[2] for k, r in rows.items() if k[0] == "soft"})
    counts = (f"{good} of {programs} were seen right natively and right, with the same lines, "
              "through the mount.")
    seen = (f"H200: {'; '.join(labels) or 'nothing yet'}. "
            f"Software device: {'; '.join(soft_labels) or 'nothing yet'}.")
    return [counts, "", seen] + out


def write():
    page = text(PAGE)
    begin, end = "<!-- tables -->", "<!-- end of tables -->"
    head, rest = page.split(begin)
    with open(PAGE, "w") as f:
        f.write(head + begin + "\n\n" + "\n".join(tables()) + "\n\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["seen", label, results]:
            seen(label, results)
        case ["soft", label, *files]:
            soft(label, files)
        case ["write"]:
            write()
        case _:
            sys.exit(__doc__ or "programs.py seen LABEL RESULTS | soft LABEL FILE... | write")
