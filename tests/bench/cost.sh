#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What calls cost in processor time, of the program, the daemon and the server, beside the program natively;
# and what an idle session keeps in memory, each process's own share (PSS) in MiB: what the library adds to
# the program, what a session adds to the daemon, and the session's process at the server beside a native
# program that holds the same context, whose share is the driver's.
#
#     cost.sh [cpu] [memory]      both unless named
#
# Prints `name native ours` lines, "-" where there is no such figure, for table.sh; variables as in lib.sh.
. "$(dirname "$0")/lib.sh"
parts=" ${*:-cpu memory} "
idle_sessions=${IDLE_SESSIONS:-8}

both() # NATIVE OURS
{
	awk '
		FILENAME == ARGV[1] { native[$1] = $2; next }
		{ print $1, ($1 in native) ? native[$1] : "-", $2 }' "$1" "$2"
}

pss() # PID: KiB
{
	awk '$1 == "Pss:" { print $2 }' "/proc/$1/smaps_rollup" 2>/dev/null || echo 0
}

# All sessions' processes, and the daemon.
sessions_pss() { local p sum=0; for p in $(sessions); do sum=$((sum + $(pss "$p"))); done; echo $sum; }

hold() # TAG COMMAND...: runs until its input ends, and has said how large it is
{
	local tag=$1 fd
	shift
	mkfifo "$work/$tag.in"
	exec {fd}<>"$work/$tag.in"
	"$@" <"$work/$tag.in" >"$work/$tag.out" 2>"$work/$tag.err" {fd}>&- &
	holders+=($!)
	at_exit end TERM $!
	within 30 contains "$work/$tag.out" program_kib || fail "$tag: $(tail -n 1 "$work/$tag.err")"
}
holders=()

release()
{
	kill "${holders[@]}" 2>/dev/null
	wait "${holders[@]}" 2>/dev/null
	holders=()
}

bench_server
start_mount
daemon=$(daemon)
[[ $parts != *" cpu "* ]] || {
	native "$work/cpu.native" 60 "$tools/cost" cpu
	through "$work/cpu" 90 "$tools/cost" cpu daemon="$daemon" ${server:+server="$server"}
	both "$work/cpu.native" "$work/cpu"
}
[[ $parts != *" memory "* ]] || {
	hold native env ${native_lib:+LD_LIBRARY_PATH="$native_lib"} "$tools/cost" idle
	alone=$(value "$work/native.out" program_kib)
	release
	# One session first: what the daemon needs but once is not a session's.
	hold first "$bin/scudafs" run --mount "$mnt" -- "$tools/cost" idle
	before=$(pss "$daemon")
	for ((i = 0; i < idle_sessions; i++)); do
		hold "idle$i" "$bin/scudafs" run --mount "$mnt" -- "$tools/cost" idle
	done
	awk -v alone="$alone" -v program="$(value "$work/idle0.out" program_kib)" \
		-v daemon=$((($(pss "$daemon") - before))) -v n="$idle_sessions" \
		-v server="$(sessions_pss)" 'BEGIN {
		printf "memory_program_mib %.2f %.2f\n", alone / 1024, program / 1024
		printf "memory_daemon_mib - %.2f\n", daemon / n / 1024
		printf "memory_server_mib %.2f %.2f\n", alone / 1024, server / (n + 1) / 1024
		printf "memory_server_own_mib - %.2f\n", (server / (n + 1) - alone) / 1024
	}'
	release
}
