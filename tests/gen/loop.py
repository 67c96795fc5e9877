#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: loop.py [PREFIX]: of wire/PREFIX.h, cuda unless given

Writes the loop test's cases from the description: for every call that the generator encodes, a driver
function that checks its arguments and returns known values, and a caller that passes known arguments through
the generated stub and checks what comes back."""
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "wire")
from generator import describe  # noqa: E402


def counts(c):
    """Parameters that are lengths of something, with the value that the test gives them."""
    return {q.name: 3 for q in c.params for p in c.params
            if any(q.name in (p.words.get(w) or "") for w in ("COUNT", "BYTES", "TEXT"))}


def length(c, p, word="COUNT"):
    e = p.words[word]
    for name, v in counts(c).items():
        e = e.replace(name, str(v))
    e = re.sub(r"!!(\w+)", r"(\1 != 0)", e)
    e = re.sub(r"^(.*) \? (.*) : (.*)$", r"(\2) if (\1) else (\3)", e.replace("||", " or "))
    return int(eval(e))  # an expression of the description: digits, + - /, comparisons and one choice only


def value(c, p, i, at=0):
    n = i * 16 + at + 1
    if p.kind == "handle":
        return f"(({p.type})(uintptr_t)HANDLE_ID(HANDLE_{p.type}, 0x1000 + {n}))"
    if p.kind == "device":
        return "0"
    if p.kind == "f64":
        return f"{n}.5f"
    return str(counts(c).get(p.name, n % 120))


def real(c, p, i, at=0):
    v = value(c, p, i, at)
    return f"(({p.type})real_handle({v}))" if p.kind == "handle" else v


def fill(target, p, n):
    return f"memset(&{target}, {n % 250 + 1}, sizeof({p.type}));"


def same(target, p, n):
    return f"loop_filled(&{target}, {n % 250 + 1}, sizeof({p.type}))"


def case(c, out):
    decls, pre, args, post, fake = [], [], [], [], []
    for i, p in enumerate(c.params):
        n = p.name
        if p.mode == "value":
            if p.kind == "struct":
                pre.append(f"{p.type} {n}; {fill(n, p, i)}")
                fake.append(f"LOOP_CHECK({same(n, p, i)});")
            else:
                pre.append(f"{p.type} {n} = {value(c, p, i)};")
                fake.append(f"LOOP_CHECK({n} == {real(c, p, i)});")
            args.append(n)
        elif p.mode in ("in", "inout", "out"):
            pre.append(f"{p.type} {n}; memset(&{n}, 0, sizeof {n});")
            args.append("&" + n)
            counted = n in counts(c)
            if p.mode != "out":
                if p.versioned:
                    pre.append(fill(n, p, i) + f" {n}.version = sizeof {n} | 1u << 24;")
                    fake.append(f"LOOP_CHECK({n}->version == (sizeof *{n} | 1u << 24));")
                    filled = f"loop_filled((const char *){n} + 4, {i % 250 + 1}, sizeof *{n} - 4)"
                    fake.append(f"LOOP_CHECK({filled});")
                elif p.kind == "struct":
                    pre.append(fill(n, p, i))
                    fake.append(f"LOOP_CHECK({same('*' + n, p, i)});")
                else:
                    pre.append(f"{n} = {value(c, p, i)};")
                    fake.append(f"LOOP_CHECK(*{n} == {real(c, p, i)});")
            if p.mode != "in":
                if p.kind == "struct":
                    fake.append(f"memset({n}, {i + 9}, sizeof *{n});")
                    post.append(f"LOOP_CHECK(loop_filled(&{n}, {i + 9}, sizeof {n}));")
                elif counted:
                    fake.append(f"*{n} = 2;")
                    post.append(f"LOOP_CHECK({n} == 2);")
                else:
                    fake.append(f"*{n} = {real(c, p, i, 7)};")
                    if c.cls != "NEW":
                        post.append(f"LOOP_CHECK({n} == {value(c, p, i, 7)});")
        elif p.mode == "opaque":
            pre.append(f"void *{n} = (void *)0x{1000 + i};")
            args.append(n)
            fake.append(f"LOOP_CHECK((uintptr_t){n} == 0x{1000 + i});")
        elif p.mode == "string":
            pre.append(f'const char *{n} = "text {i}";')
            args.append(n)
            fake.append(f'LOOP_CHECK(!strcmp({n}, "text {i}"));')
        elif p.mode == "text":
            pre.append(f'char {n}[8] = "";')
            args.append(n)
            fake.append(f'strcpy({n}, "ab");')
            post.append(f'LOOP_CHECK(!strcmp({n}, "ab"));')
        elif p.mode == "array-in":
            k = length(c, p)
            pre.append(f"{p.type} {n}[{k}];")
            for j in range(k):
                if p.kind == "struct":
                    pre.append(fill(f"{n}[{j}]", p, i + j))
                    fake.append(f"LOOP_CHECK({same(f'{n}[{j}]', p, i + j)});")
                else:
                    pre.append(f"{n}[{j}] = {value(c, p, i, j)};")
                    fake.append(f"LOOP_CHECK({n}[{j}] == {real(c, p, i, j)});")
            args.append(n)
        elif p.mode == "array-out":
            k = length(c, p)
            m = 2 if describe.counted(c, p)[1] else k
            pre.append(f"{p.type} {n}[{k}]; memset({n}, 0, sizeof {n});")
            for j in range(m):
                if p.kind == "struct":
                    fake.append(fill(f"{n}[{j}]", p, i + j))
                    post.append(f"LOOP_CHECK({same(f'{n}[{j}]', p, i + j)});")
                else:
                    fake.append(f"{n}[{j}] = {real(c, p, i, j)};")
                    post.append(f"LOOP_CHECK({n}[{j}] == {value(c, p, i, j)});")
            args.append(n)
        elif p.mode == "unsent":
            args.append("NULL" if p.stars else "0")
        else:
            return False
    entry = ("remote_" if "SHIM" in c.words or c.cls == "CACHED" else "") + c.name
    unused = " ".join(f"(void){p.name};" for p in c.params)
    out.append(f"static {api.result} fake_{c.name}({c.args})\n{{\n"
               f"\tloop_called = CALL_{c.name};\n\t{unused}\n" + "".join(f"\t{x}\n" for x in fake)
               + f"\treturn ({api.result})loop_result;\n}}")
    out.append(f"static CUresult call_{c.name}(void)\n{{\n" + "".join(f"\t{x}\n" for x in pre)
               + f"\tCUresult r = (CUresult){entry}({', '.join(args)});\n\tif (!r && !loop_result) {{\n"
               + "".join(f"\t\t{x}\n" for x in post) + "\t}\n\treturn r;\n}")
    return True


def absent(c, out):
    """Hand-written functions that the generated code names: not part of this test, never called."""
    if c.cls in ("LOCAL", "HAND", "CACHED") or "SHIM" in c.words:
        unused = " ".join(f"(void){p.name};" for p in c.params)
        out.append(f"{api.result} {c.name}({c.args})\n{{\n\t{unused}\n\tabort();\n}}")
    if c.cls == "HAND" or "SERVE" in c.words:
        head = f"CUresult serve_{c.name}(struct exec *x)"
        out.append(f"{head};\n{head}\n{{\n\t(void)x;\n\tabort();\n}}")


def absent_codecs(out):
    """The same of codecs that are written by hand."""
    for name, p, sent in describe.codecs(calls):
        const, other = ("const ", "") if sent else ("", "const ")
        client, server = (f"CUresult put_{name}", "get") if sent else (f"void get_{name}", "put")
        out.append(f"{client}(struct call *c, {const}{p.type} *p)\n"
                   "{\n\t(void)c;\n\t(void)p;\n\tabort();\n}")
        head = f"void exec_{server}_{name}(struct exec *x, {other}{p.type} *p)"
        out.append(f"{head};\n{head}\n{{\n\t(void)x;\n\t(void)p;\n\tabort();\n}}")


prefix = sys.argv[1] if len(sys.argv) > 1 else "cuda"
types = describe.Types(open(f"wire/{prefix}_types.h").read())
out, rows = [], []
api, calls = describe.parse(f"wire/{prefix}.h", types)
absent_codecs(out)
for c in calls:
    absent(c, out)
    if not c.hand and "SERVE" not in c.words and case(c, out):
        offset = f"offsetof(struct {api.tag}driver, {c.name})"
        rows.append(f"\t{{CALL_{c.name}, call_{c.name}, {offset}, (void *)fake_{c.name}}},")
print("\n\n".join(out))
print("\nconst struct loop_case loop_cases[] = {\n" + "\n".join(rows) + "\n};")
print("const unsigned loop_count = sizeof loop_cases / sizeof *loop_cases;")
