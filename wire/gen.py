#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an API description (valid C, see annotate.h and docs/api.md) and writes one artefact of it to
standard output.

usage: gen.py TYPES.h API.h ARTEFACT      ARTEFACT: what a function gen_* of wire/generator/ writes: stubs.c

It knows words and types, no name of any API function. A description that it does not understand is refused
with file:line: error.
"""
import sys

sys.dont_write_bytecode = True
from generator import serve, stubs, support, tables  # noqa: E402
from generator.describe import Refused, Types, parse  # noqa: E402


def main():
    try:
        types_path, api_path, artefact = sys.argv[1:]
        name = "gen_" + artefact.replace(".", "_")
        emit = next(getattr(m, name) for m in (tables, stubs, serve, support) if hasattr(m, name))
    except (ValueError, StopIteration):
        sys.exit(__doc__)
    try:
        types = Types(open(types_path).read())
        api, calls = parse(api_path, types)
        emit(api, calls, types)
    except Refused as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
