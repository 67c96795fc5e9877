#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hundred processes through one mount, a few at a time, each of which loads and uses all libraries
# (leaks.py), every eighth the frameworks instead; every other one is killed in the middle of its work.
# Afterwards there must be no session, no process of the server's, no descriptor and no memory more than
# before: on the device, in the server, in the daemon.
#
#     tests/device/leaks.sh [COUNT]
#
# Variables: B, PYTHON, SCUDAFS_TEST_DRIVER (auto), JOBS (three quarters of the processors), SECONDS_IN_ALL
# (150: what has not begun then is not begun, and told), FRAMEWORKS_EVERY (8; 0: never), RESULTS (a folder
# for the outputs), SHORT (1: short programs of tests/e2e/progs alone, which need no library).
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
B=$(realpath -m "${B:-build}")
PYTHON=${PYTHON:-python3}
COUNT=${1:-100}
JOBS=${JOBS:-$((($(nproc) * 3 + 3) / 4))}
IN_ALL=${SECONDS_IN_ALL:-150}
EVERY=${FRAMEWORKS_EVERY:-8}
work=$(mktemp -d)
results=${RESULTS:-$work/results}
mnt=$work/mnt
mkdir -p "$mnt" "$results"
server=
finish()
{
	trap - EXIT
	trap '' INT TERM HUP
	timeout 10 "$B/bin/scudafs" umount --lazy "$mnt" >/dev/null 2>&1
	[ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

"$B/bin/scuda-server" --listen 127.0.0.1:0 --driver "${SCUDAFS_TEST_DRIVER:-auto}" --ready-fd 3 \
	3>"$work/port" 2>"$results/leaks-server.log" &
server=$!
for ((i = 0; i < 300; i++)); do
	[ -s "$work/port" ] && break
	sleep 0.05
done
[ -s "$work/port" ] || { echo "no server: $(tail -n 3 "$results/leaks-server.log")"; exit 1; }
timeout 20 "$B/bin/scudafs" mount "127.0.0.1:$(head -n 1 "$work/port" | sed 's/.*://')" "$mnt" \
	-o log="$results/leaks-daemon.log" ||
	{ echo "no mount: $(tail -n 3 "$results"/leaks-*.log)"; exit 1; }
daemon=$(pgrep -f "scudafs mount .* $mnt " | head -n 1)

SHORT=${SHORT:-}
[ -z "$SHORT" ] || EVERY=0

kind_of() # NUMBER
{
	[ -z "$SHORT" ] || { echo short; return; }
	[ "$EVERY" != 0 ] && [ $(($1 % EVERY)) = 0 ] && echo frameworks || echo libraries
}
command_of() # KIND [FILE]: with FILE what goes on until it is killed
{
	case $1,${2:+goes on} in
	short,) command=("$B/tests/e2e/small") ;;
	short,*) command=("$B/tests/e2e/bigcopy" $((64 << 20))) ;;
	*) command=("$PYTHON" tests/device/leaks.py "$@") ;;
	esac
}
at_work() # NUMBER: it has made its file, or said that it copies
{
	[ -e "$work/used.$1" ] || { [ -n "$SHORT" ] && [ -s "$work/out.$1" ]; }
}
one() # NUMBER: every other one is killed, of both kinds; a line with how it ended
{
	local kind used=$work/used.$1 code command
	kind=$(kind_of "$1")
	if [ $((($1 + $1 / (EVERY > 0 ? EVERY : 1000)) % 2)) = 0 ]; then
		command_of "$kind"
		timeout -k 2 90 "$B/bin/scudafs" run --mount "$mnt" -- "${command[@]}" >"$work/out.$1" \
			2>"$work/err.$1" </dev/null
		code=$?
		[ $code = 0 ] && echo "ended $kind: $(cat "$work/out.$1")" ||
			echo "FAILED $kind $1: status $code:" \
				"$(grep . "$work/err.$1" | tail -n 2 | tr '\n' ' ' | cut -c1-300)"
	else
		command_of "$kind" "$used"
		timeout -s KILL 90 "$B/bin/scudafs" run --mount "$mnt" -- "${command[@]}" >"$work/out.$1" \
			2>"$work/err.$1" </dev/null &
		code=$!
		# Half of these while they start, at a moment of its own each; the others while they work.
		if [ $(($1 / 3 % 2)) = 0 ]; then
			sleep "$(($1 * 37 % 40 / 10)).$(($1 * 37 % 10))"
		else
			for ((i = 0; i < 800; i++)); do
				at_work "$1" || ! kill -0 "$code" 2>/dev/null && break
				sleep 0.1
			done
			sleep "0.$(($1 * 13 % 10))"
		fi
		# The program is what timeout runs: killing that alone would leave it.
		pkill -KILL -P "$code"
		wait "$code" 2>/dev/null
		at_work "$1" && echo "killed $kind at work" || echo "killed $kind while it started"
		grep -q 'answers' "$work/err.$1" && echo "FAILED $kind $1: $(tail -n 1 "$work/err.$1")"
	fi
}

descriptors() # PID
{
	ls "/proc/$1/fd" 2>/dev/null | wc -l
}
rss() # PID: KiB
{
	awk '/^VmRSS/ {print $2}' "/proc/$1/status"
}
threads() # PID
{
	ls "/proc/$1/task" | wc -l
}
device_memory() # MiB in use, as the GPU's own tool says; the tree's figure where there is none
{
	nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1 |
		grep '^[0-9]' || echo $(($(cat "$mnt/gpu0/memory/used") >> 20))
}
quiet() # no session and no process of the server's but its own
{
	[ ! -s "$mnt/gpu0/sessions" ] && [ "$(pgrep -P "$server" | wc -l)" -le "$children" ]
}
state()
{
	echo "sessions $(wc -l <"$mnt/gpu0/sessions"), server: $(pgrep -P "$server" | wc -l) children," \
		"$(descriptors "$server") descriptors, $(threads "$server") threads," \
		"$(rss "$server") KiB; daemon: $(descriptors "$daemon") descriptors," \
		"$(threads "$daemon") threads, $(rss "$daemon") KiB;" \
		"device $(device_memory) MiB; shared memory $(ls /dev/shm | wc -l) files"
}

children=$(pgrep -P "$server" | wc -l)
one 0 | tee "$work/first" # what is loaded once and kept is kept before the count begins
[ "$EVERY" = 0 ] || one 2
grep -q FAILED "$work/first" && exit 1
for ((i = 0; i < 200; i++)); do
	quiet && break
	sleep 0.1
done
before=$(state)
own() # descriptors of the daemon without those that libfuse gives each of its threads
{
	echo $(($(descriptors "$daemon") - $(threads "$daemon")))
}
f=("$(descriptors "$server")" "$(own)" "$(threads "$daemon")" "$(rss "$server")" "$(rss "$daemon")"
	"$(device_memory)" "$(ls /dev/shm | wc -l)")
echo "before: $before"

running=() begun=0
for ((n = 1; n <= COUNT; n++)); do
	[ "$SECONDS" -lt "$IN_ALL" ] || break
	while [ ${#running[@]} -ge "$JOBS" ]; do
		wait -n -p p "${running[@]}"
		rest=()
		for q in "${running[@]}"; do
			[ "$q" = "$p" ] || rest+=("$q")
		done
		running=("${rest[@]}")
	done
	one "$n" >>"$work/lines" &
	running+=($!)
	begun=$((begun + 1))
done
wait "${running[@]}"
cut -d: -f1 "$work/lines" | sed 's/ [0-9]*$//' | sort | uniq -c
grep FAILED "$work/lines" | head -n 8
for ((i = 0; i < 200; i++)); do
	quiet && break
	sleep 0.1
done
echo "after:  $(state)"
bad=$(grep -c FAILED "$work/lines")
more() # WHAT BEFORE AFTER ALLOWED: counted as a leak when it grew by more
{
	[ "$3" -le $(($2 + $4)) ] || { echo "LEAK: $1 from $2 to $3"; bad=$((bad + 1)); }
}
quiet || {
	echo "LEAK: sessions: $(cat "$mnt/gpu0/sessions"); children: $(pgrep -P "$server" | wc -l)"
	bad=$((bad + 1))
}
more "the server's descriptors" "${f[0]}" "$(descriptors "$server")" 0
more "the daemon's descriptors" "${f[1]}" "$(own)" 0
more "the daemon's threads" "${f[2]}" "$(threads "$daemon")" 10 # those that libfuse keeps idle
more "the server's KiB" "${f[3]}" "$(rss "$server")" 4096
more "the daemon's KiB" "${f[4]}" "$(rss "$daemon")" 16384
more "the device's MiB" "${f[5]}" "$(device_memory)" 8
more "files of shared memory" "${f[6]}" "$(ls /dev/shm | wc -l)" 0
[ "$begun" = "$COUNT" ] || echo "only $begun of $COUNT processes were begun in $IN_ALL s"
echo "$begun processes, $bad faults, $SECONDS s"
[ "$bad" = 0 ] && [ "$begun" = "$COUNT" ]
