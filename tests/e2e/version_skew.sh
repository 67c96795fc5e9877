#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A client of an older or a newer protocol is refused when it mounts, in words that tell what to do, and the
# server's log says it, too: with and without a key.
. "$(dirname "$0")/lib.sh"
requires mount python3
"$bin/scudafs" keygen one "$work/key" 2>/dev/null
for key in "" "$work/key"; do
	start_server ${key:+--keys "$key"}
	mkdir -p "$mnt"
	for version in 0 1 3 255; do
		: >"$work/skew"
		python3 "$top/tests/e2e/progs/skew.py" "${address##*:}" "$version" >"$work/skew" &
		proxy=$!
		at_exit end TERM "$proxy"
		within 10 test -s "$work/skew" || fail "no proxy"
		at_most 10 "$bin/scudafs" mount "127.0.0.1:$(cat "$work/skew")" "$mnt" ${key:+-o "key=$key"} \
			2>"$work/err"
		[ $? = 1 ] || fail "version $version was mounted"
		contains "$work/err" 'another version' || fail "version $version: $(cat "$work/err")"
		kill "$proxy"
	done
	[ "$(grep -c 'another version' "$work/server.log")" -ge 4 ] ||
		fail "the server's log: $(cat "$work/server.log")"
	stop_server
	rm "$work/server.log"
done
