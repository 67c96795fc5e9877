#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Keys: the right one mounts and computes over TLS 1.3; a wrong one, none, or an unknown name is refused in
# words; a key file that others can read is refused on both sides.
. "$(dirname "$0")/lib.sh"
requires mount

"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
"$bin/scudafs" keygen alice "$work/wrong" 2>/dev/null
"$bin/scudafs" keygen mallory "$work/mallory" 2>/dev/null
cp "$work/alice" "$work/keys"
chmod 600 "$work/keys"
start_server --keys "$work/keys"
mkdir "$mnt"

refused() # OPTION... : one line, within five seconds, nothing mounted
{
	local start
	start=$(now_ms)
	"$bin/scudafs" mount "$address" "$mnt" "$@" 2>"$work/err" && fail "mounted with: ${*:-nothing}"
	[ $(($(now_ms) - start)) -lt $((5200 * slow)) ] ||
		fail "the refusal of '${*:-nothing}' took $(($(now_ms) - start)) ms"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "'${*:-nothing}' gives not one line: $(cat "$work/err")"
	mountpoint -q "$mnt" && fail "'${*:-nothing}' left a mount"
}
refused
contains "$work/err" 'wants a key: mount with -o key=' || fail "without a key: $(cat "$work/err")"
refused -o "key=$work/wrong"
contains "$work/err" key || fail "with a wrong key: $(cat "$work/err")"
refused -o "key=$work/mallory"
refused -o "key=$work/missing"
contains "$work/err" missing || fail "a missing key file is not named: $(cat "$work/err")"
chmod 644 "$work/wrong"
refused -o "key=$work/wrong"
contains "$work/err" 'chmod\|others\|mode' || fail "a readable key file: $(cat "$work/err")"

start_mount -o "key=$work/alice"
grep -q 'TLSv1.3' "$mnt"/servers/*/tls || fail "the tree does not show TLS: $(cat "$mnt"/servers/*/tls)"
run_program small | grep -q right || fail "no result over TLS"
secret=$(cut -d: -f2 "$work/alice")
grep -qs "$secret" "$work"/*.log && fail "the key is in a log"

chmod 640 "$work/keys"
at_most 10 "$bin/scuda-server" --listen 127.0.0.1:0 --driver "$driver" --keys "$work/keys" 2>"$work/err"
code=$?
[ "$code" = 2 ] || fail "a server started with keys that others can read, or gave $code: $(cat "$work/err")"
stop_mount
stop_server
start_server
refused -o "key=$work/alice"
contains "$work/err" 'takes no keys there: leave key= out' || fail "a key for nobody: $(cat "$work/err")"
exit 0
