# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the end-to-end tests share. A test is a bash script about one behaviour that sources this file first:
#
#     . "$(dirname "$0")/lib.sh"
#     requires mount
#     start_server
#     start_mount
#     run_program count | grep -q 'init 0 count 1' || fail "no GPU"
#
# Everything a test starts is registered for cleanup before it starts, and lives under one private folder,
# $work. Exit status: 0 passed, 77 skipped (the reason is printed), anything else failed (the logs of server
# and daemon are shown). Waiting is always for a condition, with an end (`within`), never for a time. Limits
# are written for a build without sanitizers; SLOW, the one factor of all tests, stretches them ($slow).
# Variables: B, the build folder; SLOW (1); SCUDAFS_TEST_DRIVER, the server's driver (soft unless set).
set -u -o pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$top/tests/own.sh"
B=${B:-build}
case $B in /*) ;; *) B=$top/$B ;; esac
bin=$B/bin
lib=$B/lib
progs=$B/tests/e2e
work=$(mktemp -d "${TMPDIR:-/tmp}/scudafs-test.XXXXXX")
mnt=$work/mnt
driver=${SCUDAFS_TEST_DRIVER:-soft}
slow=${SLOW:-1}
sanitizer=${SCUDAFS_TEST_SANITIZER:-} # asan or tsan, where all is built with it
# What a mount is asked for beside what its test asks for, behind -o log=: SCUDAFS_TEST_CONNECTIONS (two: not
# empty where that is 2) and SCUDAFS_TEST_CHANNEL.
options=${SCUDAFS_TEST_CONNECTIONS:+,connections=$SCUDAFS_TEST_CONNECTIONS}
options+=${SCUDAFS_TEST_CHANNEL:+,channel=$SCUDAFS_TEST_CHANNEL}
two=$(case $options in *connections=2*) echo two ;; esac)
# SCUDAFS_TEST_UNIX: where the test does not say where the server listens, it is a unix socket.
unix=${SCUDAFS_TEST_UNIX:+unix:$work/socket}
export XDG_CACHE_HOME=$work/cache-home CUDA_CACHE_PATH=$work/compute-cache
unset CACHE_DIRECTORY SCUDAFS_MOUNT SCUDAFS_SERVER CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH

hooks=()
at_exit() # COMMAND...: run it at the end, the latest first
{
	hooks+=("$(printf '%q ' "$@")")
}

finish()
{
	local code=$? i f
	trap - EXIT
	trap '' INT TERM HUP
	for ((i = ${#hooks[@]} - 1; i >= 0; i--)); do
		eval "${hooks[i]}" >/dev/null 2>&1
	done
	if [ "$code" != 0 ] && [ "$code" != 77 ]; then
		for f in "$work"/*.log "$work"/*.out "$work"/*.err; do
			[ -s "$f" ] && echo "--- ${f##*/}" && tail -n 15 "$f"
		done
		[ -z "${failure:-}" ] || echo "FAIL: $failure"
	fi
	rm -rf --one-file-system "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

fail() # TEXT
{
	failure=$*
	echo "FAIL: $failure"
	exit 1
}

skip() # REASON
{
	echo "SKIP: $*"
	exit 77
}

unsanitized() # REASON: skip under a sanitizer
{
	[ -z "$sanitizer" ] || skip "under a sanitizer: $*"
}

requires() # mount | root | COMMAND...
{
	local what
	for what; do
		case $what in
		mount)
			[ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "no access to /dev/fuse"
			[ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null || skip "no fusermount3"
			;;
		root) [ "$(id -u)" = 0 ] || skip "needs root" ;;
		*) command -v "$what" >/dev/null || skip "no $what" ;;
		esac
	done
}

# apart UNSHARE-OPTION: goes on as the same test in namespaces of its own. Nobody else's mounts are there:
# the copies of them would keep their daemons, which other tests wait for, alive until this test ends.
apart()
{
	if [ "${SCUDAFS_TEST_APART:-}" != "$1" ]; then
		unshare "$1" true 2>/dev/null || skip "no namespaces"
		rm -rf "$work"
		SCUDAFS_TEST_APART=$1 exec unshare --propagation private "$1" "$0"
	fi
	unset SCUDAFS_TEST_APART
	eval "$others"
}
others='
	for dir in $(sed -n "s/^[^ ]* \([^ ]*\) fuse.scudafs .*/\1/p" /proc/mounts); do
		umount -l "$dir" || :
	done'

within() # SECONDS COMMAND...: true as soon as the command is, false when the time is over
{
	local end=$(($(now_ms) + $1 * 1000 * slow))
	shift
	until "$@"; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		read -r -t 0.02 <>"$clock" || :
	done
}
clock=$work/clock
mkfifo "$clock"

at_most() # SECONDS COMMAND...: ends it, with all its children, when the time is over (status 124 or 137)
{
	timeout -k $((2 * slow)) $(($1 * slow)) "${@:2}"
}

now_ms()
{
	local up
	read -r up _ </proc/uptime
	echo "$((10#${up%.*} * 1000 + 10#${up#*.} * 10))"
}

stop() # PID: ends a process of ours and waits for it
{
	end TERM "$1" && end CONT "$1"
	within 5 gone "$1" || end KILL "$1"
	wait "$1"
}

gone() # PID: it has ended (or waits only for its parent to look)
{
	local state
	[ -e "/proc/$1" ] || return 0
	state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
	[ "$state" = Z ]
}

contains() # FILE TEXT: a line of the file matches
{
	[ -e "$1" ] && grep -q -e "$2" "$1"
}

# ---- the server: $server is its pid, $address what to mount

start_server() # [ARGUMENT...]
{
	case " $* " in
	*" --listen "*) ;;
	*) set -- --listen "${unix:-127.0.0.1:0}" "$@" ;;
	esac
	at_exit stop_server
	: >"$work/port"
	"$bin/scuda-server" --ready-fd 3 --driver "$driver" "$@" 3>"$work/port" 2>>"$work/server.log" &
	server=$!
	within 10 server_is_up || fail "the server is not up: $(tail -n 1 "$work/server.log")"
	monitor=$(pgrep -P "$server" | head -n 1)
	address=127.0.0.1:$(head -n 1 "$work/port")
	case " $* " in
	*" --listen ${unix:-none} "*) address=$unix ;;
	esac
}

server_is_up()
{
	[ -s "$work/port" ] || { gone "$server" && fail "the server ended: $(tail -n 3 "$work/server.log")"; }
}

stop_server()
{
	[ -n "${server:-}" ] && stop "$server"
	server=
}

sessions() # pids of the server's session processes
{
	pgrep -P "$server" | grep -vx "$monitor" || true
}

no_sessions()
{
	[ -z "$(sessions)" ]
}

# ---- the mount: $mnt

start_mount() # [ARGUMENT...]
{
	mkdir -p "$mnt"
	at_exit stop_mount
	"$bin/scudafs" mount "$address" "$mnt" -o "log=$work/daemon.log$options" "$@" || fail "mount"
}

mounted() # also when its daemon is dead
{
	grep -qF " $mnt " /proc/mounts
}

stop_mount()
{
	mounted || [ -n "$(daemon)" ] || return 0
	"$bin/scudafs" umount "$mnt" || "$bin/scudafs" umount --lazy "$mnt" || umount -l "$mnt"
	within 5 no_daemon || kill -KILL $(daemon)
}

daemon() # the pid of the daemon behind $mnt
{
	pgrep -f "scudafs mount .* $mnt " || true
}

no_daemon()
{
	[ -z "$(daemon)" ]
}

# ---- programs

# Before the command of a program that is not of this build. A sanitizer inside our library must be loaded
# before a program that has none; what the program itself leaks is its own.
foreign=(env)
[ -z "${SCUDAFS_TEST_PRELOAD:-}" ] ||
	foreign+=(LD_PRELOAD="$SCUDAFS_TEST_PRELOAD"
		ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0")

# with_library FILE COMMAND...: what COMMAND starts of ours has the library loaded first, but for a sanitizer,
# which has to come before all. Not so the tools that COMMAND uses: under a sanitizer each of these would be
# one more process that it looks into.
with_library()
{
	local name dir=$work/with-${1##*/} bin=$bin
	mkdir -p "$dir"
	for name in scudafs scuda-server; do
		printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' \
			"${SCUDAFS_TEST_PRELOAD:+$SCUDAFS_TEST_PRELOAD:}$1" "$bin/$name" >"$dir/$name"
		chmod 755 "$dir/$name"
	done
	bin=$dir
	"${@:2}"
}

run_program() # NAME [ARGUMENT...]: to its end, at most a minute
{
	at_most 60 "$bin/scudafs" run --mount "$mnt" -- "$progs/$1" "${@:2}"
}

# start_program TAG NAME [ARGUMENT...]: in the background; its output is in $work/TAG.out, its pid in
# ${pid[TAG]}; `tell TAG` ends its wait for standard input, `said TAG WORD` is true when it has said that.
declare -A pid=() input=()
start_program()
{
	local fd tag=$1
	mkfifo "$work/$tag.in"
	exec {fd}<>"$work/$tag.in"
	input[$tag]=$fd
	at_exit end_program "$tag"
	"$bin/scudafs" run --mount "$mnt" -- "$progs/$2" "${@:3}" <"$work/$tag.in" >"$work/$tag.out" \
		2>"$work/$tag.err" {fd}>&- &
	pid[$tag]=$!
}

tell()
{
	echo go >&"${input[$1]}"
}

said()
{
	contains "$work/$1.out" "$2"
}

heard() # TAG WORD: it has said that, or never will
{
	said "$1" "$2" || gone "${pid[$1]}"
}

expect() # TAG SECONDS WORD
{
	within "$2" heard "$1" "$3"
	said "$1" "$3" ||
		fail "$1 did not say '$3' within $2 s: $(cat "$work/$1.out" "$work/$1.err")"
}

end_program()
{
	gone "${pid[$1]}" || end KILL "${pid[$1]}"
	wait "${pid[$1]}"
}
