#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an API description (valid C, see annotate.h and docs/api.md) and writes one artefact of it to standard output.

usage: gen.py TYPES.h API.h ARTEFACT      ARTEFACT: one of the gen_* functions below, e.g. stubs.c

It knows words and types, no name of any API function. A description that it does not understand is refused with file:line: error.
"""
import hashlib
import pathlib
import re
import sys
import zlib

CLASSES = {"LOCAL", "CACHED", "POST", "NEW", "HAND", "UNSUPPORTED", "SAME"}
NEEDS = {"ANYTIME": "CALL_ANYTIME", "UNLOST": "CALL_UNLOST"}
CALL_WORDS = CLASSES | set(NEEDS) | {"SHIM", "SERVE", "ALWAYS", "GUARDED", "SINCE", "PTSZ", "PTDS"}
PARAM_WORDS = {"BYTES", "COUNT", "TEXT", "STRING", "INOUT", "IN", "OPTIONAL", "OPAQUE", "UNSENT", "VIA", "RAW", "DROP", "ORDINAL"}
UNSIGNED = {"size_t", "unsigned", "unsigned int", "unsigned char", "unsigned short", "unsigned long long", "uint32_t", "uint64_t",
            "unsigned long"}
SIGNED = {"int", "char", "long long", "short"}


class Refused(Exception):
    pass


class Api:
    """The line API(prefix, result type, invalid argument, out of memory, not supported, not permitted[, VERSIONED]) of a description."""

    def __init__(self, text, path):
        m = re.search(r"^API\((.*?)\)", text, re.M | re.S)
        if not m:
            raise Refused(f"{path}:1: error: nothing described: no API(...) line")
        a = [x.strip() for x in m[1].split(",")]
        self.prefix, self.result, self.invalid, self.memory, self.unsupported, self.denied = a[:6]
        self.versioned = "VERSIONED" in a
        self.plain = self.result == "CUresult"
        # The first description's names carry no prefix.
        self.shim = "devshim/call.h" if self.plain else f"devshim/{self.prefix}/call.h"
        self.code = "CUresult" if self.plain else "int"
        self.first = "" if self.plain else " = 0x40"      # handle types of the two descriptions differ
        self.tag, self.upper, self.table = ("", "", "drv") if self.plain else (self.prefix + "_", self.prefix.upper() + "_", self.prefix)

    def local(self, r):
        """The code to give back for a code of the shim itself, and for one that came from the server."""
        return r if self.plain else f"{self.prefix}_local({r})"

    def remote(self, r):
        return r if self.plain else f"{self.prefix}_remote({r})"


class Types:
    """What the types header says: which names are handles, enums, numbers, plain structs."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.alias = {b: a.strip() for a, b in re.findall(r"typedef ((?:unsigned |long )*\w+) (\w+);", text)}
        self.handles = [h for h in re.findall(r"typedef struct \w+ \*(\w+);", text)]
        self.enums = set(re.findall(r"typedef enum \w*\s*\{[^}]*\} (\w+);", text))
        self.values = re.findall(r"^\s+(CU\w+)\s*(?:=|,|$)", "\n".join(re.findall(r"typedef enum \w*\s*\{([^}]*)\}", text)), re.M)
        self.structs = {m[2]: m[1] for m in re.findall(r"typedef (struct|union)\s*\w*\s*\{(.*?)\n\} (\w+);", text, re.S)}

    def base(self, t):
        while t in self.alias and not (t in self.handles or t in self.enums or t in self.structs):
            t = self.alias[t]
        return t

    def kind(self, t):
        b = self.base(t)
        if b in self.handles:
            return "handle"
        if t == "CUdevice":
            return "device"
        if b in self.enums or b in SIGNED:
            return "i64"
        if b in UNSIGNED:
            return "u64"
        if b in ("float", "double"):
            return "f64"
        if b in self.structs:
            return "struct"
        return None

    def versioned(self, t):
        """A struct whose first field tells its version and, in the low 24 bits, its size: a program may have an older, shorter one."""
        return self.kind(t) == "struct" and bool(re.match(r"\s*unsigned int version;", self.structs[self.base(t)]))

    def plain(self, t):
        """A struct that may travel as bytes: no pointers and no handles inside."""
        body = self.structs[self.base(t)]
        if re.search(r"\*(?!/)", body):
            return False
        for w in re.findall(r"\b([A-Za-z_]\w*)\b", body):
            k = self.kind(w)
            if k == "handle" or (k == "struct" and not self.plain(w)):
                return False
        return True


class Param:
    def __init__(self, text, where):
        text = text.strip()
        words = re.search(r"((?:\s+[A-Z]{2,}\b(?:\([^()]*\))?)*)$", text)[1]
        decl = text[:len(text) - len(words)]
        m = re.match(r"^(const )?([\w ]+?)\s*((?:\*\s*(?:const )?)*)(\w+)$", decl)
        if not m:
            raise Refused(f"{where}: error: cannot read parameter '{text}'")
        self.const, self.type, self.name, self.decl = bool(m[1]), m[2].strip(), m[4], decl
        self.stars = m[3].count("*")
        self.words = {}
        for w, arg in re.findall(r"(\w+)(?:\(([^()]*)\))?", words):
            if w not in PARAM_WORDS:
                raise Refused(f"{where}: error: unknown word '{w}' after parameter '{self.name}'")
            self.words[w] = arg

    def has(self, w):
        return w in self.words


class Call:
    def __init__(self, name, params, words, where, types, api):
        self.name, self.params, self.words, self.where = name, params, words, where
        self.base = re.sub(r"_v\d+$", "", name)
        self.cls = next((w for w in words if w in CLASSES), "WAIT")
        self.flavour = next((w for w in ("PTSZ", "PTDS") if w in words), None)
        self.hand = self.cls in ("LOCAL", "HAND", "UNSUPPORTED", "SAME")
        if api.versioned and "SINCE" not in words:
            raise Refused(f"{where}: error: {name} has no SINCE")
        if not self.hand:
            for p in params:
                p.mode = self.mode(p, types)
                p.versioned = not api.plain and p.mode in ("in", "inout") and types.versioned(p.type)
            self.check()

    def mode(self, p, types):
        """How a parameter travels."""
        where = f"{self.where}: error: {self.name}: parameter '{p.name}'"
        for w in ("BYTES", "COUNT", "TEXT"):
            for ident in re.findall(r"[A-Za-z_]\w*", p.words.get(w) or ""):
                if ident not in [q.name for q in self.params]:
                    raise Refused(f"{where}: length names no parameter: '{ident}'")
        if p.has("UNSENT"):
            return "unsent"
        if p.has("OPAQUE"):
            return "opaque"
        if p.has("VIA"):
            return "via-in" if p.const or p.has("IN") else "via-out"
        if p.has("STRING"):
            return "string"
        if p.has("TEXT"):
            return "text"
        if p.has("BYTES"):
            return "bytes-in" if p.const or p.has("IN") else "bytes-out"
        kind = types.kind(p.type)
        if kind is None or p.stars > 1:
            raise Refused(f"{where}: '{p.type}{' ' + '*' * p.stars if p.stars else ''}' needs a word")
        p.kind = kind
        if kind == "struct" and not p.has("RAW") and not types.plain(p.type):
            raise Refused(f"{where}: struct {p.type} holds pointers or handles and needs VIA")
        if p.stars == 0:
            return "value"
        if p.has("COUNT") and p.has("INOUT"):
            return "array-inout"
        if p.has("COUNT"):
            return "array-in" if p.const or p.has("IN") else "array-out"
        return "inout" if p.has("INOUT") else "in" if p.const or p.has("IN") else "out"

    def check(self):
        taken = next((p for p in self.params if p.name in ("c", "r", "x")), None)
        if taken:
            raise Refused(f"{self.where}: error: {self.name}: parameter '{taken.name}': generated code has that name itself")
        outs = [p for p in self.params if p.mode in ("out", "inout", "array-out", "array-inout", "text", "bytes-out", "via-out")]
        if self.cls == "POST" and outs:
            raise Refused(f"{self.where}: error: {self.name}: a returned value on a POST call: '{outs[0].name}'")
        if self.cls == "NEW" and ([p.mode for p in outs] != ["out"] or outs[0].kind != "handle"):
            raise Refused(f"{self.where}: error: {self.name}: NEW needs exactly one returned handle")

    @property
    def args(self):
        return ", ".join(p.decl for p in self.params) or "void"

    @property
    def names(self):
        return ", ".join(p.name for p in self.params)

    @property
    def signature(self):
        """Changes when the encoding does: hand-written ones change it by their words."""
        s = self.name + "(" + ",".join(f"{p.decl}:{sorted(p.words.items())}" for p in self.params) + ")" + self.cls
        return zlib.crc32(s.encode())


def parse(path, types):
    text = open(path).read()
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    calls, seen, api = [], {}, Api(text, path)
    for m in re.finditer(r"^" + api.result + r" (\w+)\(([^;]*);", text, re.M):
        where = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
        name, rest, depth = m[1], m[2], 1
        for i, ch in enumerate(rest):
            depth += (ch == "(") - (ch == ")")
            if depth == 0:
                break
        else:
            raise Refused(f"{where}: error: {name}: parameters do not end")
        if name in seen:
            raise Refused(f"{where}: error: {name} described twice (first at {seen[name]})")
        seen[name] = where
        inside, tail = rest[:i], rest[i + 1:]
        parts, depth, cur = [], 0, ""
        for ch in inside:
            depth += (ch == "(") - (ch == ")")
            if ch == "," and depth == 0:
                parts.append(cur)
                cur = ""
            else:
                cur += ch
        parts.append(cur)
        parts = [" ".join(p.split()) for p in parts]
        params = [] if parts == ["void"] else [Param(p, where) for p in parts]
        words = {}
        for w, quoted, arg in re.findall(r'(\w+)(?:\((?:"([^"]*)"|([^()]*))\))?', tail):
            if w not in CALL_WORDS:
                raise Refused(f"{where}: error: unknown word '{w}' after {name}")
            words[w] = quoted or arg
        calls.append(Call(name, params, words, where, types, api))
    for c in calls:
        if c.cls == "SAME" and c.words["SAME"] not in seen:
            raise Refused(f"{c.where}: error: {c.name}: SAME names no entry")
    if not calls:
        raise Refused(f"{path}:1: error: nothing described")
    return api, calls


HEAD = "/* Generated from the API description by wire/gen.py: do not edit. */\n"


def gen_calls_h(api, calls, types):
    print(HEAD + f"#pragma once\n#include <stdint.h>\n\nenum {api.tag}call_id {{")
    for c in calls:
        print(f"\tCALL_{c.name},")
    print(f"\t{api.upper}CALL_COUNT\n}};\nenum {api.tag}handle_type {{\n\t{api.upper}HANDLE_NONE{api.first},")
    for h in types.handles:
        print(f"\tHANDLE_{h},")
    print(f"\t{api.upper}HANDLE_TYPES\n}};\n/* Name, signature of the encoding, and class of each call id. */")
    if api.plain:
        print("struct call_name { const char *name; uint32_t signature; const char *class_; uint8_t needs; };")
        print("/* What a call needs of the current context: one that is not lost, none or such a one, nothing. */")
        print("enum call_need { CALL_CONTEXT, CALL_UNLOST, CALL_ANYTIME };")
    else:
        print("#include \"cuda.calls.h\"")
    whole = hashlib.sha256("".join(f"{c.name} {c.signature}\n" for c in calls).encode()).digest()
    print(f"/* The list of all names and signatures, in order: ends with the same one number their calls alike. */")
    print(f"#define {api.upper}CALL_LIST 0x{int.from_bytes(whole[:8], 'little'):016x}ull")
    print(f"extern const struct call_name {api.tag}call_names[{api.upper}CALL_COUNT];")
    print(f"extern const char *const {api.tag}handle_names[];")


def gen_calls_c(api, calls, types):
    print(HEAD + f'#include "{api.prefix}.calls.h"\n\nconst struct call_name {api.tag}call_names[{api.upper}CALL_COUNT] = {{')
    for c in calls:
        needs = next((NEEDS[w] for w in c.words if w in NEEDS), "CALL_CONTEXT")
        print(f'\t{{"{c.name}", 0x{c.signature:08x}, "{c.cls.lower()}", {needs}}},')
    print(f'}};\nconst char *const {api.tag}handle_names[] = {{\n\t"nothing",')
    for h in types.handles:
        print(f'\t"{h}",')
    print("};")


def exports(calls):
    """All exported symbols with the call that they belong to."""
    for c in calls:
        yield c.name, c
        if c.flavour:
            yield c.name + "_" + c.flavour.lower(), c


def gen_entry_c(api, calls, types):
    """The exports: each counts, when that is asked for, and calls the shim's function of that name, which the link has renamed (gen_inner)."""
    print(HEAD + f'#include "devshim/count.h"\n#include "wire/{api.prefix}.h"\n#include "{api.prefix}.flavours.h"\n')
    for i, (name, c) in enumerate(exports(calls)):
        print(f"{api.result} inner_{name}({c.args});\n__attribute__((noinline, cold)) static {api.result} counted_{name}({c.args})\n{{\n"
              f"\tstruct count c = count_begin({i});\n\treturn count_end(c, inner_{name}({c.names}));\n}}\n"
              f"{api.result} {name}({c.args})\n{{\n\treturn __builtin_expect(count_on, 0) ? counted_{name}({c.names}) : inner_{name}({c.names});\n}}\n")


def gen_inner(api, calls, types):
    """For objcopy --redefine-syms."""
    for name, _ in exports(calls):
        print(f"{name} inner_{name}")


def gen_map(api, calls, types):
    """The version script: what the shim exports."""
    print("{\nglobal:\n\tscudafs_shim_marker;")
    for name, _ in exports(calls):
        print(f"\t{name};")
    print("local:\n\t*;\n};")


def gen_names_c(api, calls, types):
    by_name = {c.name: c for c in calls}
    print(HEAD + '#include "wire/stats.h"\n\nconst struct stats_name stats_names[] = {')
    for name, c in exports(calls):
        while c.cls == "SAME":
            c = by_name[c.words["SAME"]]
        print(f'\t{{"{name}", {"STATS_CACHED" if c.cls == "CACHED" else "STATS_LOCAL"}}},')
    print("};\nconst unsigned stats_count = sizeof stats_names / sizeof *stats_names;")


def gen_driver_h(api, calls, types):
    print(HEAD + f'#pragma once\n#include <stddef.h>\n#include "wire/{api.prefix}_types.h"\n\nstruct {api.tag}driver {{')
    for name, c in exports(calls):
        print(f"\t{api.result} (*{name})({c.args});")
    print("};\n/* Symbols to look up, where their pointer goes, and what stands there when the library lacks them. */")
    print("#ifndef DRIVER_SYMBOL\n#define DRIVER_SYMBOL\nstruct driver_symbol { const char *name; size_t offset; void *missing; };\n#endif")
    print(f"extern const struct driver_symbol {api.tag}driver_symbols[];\nextern const unsigned {api.tag}driver_symbol_count;")


def gen_driver_c(api, calls, types):
    print(HEAD + f'#include "{api.prefix}.driver.h"\n')
    for name, c in exports(calls):
        unused = "".join(f"\t(void){p.name};\n" for p in c.params)
        print(f"static {api.result} missing_{name}({c.args})\n{{\n{unused}\treturn {api.unsupported};\n}}")
    print(f"\nconst struct driver_symbol {api.tag}driver_symbols[] = {{")
    for name, c in exports(calls):
        print(f'\t{{"{name}", offsetof(struct {api.tag}driver, {name}), missing_{name}}},')
    print(f"}};\nconst unsigned {api.tag}driver_symbol_count = sizeof {api.tag}driver_symbols / sizeof *{api.tag}driver_symbols;")


def put(p, expr, kind=None):
    """Client: statements that put one element."""
    kind = kind or p.kind
    if kind == "handle":
        return f"\tif (!put_handle(&c, HANDLE_{p.type}, {expr}))\n\t\treturn HANDLE_ERROR({p.type});\n"
    if kind == "device":
        return f"\tif (!put_device(&c, {expr}))\n\t\treturn CUDA_ERROR_INVALID_DEVICE;\n"
    if kind == "struct":
        if p.has("ORDINAL"):
            path = p.words["ORDINAL"].strip()
            return (f"\t{{\n\t\t{p.type} copy = {expr};\n\t\tlocation_to_server(&copy{'.' + path if path else ''});\n"
                    f"\t\tput_bytes(&c.out, &copy, sizeof copy);\n\t}}\n")
        return f"\tput_bytes(&c.out, &({expr}), sizeof({p.type}));\n"
    return f"\tput_{kind}(&c.out, {expr});\n"


def get(p, target):
    """Client: a statement that takes one returned element."""
    if p.kind == "handle":
        return f"{target} = get_handle(&c, HANDLE_{p.type});"
    if p.kind == "device":
        return f"{target} = get_device(&c);"
    if p.kind == "struct":
        return f"get_bytes(&c.in, &({target}), sizeof({p.type}));"
    return f"{target} = ({p.type})get_{p.kind}(&c.in);"


def indent(s, n=1):
    return re.sub(r"^(?=.)", "\t" * n, s, flags=re.M)


def counted(c, p):
    """The count expression of an array, and the parameter if the count is itself a pointer."""
    n = p.words["COUNT"]
    q = next((q for q in c.params if q.name == n), None)
    return (f"*{n}", q) if q is not None and q.stars else (n, None)


def stub_body(api, c):
    s = f"\tstruct call c;\n\t{api.code} r = call_begin(&c, CALL_{c.name});\n\tif (r)\n\t\treturn {api.local('r')};\n"
    for p in c.params:
        if p.mode in ("out", "inout", "in", "string", "bytes-out", "via-in", "via-out") and not p.has("OPTIONAL"):
            s += f"\tif (!{p.name})\n\t\treturn {api.invalid};\n"
        if p.mode in ("array-in", "array-out", "array-inout", "bytes-in") and not p.has("OPTIONAL"):
            n = counted(c, p)[0] if p.has("COUNT") else p.words["BYTES"]
            s += f"\tif (!{p.name} && ({n}))\n\t\treturn {api.invalid};\n"
    after = ""
    for p in c.params:
        opt = p.has("OPTIONAL")
        if p.mode == "value":
            s += put(p, p.name)
        elif p.mode == "opaque":
            s += f"\tput_u64(&c.out, (uintptr_t){p.name});\n"
        elif p.mode in ("in", "inout"):
            if opt:
                s += f"\tput_bool(&c.out, {p.name});\n\tif ({p.name}) {{\n{indent(put(p, '*' + p.name))}\t}}\n"
            elif p.versioned:
                s += (f"\t{p.type} {p.name}_ = {{0}};\n\tsize_t size_{p.name} = call_struct_size({p.name}, sizeof {p.name}_);\n"
                      f"\tmemcpy(&{p.name}_, {p.name}, size_{p.name});\n" + put(p, p.name + "_"))
            else:
                s += put(p, "*" + p.name)
        elif p.mode == "string":
            s += f"\tput_text(&c.out, {p.name});\n"
        elif p.mode == "text":
            s += f"\tput_u64(&c.out, {p.name} ? (uint64_t){p.words['TEXT']} : 0);\n"
            after += f"\t\tif ({p.name} && {p.words['TEXT']} > 0)\n\t\t\tget_text(&c.in, {p.name}, {p.words['TEXT']});\n"
        elif p.mode == "via-in":
            s += f"\tr = put_{p.words['VIA']}(&c, {p.name});\n\tif (r)\n\t\treturn r;\n"
        elif p.mode == "via-out":
            after += f"\t\tget_{p.words['VIA']}(&c, {p.name});\n"
        elif p.mode in ("array-in", "array-inout"):
            n = counted(c, p)[0]
            if p.mode == "array-inout":
                after += (f"\t\tfor (size_t i = 0, n = get_array(&c.in, {n}); {p.name} && i < n; i++)\n"
                          f"\t\t\t{get(p, p.name + '[i]')}\n")
            s += (f"\tput_array(&c.out, {p.name} ? {n} : 0);\n\tfor (size_t i = 0; {p.name} && i < (size_t)({n}); i++) {{\n"
                  f"{indent(put(p, p.name + '[i]'))}\t}}\n")
        elif p.mode == "array-out":
            n, q = counted(c, p)
            if q:
                s += f"\tput_bool(&c.out, {p.name});\n"
                after += (f"\t\tif ({p.name}) {{\n\t\t\tsize_t n = get_array(&c.in, asked);\n\t\t\tfor (size_t i = 0; i < n; i++)\n"
                          f"\t\t\t\t{get(p, p.name + '[i]')}\n\t\t}}\n")
            else:
                after += (f"\t\tfor (size_t i = 0, n = get_array(&c.in, {n}); {p.name} && i < n; i++)\n"
                          f"\t\t\t{get(p, p.name + '[i]')}\n")
        elif p.mode == "bytes-in":
            s += f"\tc.bulk = {p.name};\n\tc.bulk_len = {p.words['BYTES']};\n"
        elif p.mode == "bytes-out":
            s += f"\tc.bulk_out = {p.name};\n\tc.bulk_out_len = {p.words['BYTES']};\n"
        if p.mode in ("out", "inout"):
            if opt and p.mode == "out":
                s += f"\tput_bool(&c.out, {p.name});\n"
            if opt:
                tmp = p.name + "_"
                after += (f"\t\t{p.type} {tmp};\n\t\t{get(p, tmp)}\n\t\tif ({p.name})\n\t\t\t*{p.name} = {tmp};\n")
            elif p.versioned:
                after += f"\t\t{get(p, p.name + '_')}\n\t\tmemcpy({p.name}, &{p.name}_, size_{p.name});\n"
            else:
                after += f"\t\t{get(p, '*' + p.name)}\n"
    asked = next((q for p in c.params if p.mode == "array-out" for q in [counted(c, p)[1]] if q), None)
    if asked:
        room = "LIMIT_UNASKED" if asked.mode == "out" else f"*{asked.name}"
        s = s.replace("\tput_", f"\tsize_t asked = {room};\n\tput_", 1) if "\tput_" in s else s
    drops = [p for p in c.params if p.has("DROP")]
    if c.cls == "NEW":
        p = next(p for p in c.params if p.mode == "out")
        return s + (f"\tvoid *id = handle_new(HANDLE_{p.type});\n\tif (!id)\n\t\treturn {api.memory};\n"
                    f"\tput_u64(&c.out, (uintptr_t)id);\n\tr = call_post(&c);\n\tif (!r)\n\t\t*{p.name} = id;\n"
                    f"\telse\n\t\thandle_drop(HANDLE_{p.type}, id);\n\treturn r;\n")
    drop = "".join(f"\tif (!r)\n\t\thandle_drop(HANDLE_{p.type}, {p.name});\n" for p in drops)
    if c.cls == "POST":
        return s + "\tr = call_post(&c);\n" + drop + f"\treturn {api.remote('r')};\n"
    s += "\tr = call_wait(&c);\n"
    if after:
        s += (f"\tif ({'c.in.len < c.in.cap' if 'ALWAYS' in c.words else '!r'}) {{\n{after}\t}}\n")
    return s + drop + f"\treturn {api.remote('call_end(&c, r)')};\n"


def gen_remote_h(api, calls, types):
    print(HEAD + f'#pragma once\n#include "wire/{api.prefix}_types.h"\n')
    for c in calls:
        if not c.hand and ("SHIM" in c.words or c.cls == "CACHED"):
            print(f"{api.result} remote_{c.name}({c.args});")


def gen_stubs_c(api, calls, types):
    print(HEAD + f'#include <string.h>\n#include "{api.shim}"\n#include "wire/{api.prefix}.h"\n#include "{api.prefix}.calls.h"\n#include "{api.prefix}.remote.h"\n')
    print("#define HANDLE_ERROR(type) " + ("handle_error(HANDLE_##type)" if api.plain else api.invalid) + "\n")
    for c in calls:
        if c.cls == "UNSUPPORTED":
            unused = "".join(f"\t(void){p.name};\n" for p in c.params)
            print(f'{api.result} {c.name}({c.args})\n{{\n{unused}\treturn {api.tag}call_unsupported("{c.name}", "{c.words["UNSUPPORTED"]}");\n}}\n')
        elif c.cls == "SAME":
            print(f"{api.result} {c.name}({c.args})\n{{\n\treturn {c.words['SAME']}({c.names});\n}}\n")
        elif not c.hand:
            pre = "remote_" if "SHIM" in c.words or c.cls == "CACHED" else ""
            print(f"{api.result} {pre}{c.name}({c.args})\n{{\n{stub_body(api, c)}}}\n")
        if c.flavour:
            print(f"{api.result} {c.name}_{c.flavour.lower()}({c.args})\n{{\n\tptds_begin();\n\tCUresult r = {c.name}({c.names});\n"
                  f"\tptds_end();\n\treturn r;\n}}\n")


def serve_get(p, kind=None):
    kind = kind or p.kind
    if kind == "handle":
        return f"exec_handle(x, HANDLE_{p.type})"
    if kind == "device":
        return "(int)get_i64(&x->in)"
    return f"({p.type})get_{kind}(&x->in)"


def serve_put(p, expr):
    if p.kind == "handle":
        return f"exec_put_handle(x, HANDLE_{p.type}, {expr});"
    if p.kind == "device":
        return f"put_i64(&x->out, {expr});"
    if p.kind == "struct":
        return f"put_bytes(&x->out, &({expr}), sizeof({p.type}));"
    return f"put_{p.kind}(&x->out, {expr});"


def serve_body(api, c):
    s, after, args, drops = "", "", [], ""
    bad = "\t\tif (x->in.bad)\n\t\t\treturn SERVE_BAD;\n"
    late = ""
    for p in c.params:
        arg, opt, n = p.name, p.has("OPTIONAL"), p.name
        if p.mode == "value":
            s += (f"\t{p.type} {n};\n\tget_bytes(&x->in, &{n}, sizeof {n});\n" if p.kind == "struct"
                  else f"\t{p.type} {n} = {serve_get(p)};\n")
        elif p.mode == "opaque":
            s += f"\t{p.decl} = ({p.type} {'*' * p.stars})(uintptr_t)get_u64(&x->in);\n"
        elif p.mode == "unsent":
            arg = "NULL" if p.stars else "0"
        elif p.mode in ("in", "inout"):
            one = f"get_bytes(&x->in, &{n}_, sizeof {n}_);" if p.kind == "struct" else f"{n}_ = {serve_get(p)};"
            s += f"\t{p.type} {n}_ = {{0}};\n" if p.kind == "struct" else f"\t{p.type} {n}_ = 0;\n"
            if opt:
                s += f"\tbool has_{n} = get_bool(&x->in);\n\tif (has_{n})\n\t\t{one}\n"
                arg = f"has_{n} ? &{n}_ : NULL"
            else:
                s += f"\t{one}\n"
                arg = f"&{n}_"
            if p.versioned:
                late += (f"\tif (({n}_.version & 0xffffff) > sizeof {n}_)\n"
                         f"\t\treturn (CUresult){api.upper}ERROR_ARGUMENT_VERSION_MISMATCH;\n")
        elif p.mode == "out":
            s += f"\t{p.type} {n}_ = {{0}};\n" if p.kind == "struct" else f"\t{p.type} {n}_ = 0;\n"
            if opt:
                s += f"\tbool has_{n} = get_bool(&x->in);\n"
            arg = f"has_{n} ? &{n}_ : NULL" if opt else f"&{n}_"
        elif p.mode == "string":
            s += f"\tchar *{n} = exec_alloc(x, LIMIT_STRING + 1);\n\tif (!{n})\n\t\treturn SERVE_BAD;\n\tget_text(&x->in, {n}, LIMIT_STRING + 1);\n"
        elif p.mode == "text":
            fixed = p.words["TEXT"].isdigit()
            s += (f"\tsize_t cap_{n} = get_u64(&x->in);\n\tif (cap_{n} > LIMIT_STRING)\n\t\tcap_{n} = LIMIT_STRING;\n"
                  f"\tchar *{n} = cap_{n} ? exec_alloc(x, cap_{n}) : NULL;\n\tif (cap_{n} && !{n})\n\t\treturn SERVE_BAD;\n")
            if fixed:
                late += f"\tif (cap_{n} != {p.words['TEXT']})\n\t\treturn SERVE_BAD;\n"
            else:
                late += f"\t{p.words['TEXT']} = cap_{n};\n"
            after += f"\t\tif (cap_{n}) {{\n\t\t\t{n}[cap_{n} - 1] = 0;\n\t\t\tput_text(&x->out, {n});\n\t\t}}\n"
        elif p.mode == "via-in":
            s += f"\t{p.type} {n}_ = {{0}};\n\tget_{p.words['VIA']}(x, &{n}_);\n"
            arg = f"&{n}_"
        elif p.mode == "via-out":
            s += f"\t{p.type} {n}_ = {{0}};\n"
            after += f"\t\tput_{p.words['VIA']}(x, &{n}_);\n"
            arg = f"&{n}_"
        elif p.mode in ("array-in", "array-inout"):
            if p.mode == "array-inout":
                after += f"\t\tput_array(&x->out, n_{n});\n\t\tfor (size_t i = 0; i < n_{n}; i++)\n\t\t\t{serve_put(p, n + '[i]')}\n"
            one = (f"get_bytes(&x->in, &{n}[i], sizeof *{n});" if p.kind == "struct" else f"{n}[i] = {serve_get(p)};")
            s += (f"\tsize_t n_{n} = get_array(&x->in, LIMIT_ARRAY);\n"
                  f"\t{p.type} *{n} = n_{n} ? exec_alloc(x, n_{n} * sizeof *{n}) : NULL;\n\tif (n_{n} && !{n})\n\t\treturn SERVE_BAD;\n"
                  f"\tfor (size_t i = 0; i < n_{n}; i++)\n\t\t{one}\n")
            expr = counted(c, p)[0]
            late += f"\tif (n_{n} != (size_t)({expr}){f' && n_{n}' if opt else ''})\n\t\treturn SERVE_BAD;\n"
        elif p.mode == "array-out":
            expr, q = counted(c, p)
            if q:
                s += f"\tbool has_{n} = get_bool(&x->in);\n"
                if q.mode == "out":
                    late += f"\tsize_t room_{n} = LIMIT_UNASKED;\n"
                else:
                    late += (f"\tif (has_{n} && (size_t){q.name}_ > LIMIT_ARRAY)\n\t\t{q.name}_ = LIMIT_ARRAY;\n"
                             f"\tsize_t room_{n} = has_{n} ? {q.name}_ : 0;\n")
                late += (f"\t{p.type} *{n} = has_{n} ? exec_alloc(x, (room_{n} + 1) * sizeof *{n}) : NULL;\n"
                         f"\tif (has_{n} && !{n})\n\t\treturn SERVE_BAD;\n")
                after += (f"\t\tif ({n}) {{\n\t\t\tsize_t n = {q.name}_ < room_{n} ? {q.name}_ : room_{n};\n\t\t\tput_array(&x->out, n);\n"
                          f"\t\t\tfor (size_t i = 0; i < n; i++)\n\t\t\t\t{serve_put(p, n + '[i]')}\n\t\t}}\n")
            else:
                late += (f"\tif ((size_t)({expr}) > LIMIT_ARRAY)\n\t\treturn SERVE_BAD;\n"
                         f"\t{p.type} *{n} = exec_alloc(x, ({expr} + 1) * sizeof *{n});\n\tif (!{n})\n\t\treturn SERVE_BAD;\n")
                after += (f"\t\tput_array(&x->out, {expr});\n\t\tfor (size_t i = 0; i < (size_t)({expr}); i++)\n"
                          f"\t\t\t{serve_put(p, n + '[i]')}\n")
        elif p.mode == "bytes-in":
            late += (f"\tif (x->frame.bulk_len != {p.words['BYTES']})\n\t\treturn SERVE_BAD;\n"
                     f"\tvoid *{n} = exec_bulk_all(x, LIMIT_BATCH);\n\tif (!{n} && {p.words['BYTES']})\n\t\treturn SERVE_BAD;\n")
        elif p.mode == "bytes-out":
            late += (f"\tif ({p.words['BYTES']} > LIMIT_REPLY)\n\t\treturn SERVE_BAD;\n"
                     f"\tvoid *{n} = exec_alloc(x, {p.words['BYTES']} + 1);\n\tif (!{n})\n\t\treturn SERVE_BAD;\n")
            after += f"\t\tx->bulk = {n};\n\t\tx->bulk_len = {p.words['BYTES']};\n"
        if p.mode in ("out", "inout") and c.cls != "NEW":
            after += f"\t\t{serve_put(p, n + '_')}\n"
        if p.has("DROP"):
            drops += f"\tif (!r)\n\t\texec_drop(x, HANDLE_{p.type}, {n});\n"
        args.append(arg)
    new = next((p for p in c.params if p.mode == "out"), None) if c.cls == "NEW" else None
    if new:
        s += "\tuint64_t id = exec_new_id(x);\n"
    s += "\tif (!get_end(&x->in))\n\t\treturn SERVE_BAD;\n" + late + "\tif (x->bad_handle)\n\t\treturn x->handle_code;\n"
    if "GUARDED" in c.words:
        s += f"\tif (!exec_may_change(x))\n\t\treturn (CUresult){api.denied};\n"
    fn = f"{api.table}.{c.name}"
    if c.flavour == "PTDS":
        fn = f"(x->frame.flags & FRAME_PTDS ? {api.table}.{c.name}_ptds : {api.table}.{c.name})"
    s += f"\tCUresult r = {'' if api.plain else '(CUresult)'}{fn}({', '.join(args)});\n" + drops
    if new:
        s += f"\tif (!r)\n\t\texec_bind(x, HANDLE_{new.type}, id, {new.name}_);\n"
    elif after:
        s += f"\tif ({'true' if 'ALWAYS' in c.words else '!r'}) {{\n{after}\t}}\n"
    return s + "\treturn r;\n"


def gen_serve_c(api, calls, types):
    print(HEAD + f'#include "server/exec.h"\n#include "wire/limits.h"\n#include "{api.prefix}.calls.h"\n')
    if not api.plain:
        print(f'#include "server/{api.prefix}.h"\n')
    rows = []
    for c in calls:
        if c.cls in ("LOCAL", "UNSUPPORTED", "SAME"):
            rows.append(f'\t{{"{c.name}", 0x{c.signature:08x}, NULL}},')
            continue
        rows.append(f'\t{{"{c.name}", 0x{c.signature:08x}, serve_{c.name}}},')
        if c.cls == "HAND" or "SERVE" in c.words:
            print(f"CUresult serve_{c.name}(struct exec *x);\n")
        else:
            print(f"static CUresult serve_{c.name}(struct exec *x)\n{{\n{serve_body(api, c)}}}\n")
    print(f"const struct serve_entry {api.tag}serve_table[] = {{\n" + "\n".join(rows) + "\n};")
    print(f"const unsigned {api.tag}serve_count = sizeof {api.tag}serve_table / sizeof *{api.tag}serve_table;")


def gen_procs_c(api, calls, types):
    rows = []
    for c in calls:
        rows.append((c.base, int(c.words["SINCE"]), 0, c.name))
        if c.flavour:
            rows.append((c.base, int(c.words[c.flavour]), 2, c.name + "_" + c.flavour.lower()))
    print(HEAD + f'#include "devshim/procs.h"\n#include "wire/{api.prefix}.h"\n\nconst struct proc procs[] = {{')
    decls = [f"{api.result} {name}({c.args});" for name, c in exports(calls) if name != c.name]
    for base, version, flavour, symbol in sorted(rows):
        print(f'\t{{"{base}", {version}, {flavour}, "{symbol}", (void *){symbol}}},')
    print("};\nconst unsigned proc_count = sizeof procs / sizeof *procs;")
    return decls


def gen_flavours_h(api, calls, types):
    """Prototypes of the per-thread default stream flavours, which the description names by a word only."""
    print(HEAD + f'#pragma once\n#include "wire/{api.prefix}_types.h"\n#pragma GCC visibility push(default)\n')
    for name, c in exports(calls):
        if name != c.name:
            print(f"{api.result} {name}({c.args});")
    print("#pragma GCC visibility pop")


def gen_soft_c(api, calls, types):
    print(HEAD + f'#include "server/soft/context.h"\n#include "wire/{api.prefix}.h"\n')
    for c in calls:
        unused = "".join(f"\t(void){p.name};\n" for p in c.params)
        body = f"{unused}\treturn soft_unsupported(\"{c.name}\");"
        if c.cls == "SAME":
            body = f"\treturn {c.words['SAME']}({c.names});"
        print(f"__attribute__((weak)) {api.result} {c.name}({c.args})\n{{\n{body}\n}}\n")
        if c.flavour:
            print(f"{api.result} {c.name}_{c.flavour.lower()}({c.args})\n{{\n\tsoft_ptds_begin();\n\tCUresult r = {c.name}({c.names});\n"
                  f"\tsoft_ptds_end();\n\treturn r;\n}}\n")


def tree_files(*patterns):
    """Files of this tree, each with its text: what is said of the tests and of the software device is looked up there."""
    top = pathlib.Path(__file__).resolve().parent.parent
    for path in sorted(p for pattern in patterns for p in top.glob(pattern)):
        yield path, path.read_text(errors="replace")


def tests_of(calls):
    """Call name to the tests that name it. A name without its version means the newest one, as NVIDIA's header has it."""
    newest, found = {}, {c.name: [] for c in calls}
    for c in calls:
        version = int((re.search(r"_v(\d+)$", c.name) or [0, 1])[1])
        if version >= newest.get(c.base, (0, ""))[0]:
            newest[c.base] = (version, c.name)
    for path, text in tree_files("tests/apps/*.c*", "tests/apps/conformance/*.c", "tests/e2e/*.sh", "tests/e2e/*.py", "tests/e2e/progs/*.c",
                                 "tests/soft/*.c", "tests/unit/*.c", "tests/apps/*/*.cu"):
        name = f"{path.parent.name}/{path.stem}"
        for word in set(re.findall(r"\w+", text)):
            call = word if word in found and word != newest.get(word, (0, word))[1] and word not in newest else newest.get(word, (0, word))[1]
            if call in found:
                found[call].append(name)
    return found


def gen_support_md(api, calls, types):
    how = {"WAIT": "waits for the server", "POST": "posted", "NEW": "posted, handle chosen by the client", "LOCAL": "answered in the shim",
           "CACHED": "asked once", "HAND": "by hand at both ends", "SAME": "another name of", "UNSUPPORTED": "refused in the shim"}
    yes = [c for c in calls if c.cls != "UNSUPPORTED"]
    tests = tests_of(calls)
    soft = {m for _, text in tree_files("server/soft/*.c", "devshim/errors.c", "devshim/tables.c", "devshim/procs.c") for m in re.findall(r"^" + api.result + r" (\w+)\(", text, re.M)}
    named = sum(1 for c in yes if tests[c.name])
    print(f"# What is supported\n\nGenerated from `wire/{api.prefix}.h` (`make docs`). "
          f"{len(yes)} of {len(calls)} functions ({sum(1 for _ in exports(calls))} exports with the per-thread default stream flavours). "
          f"{named} of them are called by name in the programs below `tests/`; what NVIDIA's runtime and libraries call is not counted. "
          f"Every call whose encoding is generated goes once through stub and dispatch in `tests/gen/loop.sh`.\n")
    print(f"| function | answer | state |{' software device |' if api.plain else ''} tests | since |\n|---|---|---|{'---|' if api.plain else ''}---|---|")
    for c in calls:
        a = how[c.cls]
        a += f" `{c.words['SAME']}`" if c.cls == "SAME" else f", until: {c.words['CACHED']}" if c.cls == "CACHED" else ""
        state = f"**not supported**: {c.words['UNSUPPORTED']}" if c.cls == "UNSUPPORTED" else "works"
        other = c.words["SAME"] if c.cls == "SAME" else c.name
        has = f" {'has it' if other in soft else 'lacks it'} |" if api.plain else ""
        listed = tests[c.name] or (["gen/loop"] if not c.hand and "SERVE" not in c.words else [])
        more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
        print(f"| `{c.name}`{' + ' + c.flavour.lower() if c.flavour else ''} | {a} | {state} |{has} {', '.join(listed[:4])}{more} | {c.words.get('SINCE', '')} |")


def gen_layout_c(api, calls, types):
    """A program that prints every size, offset and constant, to be compiled with our types and with NVIDIA's, and compared."""
    print("#include <stddef.h>\n#include <stdio.h>\n#include TYPES\nint main(void)\n{")
    for name, body in types.structs.items():
        print(f'\tprintf("{name} %zu\\n", sizeof({name}));')
        flat = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", body))
        for field in re.findall(r"(\w+)(?:\[[^;]*\])?;", flat):
            print(f'\tprintf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    for name in types.values:
        print(f'\tprintf("{name} %lld\\n", (long long){name});')
    print("\treturn 0;\n}")


def main():
    try:
        types_path, api_path, artefact = sys.argv[1:]
        emit = globals()["gen_" + artefact.replace(".", "_")]
    except (ValueError, KeyError):
        sys.exit(__doc__)
    try:
        types = Types(open(types_path).read())
        api, calls = parse(api_path, types)
        emit(api, calls, types)
    except Refused as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
