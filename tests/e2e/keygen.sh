#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# keygen: one line name:64 hex digits, a file of mode 0600 that is never overwritten, --append for the
# server's file.
. "$(dirname "$0")/lib.sh"

line=$("$bin/scudafs" keygen alice) || fail "keygen"
[[ $line =~ ^alice:[0-9a-f]{64}$ ]] || fail "the line is '$line'"
[ "$("$bin/scudafs" keygen alice)" != "$line" ] || fail "two keys are the same"
umask 000
"$bin/scudafs" keygen alice "$work/key" 2>/dev/null || fail "keygen to a file"
[ "$(stat -c %a "$work/key")" = 600 ] || fail "the file's mode is $(stat -c %a "$work/key")"
"$bin/scudafs" keygen bob "$work/key" 2>/dev/null && fail "an existing file was overwritten"
"$bin/scudafs" keygen bob "$work/key" --append 2>/dev/null || fail "--append"
[ "$(wc -l <"$work/key")" = 2 ] || fail "the file has not two lines"
"$bin/scudafs" keygen bob "$work/key" --append 2>"$work/err" && fail "a name got a second key in one file"
contains "$work/err" 'key for bob already' || fail "a second key: $(cat "$work/err")"
truncate -s -1 "$work/key"
"$bin/scudafs" keygen carol "$work/key" --append 2>/dev/null || fail "--append behind a line without its end"
[ "$(grep -cE '^[a-z]+:[0-9a-f]{64}$' "$work/key")" = 3 ] ||
	fail "the file has not three keys: $(cat "$work/key")"
chmod 644 "$work/key"
"$bin/scudafs" keygen eve "$work/key" --append 2>/dev/null &&
	fail "a key was added to a file that others can read"
ln -s "$work/elsewhere" "$work/link"
"$bin/scudafs" keygen eve "$work/link" 2>/dev/null && fail "a link was followed"
exit 0
