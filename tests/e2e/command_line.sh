#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command's own manners: help and version on standard output with status 0, wrong usage on standard error
# with status 2.
. "$(dirname "$0")/lib.sh"

status() # EXPECTED COMMAND...
{
	local want=$1 got
	shift
	"$@" >"$work/out" 2>"$work/err"
	got=$?
	[ "$got" = "$want" ] || fail "'${*##*/}' gave $got, not $want: $(cat "$work/err")"
}

status 0 "$bin/scudafs" --help
contains "$work/out" '^  mount' || fail "--help does not list mount"
status 0 "$bin/scudafs" --version
[ "$(wc -l <"$work/out")" = 1 ] || fail "--version is not one line"
for command in mount umount run status keygen; do
	status 0 "$bin/scudafs" $command --help
	contains "$work/out" "^usage: scudafs $command" || fail "$command --help shows no usage"
	[ ! -s "$work/err" ] || fail "$command --help writes to standard error"
done
status 2 "$bin/scudafs"
status 2 "$bin/scudafs" nonsense
status 2 "$bin/scudafs" --nonsense
contains "$work/err" "no option '--nonsense'" ||
	fail "an unknown option is called something else: $(cat "$work/err")"
status 0 "$bin/scudafs" help mount
contains "$work/out" '^usage: scudafs mount' || fail "help mount is not mount --help"
status 2 "$bin/scudafs" help nonsense
status 2 "$bin/scudafs" mount
status 2 "$bin/scudafs" mount host
status 2 "$bin/scudafs" mount --nonsense host "$work"
status 2 "$bin/scudafs" mount host "$work" -o kye=file
contains "$work/err" kye || fail "the unknown option is not named"
status 2 "$bin/scudafs" umount
status 2 "$bin/scudafs" keygen
status 2 "$bin/scudafs" keygen ../evil
status 125 "$bin/scudafs" run
status 1 "$bin/scudafs" mount host "$work/missing"
contains "$work/err" 'mkdir' || fail "a missing folder comes without a remedy"
for port in 0 65536 99999; do
	status 1 "$bin/scudafs" mount "127.0.0.1:$port" "$work"
	contains "$work/err" 'from 1 to 65535' || fail "port $port: $(cat "$work/err")"
done
status 1 "$bin/scudafs" mount host "$work" -o "key=$work/no-key"
contains "$work/err" "no-key: No such file" || fail "a missing key: $(cat "$work/err")"
status 1 "$bin/scudafs" mount host "$work" -o "log=$work/no/log"
[ "$(wc -l <"$work/err")" = 1 ] || fail "a log that cannot be written: $(cat "$work/err")"
status 2 "$bin/scuda-server" --keys "$work/no-key"
contains "$work/err" "no-key: No such file" || fail "a missing key file of the server: $(cat "$work/err")"
status 1 "$bin/scudafs" umount "$work"
status 0 "$bin/scuda-server" --help
status 0 "$bin/scuda-server" --version
status 2 "$bin/scuda-server" --nonsense
status 0 "$bin/scuda-server" --version
contains "$work/out" "$("$bin/scudafs" --version | grep -o 'protocol.*')" ||
	fail "the server's --version tells no protocol"

# Output that cannot be written is an error everywhere.
[ -w /dev/full ] &&
	for words in "scudafs --help" "scudafs --version" "scudafs mount --help" "scudafs keygen x" \
	"scudafs status --json" "scuda-server --help" "scuda-server --version"; do
	# shellcheck disable=SC2086
	"$bin"/$words >/dev/full 2>/dev/null
	[ $? = 1 ] || fail "$words >/dev/full succeeds"
done

# Addresses of the server: what is none is refused ahead of everything else.
for address in 127.0.0.1:65536 127.0.0.1:99999 127.0.0.1:http 127.0.0.1: '[::1' unix:; do
	status 1 "$bin/scuda-server" --driver soft --cache none --insecure-no-auth --listen "$address"
	grep -qF -e "--listen $address: " "$work/err" || fail "--listen $address: $(cat "$work/err")"
	contains "$work/err" 'too long' && fail "--listen $address: $(cat "$work/err")"
done
status 2 "$bin/scuda-server" --ready-fd 77 77>&-
contains "$work/err" 'open descriptor' || fail "a closed --ready-fd: $(cat "$work/err")"
[ "$("$bin/scuda-server" --nonsense 2>&1 | grep -c nonsense)" = 1 ] || fail "a wrong option is told twice"

# Addresses of the mount.
status 1 "$bin/scudafs" mount ::1:19710 "$work"
contains "$work/err" 'brackets' || fail "v6 with a port, without brackets: $(cat "$work/err")"
status 2 "$bin/scudafs" mount host ''

# Of run: an empty variable is none, and options that would do nothing are refused.
SCUDAFS_MOUNT='' status 125 "$bin/scudafs" run --server 127.0.0.1:0 -- true
contains "$work/err" 'from 1 to 65535' || fail "an empty SCUDAFS_MOUNT counts: $(cat "$work/err")"
SCUDAFS_SERVER=127.0.0.1:0 SCUDAFS_MOUNT=/nowhere status 125 "$bin/scudafs" run -o compress=on -- true
contains "$work/err" 'nowhere is there already' || fail "-o beside a mount: $(cat "$work/err")"

# What --help tells is what the manual tells: its options are there, and no others.
options() # the long options in a text
{
	grep -oE '(^|[^-a-z])--[a-z][a-z-]+' | grep -oE -e '--[a-z-]+' | grep -vxE -e '--(help|version)' |
		sort -u
}
for command in mount umount run status keygen; do
	"$bin/scudafs" "$command" --help
done >"$work/scudafs"
"$bin/scuda-server" --help >"$work/scuda-server"
"$bin/scuda-softcheck" --help >"$work/scuda-softcheck"
for program in scudafs scuda-server scuda-softcheck; do
	[ "$(options <"$work/$program" | wc -l)" -gt 0 ] || fail "$program --help names no option"
	untold=$(comm -23 <(options <"$work/$program") <(cat "$top"/docs/man/$program.*.scd | options))
	[ -z "$untold" ] || fail "$program: the manual does not tell of" $untold
done
invented=$(comm -13 <(cat "$work"/scuda* | options) <(cat "$top"/docs/man/*.scd "$top/README.md" | options |
	grep -vxE -e '--(device|cap-add)'))
[ -z "$invented" ] || fail "the manuals or README.md tell of" $invented "which no program has"
exit 0
