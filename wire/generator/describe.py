# SPDX-License-Identifier: Apache-2.0
"""What a description says: its API line, its types, its calls and how each parameter travels.

What it does not understand it refuses, by file and line."""
import re
import zlib

CLASSES = {"LOCAL", "CACHED", "POST", "NEW", "HAND", "UNSUPPORTED", "SAME"}
NEEDS = {"ANYTIME": "CALL_ANYTIME", "UNLOST": "CALL_UNLOST"}
EFFECTS = {"FREES": "EFFECT_FREES", "SYNCS": "EFFECT_SYNCS", "CONFIGURES": "EFFECT_CONFIGURES"}
CALL_WORDS = CLASSES | set(NEEDS) | set(EFFECTS) | {"SHIM", "SERVE", "ALWAYS", "GUARDED", "GIVES", "PRIVATE",
                                                    "SINCE", "PTSZ", "PTDS", "ACTS"}
HANDLE_EFFECTS = {"DROP": "EFFECT_DROPS", "ALTER": "EFFECT_ALTERS"}
PARAM_WORDS = {"BYTES", "COUNT", "TEXT", "STRING", "INOUT", "IN", "OPTIONAL", "OPAQUE", "UNSENT", "VIA",
               "RAW", "ORDINAL", "VALUE"} | set(HANDLE_EFFECTS)
UNSIGNED = {"size_t", "unsigned", "unsigned int", "unsigned char", "unsigned short", "unsigned long",
            "unsigned long long", "uint32_t", "uint64_t"}
RETURNED = {"out", "inout", "array-out", "array-inout", "text", "bytes-out", "via-out"}
SIGNED = {"int", "char", "long long", "short"}


class Refused(Exception):
    pass


class Api:
    """A description's line API(prefix, result type, then the codes for: invalid argument, out of memory, not
    supported, not permitted[, VERSIONED])."""

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
        self.tag = "" if self.plain else self.prefix + "_"
        self.upper = self.tag.upper()
        self.table = "drv" if self.plain else self.prefix

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
        self.enums = {b: a for a, b in re.findall(r"typedef enum \w*\s*\{([^}]*)\} (\w+);", text)}
        bodies = "\n".join(re.findall(r"typedef enum \w*\s*\{([^}]*)\}", text))
        self.values = re.findall(r"^\s+(CU\w+)\s*(?:=|,|$)", bodies, re.M)
        structs = re.findall(r"typedef (?:struct|union)\s*\w*\s*\{(.*?)\n\} (\w+);", text, re.S)
        self.structs = {name: body for body, name in structs}

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
        """A struct whose first field tells its version and, in the low 24 bits, its size: a program may have
        an older, shorter one."""
        body = self.structs[self.base(t)] if self.kind(t) == "struct" else ""
        return bool(re.match(r"\s*unsigned int version;", body))

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
        first = next((p for p in params if not p.stars and p.type in types.handles), None)
        for p in params:
            for w in HANDLE_EFFECTS:
                if p.has(w) and p is not first:
                    raise Refused(f"{where}: error: {name}: {w} is for the first handle: '{p.name}'")
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
        where = f"{self.where}: error: {self.name}"
        taken = next((p for p in self.params if p.name in ("c", "r", "x")), None)
        if taken:
            raise Refused(f"{where}: parameter '{taken.name}': generated code has that name itself")
        outs = [p for p in self.params if p.mode in RETURNED]
        if self.cls == "POST" and outs:
            raise Refused(f"{where}: a returned value on a POST call: '{outs[0].name}'")
        if self.cls == "NEW" and ([p.mode for p in outs] != ["out"] or outs[0].kind != "handle"):
            raise Refused(f"{where}: NEW needs exactly one returned handle")

    @property
    def args(self):
        return ", ".join(p.decl for p in self.params) or "void"

    @property
    def names(self):
        return ", ".join(p.name for p in self.params)

    @property
    def signature(self):
        """Changes when the encoding does: hand-written ones change it by their words."""
        params = ",".join(f"{p.decl}:{sorted(p.words.items())}" for p in self.params)
        return zlib.crc32(f"{self.name}({params}){self.cls}".encode())

    @property
    def effects(self):
        """What the server does after the call has succeeded, as an expression of C."""
        found = [EFFECTS[w] for w in self.words if w in EFFECTS]
        found += [HANDLE_EFFECTS[w] for p in self.params for w in p.words if w in HANDLE_EFFECTS]
        return " | ".join(found) or "0"

    @property
    def asks(self):
        """It only returns something: it may be asked ahead of its time and has no effect then."""
        returns = self.cls == "HAND" or not self.hand and any(p.mode in RETURNED for p in self.params)
        return returns and "GUARDED" not in self.words and "ACTS" not in self.words

    @property
    def asked_by_shim(self):
        """The export is written by hand, and the stub is what it calls when it must ask the server."""
        return "SHIM" in self.words or self.cls == "CACHED"


def closing(text):
    """Where the parenthesis closes that was open before this text, or None."""
    depth = 1
    for i, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0:
            return i
    return None


def split(text):
    """The parts between commas that stand in no parentheses."""
    parts, depth = [""], 0
    for ch in text:
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += ch
    return [" ".join(p.split()) for p in parts]


def parse(path, types):
    """A description's API line and its calls, in order."""
    text = open(path).read()
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    calls, seen, api = [], {}, Api(text, path)
    for m in re.finditer(r"^" + api.result + r" (\w+)\(([^;]*);", text, re.M):
        where = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
        name, end = m[1], closing(m[2])
        if end is None:
            raise Refused(f"{where}: error: {name}: parameters do not end")
        if name in seen:
            raise Refused(f"{where}: error: {name} described twice (first at {seen[name]})")
        seen[name] = where
        parts = split(m[2][:end])
        params = [] if parts == ["void"] else [Param(p, where) for p in parts]
        words = {}
        for w, quoted, arg in re.findall(r'(\w+)(?:\((?:"([^"]*)"|([^()]*))\))?', m[2][end + 1:]):
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


def codecs(calls):
    """The codecs that are written by hand (VIA): name, a parameter that has it, and whether that is sent."""
    found = {}
    for c in calls:
        for p in c.params:
            if not c.hand and p.has("VIA"):
                found.setdefault((p.words["VIA"], p.mode), p)
    for (name, mode), p in sorted(found.items(), key=lambda item: item[0]):
        yield name, p, mode == "via-in"


def exports(calls):
    """All exported symbols with the call that they belong to."""
    for c in calls:
        if "PRIVATE" in c.words:
            continue
        yield c.name, c
        if c.flavour:
            yield c.name + "_" + c.flavour.lower(), c


def counted(c, p):
    """The count expression of an array, and the parameter if the count is itself a pointer."""
    n = p.words["COUNT"]
    q = next((q for q in c.params if q.name == n), None)
    return (f"*{n}", q) if q is not None and q.stars else (n, None)
