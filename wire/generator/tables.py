# SPDX-License-Identifier: Apache-2.0
"""What is a list of the calls in one shape or another: numbers, names, the driver's table, the exports."""
import hashlib
import re

from generator.describe import NEEDS, exports
from generator.text import HEAD, flavour, function, lines, refusal, unused


def gen_calls_h(api, calls, types):
    print(HEAD + f"#pragma once\n#include <stdint.h>\n\nenum {api.tag}call_id {{")
    for c in calls:
        print(f"\tCALL_{c.name},")
    print(f"\t{api.upper}CALL_COUNT\n}};\nenum {api.tag}handle_type {{\n\t{api.upper}HANDLE_NONE{api.first},")
    for h in types.handles:
        print(f"\tHANDLE_{h},")
    print(f"\t{api.upper}HANDLE_TYPES\n}};")
    print("/* Of each call id: name, signature of the encoding, class, need, and whether it only asks. */")
    if api.plain:
        print("struct call_name { const char *name; uint32_t signature;"
              " const char *class_; uint8_t needs; _Bool asks; };")
        print("/* What a call needs of the context: one not lost, none or one not lost, nothing. */")
        print("enum call_need { CALL_CONTEXT, CALL_UNLOST, CALL_ANYTIME };")
    else:
        print("#include \"cuda.calls.h\"")
    whole = hashlib.sha256("".join(f"{c.name} {c.signature}\n" for c in calls).encode()).digest()
    print("/* All names and signatures, in order: ends with the same list number their calls alike. */")
    print(f"#define {api.upper}CALL_LIST 0x{int.from_bytes(whole[:8], 'little'):016x}ull")
    print(f"extern const struct call_name {api.tag}call_names[{api.upper}CALL_COUNT];")
    print(f"extern const char *const {api.tag}handle_names[];")


def gen_calls_c(api, calls, types):
    print(HEAD + f'#include "{api.prefix}.calls.h"\n')
    print(f"const struct call_name {api.tag}call_names[{api.upper}CALL_COUNT] = {{")
    for c in calls:
        needs = next((NEEDS[w] for w in c.words if w in NEEDS), "CALL_CONTEXT")
        print(f'\t{{"{c.name}", 0x{c.signature:08x}, "{c.cls.lower()}", {needs}, {int(c.asks)}}},')
    print(f'}};\nconst char *const {api.tag}handle_names[] = {{\n\t"nothing",')
    for h in types.handles:
        print(f'\t"{h}",')
    print("};")


def gen_entry_c(api, calls, types):
    """The exports: each counts, when that is asked for, and calls the shim's function of that name, which the
    link has renamed (gen_inner)."""
    print(HEAD + f'#include "devshim/count.h"\n#include "wire/{api.prefix}.h"')
    if any(c.flavour for c in calls):
        print(f'#include "{api.prefix}.flavours.h"')
    print(f"\nconst struct stats_library *const count_library = &stats_{api.prefix};")
    codes = re.findall(r"^\s+(\w+)", types.enums[api.result], re.M)
    cases = "".join(lines(1, f'case {code}: return "{code}";') for code in codes)
    print(function("const char *count_result_name(int r)",
                   lines(1, "switch (r) {") + cases + lines(1, "default: return 0;", "}")))
    for i, (name, c) in enumerate(exports(calls)):
        print(f'__attribute__((visibility("hidden"))) {api.result} inner_{name}({c.args});')
        counted = f"__attribute__((noinline, cold)) static {api.result} counted_{name}({c.args})"
        print(function(counted, lines(1, f"struct count c = count_begin({i});",
                                      f"return count_end(c, inner_{name}({c.names}));")), end="")
        either = f"__builtin_expect(count_on, 0) ? counted_{name}({c.names}) : inner_{name}({c.names})"
        print(function(f"{api.result} {name}({c.args})", lines(1, f"return {either};")))


def gen_inner(api, calls, types):
    """For objcopy --redefine-syms."""
    for name, _ in exports(calls):
        print(f"{name} inner_{name}")


def gen_names_c(api, calls, types):
    """How `scudafs run --stats` calls an export, and what it counts as while it sends nothing."""
    by_name = {c.name: c for c in calls}
    print(HEAD + '#include "wire/stats.h"\n\nstatic const struct stats_name names[] = {')
    for name, c in exports(calls):
        while c.cls == "SAME":
            c = by_name[c.words["SAME"]]
        print(f'\t{{"{name}", {"STATS_CACHED" if c.cls == "CACHED" else "STATS_LOCAL"}}},')
    suffix = "" if api.plain else "." + api.prefix
    print(f"}};\nconst struct stats_library stats_{api.prefix} = {{"
          f'names, sizeof names / sizeof *names, "{suffix}"}};')


def gen_driver_h(api, calls, types):
    print(HEAD + f'#pragma once\n#include <stddef.h>\n#include "wire/{api.prefix}_types.h"\n')
    print(f"struct {api.tag}driver {{")
    for name, c in exports(calls):
        print(f"\t{api.result} (*{name})({c.args});")
    print("};\n/* Symbols to look up, where each goes, and what stands there when the library lacks it. */")
    print("#ifndef DRIVER_SYMBOL\n#define DRIVER_SYMBOL")
    print("struct driver_symbol { const char *name; size_t offset; void *missing; };\n#endif")
    print(f"extern const struct driver_symbol {api.tag}driver_symbols[];")
    print(f"extern const unsigned {api.tag}driver_symbol_count;")


def gen_driver_c(api, calls, types):
    table, count = f"{api.tag}driver_symbols", f"{api.tag}driver_symbol_count"
    print(HEAD + f'#include "{api.prefix}.driver.h"\n')
    for name, c in exports(calls):
        missing = unused(c) + lines(1, f"return {api.unsupported};")
        print(function(f"static {api.result} missing_{name}({c.args})", missing), end="")
    print(f"\nconst struct driver_symbol {table}[] = {{")
    for name, c in exports(calls):
        print(f'\t{{"{name}", offsetof(struct {api.tag}driver, {name}), missing_{name}}},')
    print(f"}};\nconst unsigned {count} = sizeof {table} / sizeof *{table};")


def gen_procs_c(api, calls, types):
    """What looking an export up by name needs: the name without a version, since which driver, which
    flavour."""
    rows = []
    for c in calls:
        rows.append((c.base, int(c.words["SINCE"]), 0, c.name))
        if c.flavour:
            rows.append((c.base, int(c.words[c.flavour]), 2, c.name + "_" + c.flavour.lower()))
    print(HEAD + f'#include "devshim/procs.h"\n#include "wire/{api.prefix}.h"\n')
    print("const struct proc procs[] = {")
    for base, version, kind, symbol in sorted(rows):
        print(f'\t{{"{base}", {version}, {kind}, "{symbol}", (void *){symbol}}},')
    print("};\nconst unsigned proc_count = sizeof procs / sizeof *procs;")


def gen_flavours_h(api, calls, types):
    """Prototypes of the per-thread default stream flavours, which the description names by a word only."""
    print(HEAD + f'#pragma once\n#include "wire/{api.prefix}_types.h"')
    print("#pragma GCC visibility push(default)\n")
    for name, c in exports(calls):
        if name != c.name:
            print(f"{api.result} {name}({c.args});")
    print("#pragma GCC visibility pop")


def gen_soft_c(api, calls, types):
    """What the software device answers where it has no code: weak, so that a function by hand takes its
    place."""
    print(HEAD + f'#include "server/soft/context.h"\n#include "wire/{api.prefix}.h"\n')
    for c in calls:
        body = unused(c) + refusal(api, c, f'soft_unsupported("{c.name}")')
        if c.cls == "SAME":
            body = lines(1, f"return {c.words['SAME']}({c.names});")
        print(function(f"__attribute__((weak)) {api.result} {c.name}({c.args})", body))
        if c.flavour:
            print(flavour(api, c, "soft_ptds_begin", "soft_ptds_end"))


def gen_layout_c(api, calls, types):
    """A program that prints every size, offset and constant, to be compiled with our types and with
    NVIDIA's."""
    print("#include <stddef.h>\n#include <stdio.h>\n#include TYPES\nint main(void)\n{")
    for name, body in types.structs.items():
        print(f'\tprintf("{name} %zu\\n", sizeof({name}));')
        flat = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", body))
        for field in re.findall(r"(\w+)(?:\[[^;]*\])?;", flat):
            print(f'\tprintf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    for name in types.values:
        print(f'\tprintf("{name} %lld\\n", (long long){name});')
    print("\treturn 0;\n}")
