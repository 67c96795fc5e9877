#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rules of this tree that a script can check: the licence line, no trailing blanks, no left-overs, no
# generated files or paths of a machine in it, scripts that parse. Prints each finding; status 1 when there
# is one.
set -u
shopt -s lastpipe
cd "$(dirname "$0")/.." || exit 1
found=0
finding() # TEXT: the lines of standard input are findings of this kind
{
	local line
	while IFS= read -r line; do
		echo "lint: $1: $line"
		found=1
	done
}
files=$(git ls-files 2>/dev/null || find . -type f ! -path './build*' ! -path './.git/*')
sources=$(echo "$files" | grep -E '\.(c|h|cu|py|sh|inc|mk)$|^Makefile$|^\.ci/run$')

for f in $sources; do
	case $f in tests/gen/bad-*) continue ;; esac
	[ -f "$f" ] && { head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"; }
done | finding "no SPDX line"
grep -nE '[[:blank:]]$' $sources /dev/null | head -n 20 | finding "blanks at the end"
grep -nE '\b(TODO|FIXME|XXX)\b' $(echo "$sources" | grep -v '^tests/lint.sh$') /dev/null | finding "left-over"
# Not the descriptions of one wrong line.
for f in $(echo "$sources" | grep -v '^tests/gen/bad-'); do
	expand -t 8 "$f" | grep -nE '.{111}' | cut -c1-60 | sed "s|^|$f:|"
done | finding "wider than 110 columns"
grep -nF "$(pwd)/" $files /dev/null | finding "a path of this machine"
echo "$files" | grep -E '^build' | finding "a generated file"
# By then the number may be another process's.
grep -nE 'at_exit kill (-(KILL|TERM|INT) )?[$"]' $(echo "$sources" | grep -E '\.sh$') /dev/null |
	finding "kills at the end without a look whose child it is (end, tests/e2e/lib.sh)"
for f in $(echo "$sources" | grep -E '\.sh$|^\.ci/run$'); do
	bash -n "$f" 2>&1
done | finding "shell syntax"
if command -v shellcheck >/dev/null; then
	shellcheck -S warning -e SC2034,SC2046,SC2154,SC1091,SC2045,SC2010,SC2206 -f gcc \
		$(echo "$sources" | grep -E '\.sh$|^\.ci/run$') | finding shellcheck
fi
for f in $(echo "$sources" | grep -E '\.py$'); do
	python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$f" 2>&1 | tail -n 1
done | finding "python syntax"
# What the documents name is there: files of this tree, tests by their short names, links.
folders='wire|devshim|scudafs|server|mount|tests|docs'
named="(^|[^/a-z])($folders)/[A-Za-z0-9_./-]+\.(c|h|sh|py|md|cu|tsv|supp)\b"
for f in $(echo "$files" | grep -E '\.(md|scd)$'); do
	{
		grep -ohE "$named" "$f" |
			sed 's,^[^a-z],,'
		grep -ohE '(^|[^/a-z])(e2e|unit|long)/[a-z_]+\b' "$f" | sed 's,^[^a-z]*,tests/,'
		[ "${f##*.}" = scd ] ||
			grep -ohE '\]\([^)#:]+\)' "$f" | sed 's,^](\(.*\))$,'"$(dirname "$f")"'/\1,'
	} | sort -u | while read -r name; do
		compgen -G "$name*" >/dev/null || echo "$f: $name"
	done
done | finding "a document names what is not there"
exit "$found"
