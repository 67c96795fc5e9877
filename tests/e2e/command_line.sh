#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command's own manners: help and version on standard output with status 0, wrong usage on standard error with status 2.
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
contains "$work/err" "no option '--nonsense'" || fail "an unknown option is called something else: $(cat "$work/err")"
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
