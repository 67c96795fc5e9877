#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# also: two unix
# kill -9 at any moment: of a program, the daemon, the server's listener, its monitor, or a session, while
# programs start, compute, copy and end, and while a mount begins. KILL_ROUNDS (15) moments, from KILL_SEED
# (1) on. Each time what is left ends by itself: the programs with a result or an error, the sessions, the
# daemon at umount; no mount stays, and the next round begins from nothing.
. "$(dirname "$0")/lib.sh"
requires mount
rounds=${KILL_ROUNDS:-15}
RANDOM=${KILL_SEED:-1}
programs=("small" "told" "bigcopy $((32 << 20))" "iteration 20 read" "crowded 40 4096")

moment() # MILLISECONDS: not a condition, for once: any moment is meant
{
	read -r -t "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" <>"$clock" || :
}

left=()
all_gone() # those in $left
{
	local p
	for p in "${left[@]}"; do
		gone "$p" || return 1
	done
}

for ((round = 1; round <= rounds; round++)); do
	victim=$((round % 5)) delay=$((RANDOM % 500)) n=$((RANDOM % ${#programs[@]}))
	start_server
	mkdir -p "$mnt"
	# The mount is not waited for: the moment may come before it is there.
	"$bin/scudafs" mount "$address" "$mnt" -o "log=$work/daemon.log$options" >"$work/mount.out" 2>&1 &
	mounting=$!
	[ $((RANDOM % 3)) = 0 ] || wait "$mounting"
	left=()
	for which in $n $(((n + 1) % ${#programs[@]})); do
		read -r -a words <<<"${programs[which]}"
		"$bin/scudafs" run --mount "$mnt" -- "$progs/${words[0]}" "${words[@]:1}" \
			>"$work/program.$which" 2>&1 </dev/null &
		left+=($!)
	done
	moment $delay
	case $victim in
	0) what=program killed=${left[0]} ;;
	1) what=daemon killed=$(daemon) ;;
	2) what=listener killed=$server ;;
	3) what=monitor killed=$monitor ;;
	4) what=session killed=$(sessions | head -n 1) ;;
	esac
	family=$(pgrep -P "$server")
	[ -z "$killed" ] || kill -KILL $killed 2>/dev/null
	# bigcopy goes on for ever when it is not hit.
	moment 300
	for p in "${left[@]}"; do
		grep -qs bigcopy "/proc/$p/cmdline" && kill -KILL "$p" 2>/dev/null
	done
	within 20 all_gone ||
		fail "round $round, $what after $delay ms: a program still runs:" \
			"$(tail -n 3 "$work"/program.*)"
	wait "${left[@]}" 2>/dev/null
	within 12 gone "$mounting" ||
		fail "round $round, $what after $delay ms: mount does not end: $(cat "$work/mount.out")"
	wait "$mounting" 2>/dev/null
	stop_mount
	mounted && fail "round $round, $what after $delay ms: the mount stays"
	# Without its listener a session ends with its program, and the monitor with the listener.
	read -r -d "" -a left <<<"$family $(pgrep -P "$server")" || true
	stop_server 2>/dev/null
	within 12 all_gone ||
		fail "round $round, $what after $delay ms: processes of the server stay: ${left[*]}"
	echo "round $round: $what after $delay ms"
done
