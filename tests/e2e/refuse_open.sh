#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server without keys refuses any address but loopback: status 2 and a text with the ways out.
# --insecure-no-auth is the only override.
. "$(dirname "$0")/lib.sh"

refused() # ARGUMENT...
{
	at_most 10 "$bin/scuda-server" --driver "$driver" "$@" 2>"$work/err" >/dev/null
	[ $? = 2 ] || fail "$* was not refused with status 2: $(cat "$work/err")"
	contains "$work/err" '--keys' || fail "$*: the text does not name --keys: $(cat "$work/err")"
	contains "$work/err" '--insecure-no-auth' || fail "$*: the text does not name --insecure-no-auth"
}
refused --listen 0.0.0.0:0
refused --listen '[::]:0'
refused --listen 192.0.2.1:0

start_server --listen 0.0.0.0:0 --insecure-no-auth
contains "$work/server.log" 'insecure\|without auth\|no auth' || fail "the override is not logged"
