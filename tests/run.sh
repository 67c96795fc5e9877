#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that were built and prints one line each; the last line is the count. `tests/run.sh` runs
# all, `tests/run.sh e2e/keys unit` those whose name contains one of the words. Each test has a time limit (a
# script may name its own: "# limit: SECONDS"), all together have one (MINUTES), a log of its own, and may run
# beside one other. A line "# also: fuse looking" in a script has it run again as e2e-fuse/NAME (programs
# share no memory with the mount) and e2e-looking/NAME (threads look for work before they sleep, as they do
# where there are more processors); "two" as e2e-two/NAME (large copies to the device go by two connections);
# "unix" as e2e-unix/NAME (the server is behind a unix socket, so large copies go through memory that is
# lent). Exit status of a test: 0 passed, 77 skipped, else failed. What a sanitizer writes into
# $B/tests/reports is a failure too, whoever wrote it: no test sees all that the daemon and the server say.
# Variables: B (build folder), JOBS (2), MINUTES (60, times SLOW): what has not ended by then is ended, what
# has not begun does not; both have failed. SLOW (the factor of all time limits, those inside the tests
# included: 1, more under a sanitizer), SCUDAFS_TEST_DRIVER (soft; auto or a path on a GPU machine),
# SCUDAFS_TEST_LONG (1: the long ones too).
set -u
cd "$(dirname "$0")/.." || exit 1
export B=${B:-build}
JOBS=${JOBS:-2}
export SLOW=${SLOW:-1}
last=$((${MINUTES:-$((60 * SLOW))} * 60)) # second
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-$SLOW}
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-20} \
	# seconds: four, as libcheck has it, is less than a busy machine needs
logs=$B/tests/log
reports=$B/tests/reports
words=("$@")
rm -rf "$logs" "$reports"
mkdir -p "$logs" "$reports"
chmod 1777 "$reports" # tests have other users, too
unset SCUDAFS_MOUNT SCUDAFS_SERVER CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING

wanted() # NAME
{
	local w
	[ ${#words[@]} = 0 ] && return 0
	for w in "${words[@]}"; do
		[[ /$1 == */"$w"* ]] && return 0
	done
	return 1
}

# All that the tests make lies below one folder, so that what is left over can be told from others' files.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/scudafs-tests.XXXXXX") || exit 1
export TMPDIR

passed=0 failed=0 skipped=0
report() # NAME CODE SECONDS
{
	local log=$logs/${1//\//-}.log
	case $2 in
	0)
		passed=$((passed + 1))
		echo "ok       $1 ($3 s)"
		;;
	77)
		skipped=$((skipped + 1))
		echo "skipped  $1: $(grep -h -m 1 '^SKIP' "$log" | sed 's/^SKIP:* *//')"
		;;
	*)
		failed=$((failed + 1))
		[ "$2" = 124 ] || [ "$2" = 137 ] && echo "(the time limit ended it)" >>"$log"
		echo "FAILED   $1 (status $2, $3 s), $log:"
		tail -n 60 "$log" | sed 's/^/    /'
		;;
	esac
}

declare -A running=() started=()
reap() # waits for one test and reports it
{
	local p code
	wait -n -p p
	code=$?
	[ -n "${p:-}" ] && [ -n "${running[$p]:-}" ] || return 0
	report "${running[$p]}" "$code" "$((SECONDS - started[$p]))"
	unset "running[$p]"
}

stop_all() # a signal: what runs gets it too, so that it cleans up
{
	trap - EXIT
	[ ${#running[@]} = 0 ] || kill -TERM "${!running[@]}" 2>/dev/null
	wait
	remove
	exit 1
}
remove() # what the tests made, but for mounts
{
	rm -rf --one-file-system "$TMPDIR"
}
trap stop_all INT TERM HUP

run() # NAME SECONDS COMMAND...
{
	local name=$1 limit=$(($2 * SLOW))
	shift 2
	wanted "$name" || return 0
	while [ ${#running[@]} -ge "$JOBS" ]; do
		reap
	done
	if [ "$SECONDS" -ge "$last" ]; then
		failed=$((failed + 1))
		echo "FAILED   $name: not run, the time is over"
		return
	fi
	[ $((last - SECONDS)) -ge "$limit" ] || limit=$((last - SECONDS))
	timeout -k 10 "$limit" "$@" >"$logs/${name//\//-}.log" 2>&1 </dev/null &
	running[$!]=$name
	started[$!]=$SECONDS
}

drain()
{
	while [ ${#running[@]} -gt 0 ]; do
		reap
	done
}

limit_of() # SCRIPT
{
	local n
	n=$(sed -n 's/^# limit: \([0-9]*\)$/\1/p' "$1" | head -n 1)
	echo "${n:-120}"
}

run_script() # FOLDER SCRIPT
{
	local name also
	name=$(basename "$2" .sh)
	also=$(sed -n 's/^# also: //p' "$2")
	run "$1/$name" "$(limit_of "$2")" "$2"
	case $also in *fuse*) run "$1-fuse/$name" "$(limit_of "$2")" env SCUDAFS_CHANNEL=fuse "$2" ;; esac
	case $also in *two*) run "$1-two/$name" "$(limit_of "$2")" env SCUDAFS_TEST_CONNECTIONS=2 "$2" ;; esac
	case $also in *unix*) run "$1-unix/$name" "$(limit_of "$2")" env SCUDAFS_TEST_UNIX=1 "$2" ;; esac
	case $also in *looking*) run "$1-looking/$name" "$(limit_of "$2")" env SCUDAFS_SPIN_US=50 "$2" ;; esac
}

for t in "$B"/tests/unit/check_*; do
	[ -x "$t" ] && [ ! -d "$t" ] && [[ $t != *.* ]] && run "unit/${t##*/}" 120 "$t"
done
for t in tests/gen/*.sh tests/soft/*.sh; do
	[ -x "$t" ] && run "$(basename "$(dirname "$t")")/$(basename "$t" .sh)" "$(limit_of "$t")" "$t"
done
for t in tests/apps/*.sh; do
	[ -x "$t" ] && run_script apps "$t"
done
for t in tests/e2e/*.sh; do
	[ "$t" = tests/e2e/lib.sh ] && continue
	run_script e2e "$t"
done
if [ -n "${SCUDAFS_TEST_LONG:-}" ]; then
	for t in tests/long/*.sh; do
		[ -x "$t" ] && run "long/$(basename "$t" .sh)" "$(limit_of "$t")" "$t"
	done
fi
drain

# Whatever went wrong above, no test may leave a mount behind.
if grep " $TMPDIR/" /proc/mounts; then
	failed=$((failed + 1))
	echo "FAILED   nothing is left: these mounts are"
else
	remove
fi
for r in "$reports"/*; do
	grep -qsE 'ERROR: |WARNING: |FATAL: |runtime error:|CHECK failed|DEADLYSIGNAL' "$r" ||
		continue # not what it says of suppressions and the like
	failed=$((failed + 1))
	echo "FAILED   no report of a sanitizer: $r:"
	head -n 40 "$r" | sed 's/^/    /'
done
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test matches"; exit 1; }
[ -z "${SCUDAFS_TEST_SANITIZER:-}" ] || echo "reports, if any: $reports; logs: $logs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
