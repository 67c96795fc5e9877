# SPDX-License-Identifier: Apache-2.0
"""The client's side of a call: how a stub encodes it, sends it, and decodes the answer."""
from generator.describe import codecs, counted
from generator.text import HEAD, flavour, function, indent, lines, refusal, unused


def put(p, expr):
    """Statements that put one element."""
    if p.kind == "handle":
        wrong = "CUDA_ERROR_INVALID_VALUE" if p.has("VALUE") else f"HANDLE_ERROR({p.type})"
        return lines(1, f"if (!put_handle(&c, HANDLE_{p.type}, {expr}))", f"\treturn {wrong};")
    if p.kind == "device":
        return lines(1, f"if (!put_device(&c, {expr}))", "\treturn CUDA_ERROR_INVALID_DEVICE;")
    if p.kind == "struct" and p.has("ORDINAL"):
        path = p.words["ORDINAL"].strip()
        return lines(1, "{", f"\t{p.type} copy = {expr};",
                     f"\tlocation_to_server(&copy{'.' + path if path else ''});",
                     "\tput_bytes(&c.out, &copy, sizeof copy);", "}")
    if p.kind == "struct":
        return lines(1, f"put_bytes(&c.out, &({expr}), sizeof({p.type}));")
    return lines(1, f"put_{p.kind}(&c.out, {expr});")


def get(p, target):
    """A statement that takes one returned element."""
    if p.kind == "handle":
        return f"{target} = get_handle(&c, HANDLE_{p.type});"
    if p.kind == "device":
        return f"{target} = get_device(&c);"
    if p.kind == "struct":
        return f"get_bytes(&c.in, &({target}), sizeof({p.type}));"
    return f"{target} = ({p.type})get_{p.kind}(&c.in);"


class Body:
    """A stub as it grows, parameter by parameter: what stands ahead of the call, and what follows one that
    succeeded."""

    def __init__(self, api, c):
        self.api, self.c = api, c
        self.first = self.after = ""

    def send(self, *rows):
        self.first += lines(1, *rows)

    def take(self, *rows):
        self.after += lines(2, *rows)

    def refuse(self, p):
        """A pointer that must not be null, unless it is to nothing."""
        if p.has("OPTIONAL"):
            return
        if p.mode in ("out", "inout", "in", "string", "bytes-out", "via-in", "via-out"):
            self.send(f"if (!{p.name})", f"\treturn {self.api.invalid};")
        if p.mode in ("array-in", "array-out", "array-inout", "bytes-in"):
            n = counted(self.c, p)[0] if p.has("COUNT") else p.words["BYTES"]
            self.send(f"if (!{p.name} && ({n}))", f"\treturn {self.api.invalid};")

    def value(self, p):
        self.first += put(p, p.name)

    def opaque(self, p):
        self.send(f"put_u64(&c.out, (uintptr_t){p.name});")

    def unsent(self, p):
        pass

    def pointed(self, p):
        """A pointer to one element: sent, returned, or both."""
        n, opt = p.name, p.has("OPTIONAL")
        if p.mode != "out" and opt:
            self.send(f"put_bool(&c.out, {n});", f"if ({n}) {{")
            self.first += indent(put(p, "*" + n)) + "\t}\n"
        elif p.mode != "out" and p.versioned:
            self.send(f"{p.type} {n}_ = {{0}};", f"size_t size_{n} = call_struct_size({n}, sizeof {n}_);",
                      f"memcpy(&{n}_, {n}, size_{n});")
            self.first += put(p, n + "_")
        elif p.mode != "out":
            self.first += put(p, "*" + n)
        elif opt:
            self.send(f"put_bool(&c.out, {n});")
        if p.mode == "in":
            return
        if opt:
            self.take(f"{p.type} {n}_;", get(p, n + "_"), f"if ({n})", f"\t*{n} = {n}_;")
        elif p.versioned:
            self.take(get(p, n + "_"), f"memcpy({n}, &{n}_, size_{n});")
        else:
            self.take(get(p, "*" + n))

    def string(self, p):
        self.send(f"put_text(&c.out, {p.name});")

    def text(self, p):
        n, room = p.name, p.words["TEXT"]
        self.send(f"put_u64(&c.out, {n} ? (uint64_t){room} : 0);")
        self.take(f"if ({n} && {room} > 0)", f"\tget_text(&c.in, {n}, {room});")

    def via_in(self, p):
        self.send(f"r = put_{p.words['VIA']}(&c, {p.name});", "if (r)", "\treturn r;")

    def via_out(self, p):
        self.take(f"get_{p.words['VIA']}(&c, {p.name});")

    def take_array(self, p, room):
        self.take(f"for (size_t i = 0, n = get_array(&c.in, {room}); {p.name} && i < n; i++)",
                  "\t" + get(p, p.name + "[i]"))

    def array_in(self, p):
        n = counted(self.c, p)[0]
        if p.mode == "array-inout":
            self.take_array(p, n)
        self.send(f"put_array(&c.out, {p.name} ? {n} : 0);",
                  f"for (size_t i = 0; {p.name} && i < (size_t)({n}); i++) {{")
        self.first += indent(put(p, p.name + "[i]")) + "\t}\n"

    def array_out(self, p):
        n, q = counted(self.c, p)
        if not q:
            self.take_array(p, n)
            return
        self.send(f"put_bool(&c.out, {p.name});")
        self.take(f"if ({p.name}) {{", "\tsize_t n = get_array(&c.in, asked);",
                  "\tfor (size_t i = 0; i < n; i++)", "\t\t" + get(p, p.name + "[i]"), "}")

    def bytes_in(self, p):
        self.send(f"c.bulk = {p.name};", f"c.bulk_len = {p.words['BYTES']};")

    def bytes_out(self, p):
        self.send(f"c.bulk_out = {p.name};", f"c.bulk_out_len = {p.words['BYTES']};")

    def add(self, p):
        """One parameter: each way in which it may travel has its own piece."""
        if p.mode in ("in", "inout", "out"):
            self.pointed(p)
        elif p.mode == "array-inout":
            self.array_in(p)
        else:
            getattr(self, p.mode.replace("-", "_"))(p)

    def ask_room(self):
        """The room for an array whose length the server tells is read first: the answer overwrites it."""
        for p in self.c.params:
            q = counted(self.c, p)[1] if p.mode == "array-out" else None
            if q and "\tput_" in self.first:
                room = "LIMIT_UNASKED" if q.mode == "out" else f"*{q.name}"
                self.first = self.first.replace("\tput_", f"\tsize_t asked = {room};\n\tput_", 1)
                return


def body(api, c):
    b = Body(api, c)
    b.send("struct call c;", f"{api.code} r = call_begin(&c, CALL_{c.name});",
           "if (r)", f"\treturn {api.local('r')};")
    for p in c.params:
        b.refuse(p)
    for p in c.params:
        b.add(p)
    b.ask_room()
    if c.cls == "NEW":
        p = next(p for p in c.params if p.mode == "out")
        b.send(f"void *id = handle_new(HANDLE_{p.type});", "if (!id)", f"\treturn {api.memory};",
               "put_u64(&c.out, (uintptr_t)id);", "r = call_post(&c);", "if (!r)", f"\t*{p.name} = id;",
               "else", f"\thandle_drop(HANDLE_{p.type}, id);", "return r;")
        return b.first
    b.send(f"r = call_{'post' if c.cls == 'POST' else 'wait'}(&c);")
    if b.after:
        b.first += f"\tif ({'c.in.len < c.in.cap' if 'ALWAYS' in c.words else '!r'}) {{\n{b.after}\t}}\n"
    for p in c.params:
        if p.has("DROP"):
            b.send("if (!r)", f"\thandle_drop(HANDLE_{p.type}, {p.name});")
    b.send(f"return {api.remote('r' if c.cls == 'POST' else 'call_end(&c, r)')};")
    return b.first


def gen_remote_h(api, calls, types):
    print(HEAD + f'#pragma once\n#include "wire/{api.prefix}_types.h"\n')
    print("struct call;")
    for name, p, sent in codecs(calls):
        print(f"CUresult put_{name}(struct call *c, const {p.type} *p);" if sent else
              f"void get_{name}(struct call *c, {p.type} *p);")
    for c in calls:
        if not c.hand and c.asked_by_shim:
            print(f"{api.result} remote_{c.name}({c.args});")


def gen_stubs_c(api, calls, types):
    print(HEAD + f'#include <string.h>\n#include "{api.shim}"\n#include "wire/{api.prefix}.h"')
    print(f'#include "{api.prefix}.calls.h"\n#include "{api.prefix}.remote.h"\n')
    print(f"#define HANDLE_ERROR(type) {'handle_error(HANDLE_##type)' if api.plain else api.invalid}\n")
    for c in calls:
        head = f"{api.result} {c.name}({c.args})"
        if c.cls == "UNSUPPORTED":
            ask = f'{api.tag}call_unsupported(CALL_{c.name}, "{c.words["UNSUPPORTED"]}")'
            print(function(head, unused(c) + refusal(api, c, ask)))
        elif c.cls == "SAME":
            print(function(head, lines(1, f"return {c.words['SAME']}({c.names});")))
        elif not c.hand:
            pre = "remote_" if c.asked_by_shim else ""
            print(function(f"{api.result} {pre}{c.name}({c.args})", body(api, c)))
        if c.flavour:
            print(flavour(api, c, "ptds_begin", "ptds_end"))
