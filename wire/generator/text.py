# SPDX-License-Identifier: Apache-2.0
"""Pieces of C that several artefacts need."""
import re

HEAD = "/* Generated from the API description by wire/gen.py: do not edit. */\n"


def lines(depth, *rows):
    """The rows as lines of C, so many tabs in."""
    return "".join("\t" * depth + row + "\n" for row in rows)


def indent(s):
    return re.sub(r"^(?=.)", "\t", s, flags=re.M)


def unused(c):
    """Statements that name all parameters of a call that does not use them."""
    return lines(1, *(f"(void){p.name};" for p in c.params))


def refusal(api, c, ask):
    """Statements of a call that is not there: what `ask` says, or the code of the description."""
    code = c.words.get("GIVES")
    if not code:
        return lines(1, f"return {ask};")
    return lines(1, f"{api.result} r = {ask};", f"return r == {api.unsupported} ? {code} : r;")


def function(head, body):
    return f"{head}\n{{\n{body}}}\n"


def flavour(api, c, begin, end):
    """The export of a call's per-thread default stream flavour: the call itself, between two words that say
    so."""
    return function(f"{api.result} {c.name}_{c.flavour.lower()}({c.args})",
                    lines(1, f"{begin}();", f"CUresult r = {c.name}({c.names});", f"{end}();", "return r;"))
