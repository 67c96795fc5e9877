# SPDX-License-Identifier: Apache-2.0
"""The server's side of a call: how its dispatch decodes it, calls the driver, and encodes the answer."""
from generator.describe import codecs, counted
from generator.text import HEAD, function, lines

BAD = ("\treturn SERVE_BAD;",)


def get(p):
    """An expression: the next element of the record."""
    if p.kind == "handle":
        return f"exec_handle(x, HANDLE_{p.type})"
    if p.kind == "device":
        return "(int)get_i64(&x->in)"
    return f"({p.type})get_{p.kind}(&x->in)"


def get_into(p, target, size):
    """A statement that takes the next element into a variable or a place of an array."""
    return f"get_bytes(&x->in, &{target}, sizeof {size});" if p.kind == "struct" else f"{target} = {get(p)};"


def put(p, expr):
    """A statement that puts one element of the answer."""
    if p.kind == "handle":
        return f"exec_put_handle(x, HANDLE_{p.type}, {expr});"
    if p.kind == "device":
        return f"put_i64(&x->out, {expr});"
    if p.kind == "struct":
        return f"put_bytes(&x->out, &({expr}), sizeof({p.type}));"
    return f"put_{p.kind}(&x->out, {expr});"


class Body:
    """A dispatch function as it grows, parameter by parameter: what reads the record, what must wait until it
    was read whole (a length may follow its buffer), the driver's arguments, and what follows a call that
    succeeded."""

    def __init__(self, api, c):
        self.api, self.c = api, c
        self.first = self.late = self.after = ""
        self.args = []

    def read(self, *rows):
        self.first += lines(1, *rows)

    def check(self, *rows):
        self.late += lines(1, *rows)

    def answer(self, *rows):
        self.after += lines(2, *rows)

    def zeroed(self, p):
        self.read(f"{p.type} {p.name}_ = {{0}};" if p.kind == "struct" else f"{p.type} {p.name}_ = 0;")

    def value(self, p):
        n = p.name
        if p.kind == "struct":
            self.read(f"{p.type} {n};", get_into(p, n, n))
        else:
            self.read(f"{p.type} {n} = {get(p)};")
        return n

    def opaque(self, p):
        self.read(f"{p.decl} = ({p.type} {'*' * p.stars})(uintptr_t)get_u64(&x->in);")
        return p.name

    def unsent(self, p):
        return "NULL" if p.stars else "0"

    def pointed(self, p, sent):
        """A pointer to one element: sent, returned, or both."""
        n = p.name
        self.zeroed(p)
        one = get_into(p, f"{n}_", f"{n}_")
        if p.has("OPTIONAL"):
            self.read(f"bool has_{n} = get_bool(&x->in);", *((f"if (has_{n})", "\t" + one) if sent else ()))
        elif sent:
            self.read(one)
        if sent and p.versioned:
            self.check(f"if (({n}_.version & 0xffffff) > sizeof {n}_)",
                       f"\treturn (CUresult){self.api.upper}ERROR_ARGUMENT_VERSION_MISMATCH;")
        if p.mode != "in" and self.c.cls != "NEW":
            self.answer(put(p, n + "_"))
        return f"has_{n} ? &{n}_ : NULL" if p.has("OPTIONAL") else f"&{n}_"

    def string(self, p):
        n = p.name
        self.read(f"char *{n} = exec_alloc(x, LIMIT_STRING + 1);", f"if (!{n})", *BAD,
                  f"get_text(&x->in, {n}, LIMIT_STRING + 1);")
        return n

    def text(self, p):
        n, room = p.name, p.words["TEXT"]
        self.read(f"size_t cap_{n} = get_u64(&x->in);",
                  f"if (cap_{n} > LIMIT_STRING)", f"\tcap_{n} = LIMIT_STRING;",
                  f"char *{n} = cap_{n} ? exec_alloc(x, cap_{n}) : NULL;", f"if (cap_{n} && !{n})", *BAD)
        if room.isdigit():
            self.check(f"if (cap_{n} != {room})", *BAD)
        else:
            self.check(f"{room} = cap_{n};")
        self.answer(f"if (cap_{n}) {{", f"\t{n}[cap_{n} - 1] = 0;", f"\tput_text(&x->out, {n});", "}")
        return n

    def via_in(self, p):
        self.read(f"{p.type} {p.name}_ = {{0}};", f"exec_get_{p.words['VIA']}(x, &{p.name}_);")
        return f"&{p.name}_"

    def via_out(self, p):
        self.read(f"{p.type} {p.name}_ = {{0}};")
        self.answer(f"exec_put_{p.words['VIA']}(x, &{p.name}_);")
        return f"&{p.name}_"

    def array_in(self, p):
        n = p.name
        if p.mode == "array-inout":
            self.answer(f"put_array(&x->out, n_{n});", f"for (size_t i = 0; i < n_{n}; i++)",
                        "\t" + put(p, n + "[i]"))
        self.read(f"size_t n_{n} = get_array(&x->in, LIMIT_ARRAY);",
                  f"{p.type} *{n} = n_{n} ? exec_alloc(x, n_{n} * sizeof *{n}) : NULL;",
                  f"if (n_{n} && !{n})", *BAD,
                  f"for (size_t i = 0; i < n_{n}; i++)", "\t" + get_into(p, n + "[i]", "*" + n))
        absent = f" && n_{n}" if p.has("OPTIONAL") else ""
        self.check(f"if (n_{n} != (size_t)({counted(self.c, p)[0]}){absent})", *BAD)
        return n

    def array_out(self, p):
        n = p.name
        expr, q = counted(self.c, p)
        if not q:
            self.check(f"if ((size_t)({expr}) > LIMIT_ARRAY)", *BAD,
                       f"{p.type} *{n} = exec_alloc(x, ({expr} + 1) * sizeof *{n});", f"if (!{n})", *BAD)
            self.answer(f"put_array(&x->out, {expr});", f"for (size_t i = 0; i < (size_t)({expr}); i++)",
                        "\t" + put(p, n + "[i]"))
            return n
        self.read(f"bool has_{n} = get_bool(&x->in);")
        if q.mode == "out":
            self.check(f"size_t room_{n} = LIMIT_UNASKED;")
        else:
            self.check(f"if (has_{n} && (size_t){q.name}_ > LIMIT_ARRAY)", f"\t{q.name}_ = LIMIT_ARRAY;",
                       f"size_t room_{n} = has_{n} ? {q.name}_ : 0;")
        self.check(f"{p.type} *{n} = has_{n} ? exec_alloc(x, (room_{n} + 1) * sizeof *{n}) : NULL;",
                   f"if (has_{n} && !{n})", *BAD)
        self.answer(f"if ({n}) {{", f"\tsize_t n = {q.name}_ < room_{n} ? {q.name}_ : room_{n};",
                    "\tput_array(&x->out, n);",
                    "\tfor (size_t i = 0; i < n; i++)", "\t\t" + put(p, n + "[i]"), "}")
        return n

    def bytes_in(self, p):
        n, size = p.name, p.words["BYTES"]
        self.check(f"if (x->frame.bulk_len != {size})", *BAD,
                   f"void *{n} = exec_bulk_all(x, LIMIT_BATCH);", f"if (!{n} && {size})", *BAD)
        return n

    def bytes_out(self, p):
        n, size = p.name, p.words["BYTES"]
        self.check(f"if ({size} > LIMIT_REPLY)", *BAD,
                   f"void *{n} = exec_alloc(x, {size} + 1);", f"if (!{n})", *BAD)
        self.answer(f"x->bulk = {n};", f"x->bulk_len = {size};")
        return n

    def add(self, p):
        """One parameter: each way in which it may travel has its own piece."""
        if p.mode in ("in", "inout", "out"):
            arg = self.pointed(p, sent=p.mode != "out")
        elif p.mode == "array-inout":
            arg = self.array_in(p)
        else:
            arg = getattr(self, p.mode.replace("-", "_"))(p)
        self.args.append(arg)


def body(api, c):
    b = Body(api, c)
    for p in c.params:
        b.add(p)
    new = next((p for p in c.params if p.mode == "out"), None) if c.cls == "NEW" else None
    if new:
        b.read("uint64_t id = exec_new_id(x);")
    b.check("if (x->bad_handle)", "\treturn x->handle_code;")
    if "GUARDED" in c.words:
        b.check("if (!exec_may_change(x))", f"\treturn (CUresult){api.denied};")
    call = f"{api.table}.{c.name}"
    if c.flavour == "PTDS":
        call = f"(x->frame.flags & FRAME_PTDS ? {call}_ptds : {call})"
    s = b.first + lines(1, "if (!get_end(&x->in))", *BAD) + b.late
    s += lines(1, f"CUresult r = {'' if api.plain else '(CUresult)'}{call}({', '.join(b.args)});")
    if new:
        s += lines(1, "if (!r)", f"\texec_bind(x, HANDLE_{new.type}, id, {new.name}_);")
    elif b.after:
        s += f"\tif ({'true' if 'ALWAYS' in c.words else '!r'}) {{\n{b.after}\t}}\n"
    return s + "\treturn r;\n"


def gen_serve_c(api, calls, types):
    print(HEAD + f'#include "server/exec.h"\n#include "wire/limits.h"\n#include "{api.prefix}.calls.h"\n')
    if not api.plain:
        print(f'#include "server/{api.prefix}.h"\n')
    for name, p, sent in codecs(calls):
        verb, const = ("get", "") if sent else ("put", "const ")
        print(f"void exec_{verb}_{name}(struct exec *x, {const}{p.type} *p);\n")
    rows = []
    for c in calls:
        if c.cls in ("LOCAL", "UNSUPPORTED", "SAME"):
            rows.append(f'\t{{"{c.name}", 0x{c.signature:08x}, 0, NULL}},')
            continue
        rows.append(f'\t{{"{c.name}", 0x{c.signature:08x}, {c.effects}, serve_{c.name}}},')
        if c.cls == "HAND" or "SERVE" in c.words:
            print(f"CUresult serve_{c.name}(struct exec *x);\n")
        else:
            print(function(f"static CUresult serve_{c.name}(struct exec *x)", body(api, c)))
    table, count = f"{api.tag}serve_table", f"{api.tag}serve_count"
    print(f"const struct serve_entry {table}[] = {{\n" + "\n".join(rows) + "\n};")
    print(f"const unsigned {count} = sizeof {table} / sizeof *{table};")
