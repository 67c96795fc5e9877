#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a real GPU, in one run of under nine minutes on a machine that has the toolkit but no
# package manager: builds with the dependencies carried in .carry (tests/device/carry.sh), starts the server
# on the real driver, mounts it on itself, runs every program natively and through the mount and compares
# what they print. Each step has a time limit and prints its findings as it goes; the logs are packed into
# $OUT when that is set.
#
#     tests/device/run.sh [STEP...]     build apps conformance shared bench micro smi torch torchbench, all
#                                       unless named; `native` alone runs what needs no build of ours:
#                                       programs and conformance natively; `frameworks` runs
#                                       tests/device/frameworks.sh with what FRAMEWORKS names (all of it);
#                                       `leaks` runs tests/device/leaks.sh; `programs` only builds them;
#                                       `e2e` builds the tests and runs those of tests/e2e that E2E names, on
#                                       the GPU; `table` (five minutes), `network` (five minutes) and
#                                       `twogpus` (what needs two GPUs: nvidia-h200-x2) are run only when
#                                       named
#
# Needs root (the mount) and /dev/fuse.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
B=${B:-$top/build}
B=$(realpath -m "$B")
carry=$top/.carry
root=$carry/root
jobs=$(nproc)
log=$(mktemp -d)
mnt=$log/mnt
results=$log/results
mkdir -p "$mnt" "$results"
export PATH=$PATH:/usr/local/cuda/bin
start=$SECONDS
server=
failed=0

say() { printf '[%3d s] %s\n' $((SECONDS - start)) "$*" | tee -a "$results/summary.txt"; }
bad() { failed=$((failed + 1)); say "FAILED $*"; }
step() # SECONDS NAME COMMAND...: with a time limit and a log
{
	local limit=$1 name=$2 code
	shift 2
	timeout -k 5 "$limit" "$@" >"$results/$name.log" 2>&1 </dev/null
	code=$?
	[ $code = 124 ] && echo "(time limit of $limit s)" >>"$results/$name.log"
	return $code
}
in_a_line() # LINES [FILE]: the last lines of a file, or of standard input, as one
{
	tail -n "$1" "${2:--}" 2>/dev/null | tr '\n' ' ' | cut -c1-300
}
keep() # what a time limit of the whole must not take away
{
	[ -n "${OUT:-}" ] || return 0
	cp "$results/summary.txt" "$OUT/summary.txt" 2>/dev/null
	tar -czf "$OUT/logs.tar.gz.part" -C "$log" results 2>/dev/null &&
		mv "$OUT/logs.tar.gz.part" "$OUT/logs.tar.gz"
}
finish()
{
	trap - EXIT
	timeout 10 "$B/bin/scudafs" umount --lazy "$mnt" >/dev/null 2>&1 || umount -l "$mnt" 2>/dev/null
	[ -z "$server" ] || { kill "$server"; sleep 0.3; kill -KILL "$server"; } 2>/dev/null
	say "$failed failures, $((SECONDS - start)) s"
	keep
	exit $((failed > 0))
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

# ---- the build, with the carried packages in front where there are any
flags=()
if [ -d "$root" ]; then
	lib1=$root/usr/lib/x86_64-linux-gnu lib2=$root/lib/x86_64-linux-gnu
	if ! pkg-config --exists fuse3 openssl jansson 2>/dev/null; then
		mkdir -p "$log/bin"
		# As much of pkg-config as the Makefile asks for.
		cat >"$log/bin/pkg-config" <<-'SHIM'
			#!/bin/sh
			for a; do
				case $a in
				--cflags) how=cflags ;; --libs) how=libs ;; --exists) exit 0 ;;
				fuse3)
					if [ "$how" = cflags ]; then
						printf -- "-I$ROOT/usr/include/fuse3 -D_FILE_OFFSET_BITS=64 "
					else
						printf -- "-lfuse3 -lpthread "
					fi ;;
				openssl) [ "$how" = libs ] && printf -- "-lssl -lcrypto " ;;
				jansson) [ "$how" = libs ] && printf -- "-ljansson " ;;
				check)
					[ "$how" = libs ] &&
						printf -- "-lcheck -lsubunit -lrt -lm -lpthread " ;;
				esac
			done
			echo
		SHIM
		chmod +x "$log/bin/pkg-config"
		export ROOT=$root PATH=$log/bin:$PATH
		flags=("CFLAGS=-O2 -g -I$root/usr/include -I$root/usr/include/x86_64-linux-gnu")
		flags[0]+=" -L$lib1 -L$lib2 -Wl,-rpath,$lib1 -Wl,-rpath,$lib2"
		# The development links of a package point into folders of the whole system.
		for l in fuse3 lz4 zstd jansson ssl crypto; do
			f=$(ls "$lib1"/lib$l.so.?* "$lib2"/lib$l.so.?* 2>/dev/null | head -n 1)
			[ -n "$f" ] && ln -sf "$f" "$lib1/lib$l.so"
		done
	fi
fi

build_apps()
{
	step 150 build-apps make -k -j"$jobs" B="$B" APP_ARCH="${APP_ARCH:-native}" apps ||
		bad "the programs: $(grep -m 3 -iE 'error|\*\*\*' "$results/build-apps.log")"
	say "programs built: $(ls "$B/tests/apps" | grep -vc '^obj$\|^conformance$')" \
		"and $(ls "$B/tests/apps/conformance" 2>/dev/null | wc -l) of conformance"
}

e2e()
{
	local t
	step 150 build-tests make -j"$jobs" B="$B" "${flags[@]}" tests ||
		bad "tests: $(grep -m 5 -E 'error|\*\*\*' "$results/build-tests.log")"
	for t in ${E2E:-unix share kept compress pages}; do
		B=$B SCUDAFS_TEST_DRIVER=auto step 150 "e2e-$t" tests/run.sh "e2e/$t" ||
			bad "e2e/$t: $(tail -n 3 "$results/e2e-$t.log" | tr '\n' ' ')"
		say "e2e/$t: $(tail -n 1 "$results/e2e-$t.log")"
	done
	keep
}

build()
{
	if ! (step 150 build make -j"$jobs" B="$B" "${flags[@]}" all); then
		bad "build: $(grep -m 5 -iE 'error|\*\*\*' "$results/build.log")"
		keep
		exit 1
	fi
	say "built"
}

serve() # the server on the real driver, and the mount
{
	[ -z "$server" ] || return 0
	"$B/bin/scuda-server" --listen 127.0.0.1:0 --driver auto --ready-fd 3 3>"$log/port" \
		2>"$results/server.log" &
	server=$!
	for ((i = 0; i < 300; i++)); do
		[ -s "$log/port" ] && break
		sleep 0.05
	done
	[ -s "$log/port" ] || { bad "no server: $(tail -n 3 "$results/server.log")"; return 1; }
	timeout 15 "$B/bin/scudafs" mount "127.0.0.1:$(head -n 1 "$log/port" | sed 's/.*://')" "$mnt" \
		-o log="$results/daemon.log" ||
		{ bad "mount: $(tail -n 3 "$results/daemon.log" "$results/server.log")"; return 1; }
	say "mounted: $(ls "$mnt" | tr '\n' ' ')"
}

# ---- running things both ways

# APPS="NAME..." in the environment names the programs, CONFORMANCE those of conformance; else all are meant.
programs()
{
	if [ -n "${APPS:-}" ]; then
		printf '%s\n' $APPS
		return
	fi
	sed 's/#.*//' tests/apps/list | while read -r name builds _; do
		for b in ${builds//,/ }; do
			case $b in static | driver) b=$name ;; '') continue ;; *) b=$name.$b ;; esac
			# What needs a library of NVIDIA's is built only where that is.
			[ -x "$B/tests/apps/$b" ] ||
				! grep -qE "^$name +[a-z,]+ +[a-z]+ +[A-Za-z]" tests/apps/list || continue
			echo "$b"
		done
	done
}
export B mnt results
one() # HOW FOLDER PROGRAM LIMIT: output, errors and status of a program as files
{
	local out
	out=$results/$1/$(basename "$3")
	mkdir -p "$results/$1"
	if [ "$1" = mount ] || [ "$1" = mount-conformance ] || [ "$1" = mount-shared ]; then
		timeout -k 2 "$4" "$B/bin/scudafs" run --mount "$mnt" -- "$2/$3" >"$out.out" 2>"$out.err" \
			</dev/null
	else
		timeout -k 2 "$4" "$2/$3" >"$out.out" 2>"$out.err" </dev/null
	fi
	echo $? >"$out.status"
}
export -f one
many() # HOW FOLDER LIMIT PARALLEL SECONDS: the programs on standard input, all of them in so many seconds
{
	timeout -k 5 "$5" xargs -P "$4" -I{} bash -c 'one "$@"' one "$1" "$2" {} "$3"
}

apps_native()
{
	local n name
	programs | many native "$B/tests/apps" 60 4 90
	n=0
	for name in $(programs); do
		case $(cat "$results/native/$name.status" 2>/dev/null) in
		0 | 77) n=$((n + 1)) ;;
		*) bad "native $name: status $(cat "$results/native/$name.status"):" \
			"$(in_a_line 2 "$results/native/$name.err")" ;;
		esac
	done
	say "$n of $(programs | wc -l) programs right natively"
	keep
}

apps_mounted()
{
	local n name mounted native
	serve || return
	programs | many mount "$B/tests/apps" 30 3 120
	n=0
	for name in $(programs); do
		mounted=$(cat "$results/mount/$name.status" 2>/dev/null)
		native=$(cat "$results/native/$name.status" 2>/dev/null)
		if [ "$mounted" = 77 ]; then
			say "skipped through the mount: $(tail -n 1 "$results/mount/$name.out")"
		elif [ "$mounted" != "$native" ]; then
			bad "mount $name: status $mounted: $(in_a_line 2 "$results/mount/$name.err")"
		elif ! diff <(grep -v '^~ ' "$results/native/$name.out") \
			<(grep -v '^~ ' "$results/mount/$name.out") >"$results/mount/$name.diff"
		then
			bad "mount $name prints something else:" \
				"$(head -n 4 "$results/mount/$name.diff" | in_a_line 4)"
		else
			n=$((n + 1))
		fi
	done
	say "$n of $(programs | wc -l) programs the same through the mount"
	keep
}

compare() # WHAT FILE FILE: the lines that differ, without those that may
{
	if ! diff <(grep -v '^~ ' "$2") <(grep -v '^~ ' "$3") >"$3.diff"; then
		bad "$1: $(grep -c '^[<>]' "$3.diff") lines differ"
		grep '^[<>]' "$3.diff" | head -n "${LINES_SHOWN:-14}" | cut -c1-150
		return 1
	fi
}

conformance_native() # [NAME...]
{
	[ $# -gt 0 ] || set -- $(ls "$B/tests/apps/conformance")
	printf '%s\n' "$@" | many native-conformance "$B/tests/apps/conformance" 60 4 60
	local name same=0
	for name; do
		if grep -qx 'not supported by this device' "$results/native-conformance/$name.out"; then
			say "skipped natively: $name"
		elif [ ! -e "tests/apps/conformance/golden/$name.txt" ]; then
			say "no golden file for $name yet"
		else
			compare "native $name against its golden file" \
				"tests/apps/conformance/golden/$name.txt" \
				"$results/native-conformance/$name.out" && same=$((same + 1))
		fi
	done
	say "$same conformance programs as their golden files natively"
	keep
}

conformance_mounted() # [NAME...]
{
	local name same=0
	serve || return
	[ $# -gt 0 ] || set -- $(ls "$B/tests/apps/conformance")
	printf '%s\n' "$@" | many mount-conformance "$B/tests/apps/conformance" 40 3 60
	for name; do
		if grep -qx 'not supported by this device' "$results/mount-conformance/$name.out"; then
			say "skipped through the mount: $name"
			continue
		fi
		compare "mount $name against native" "$results/native-conformance/$name.out" \
			"$results/mount-conformance/$name.out" &&
			same=$((same + 1))
	done
	say "$same conformance programs the same through the mount"
	keep
}

cuda_root=$(dirname "$(dirname "$(realpath "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")

shared() # the programs that were recorded on such a machine before
{
	local c name same=0
	[ -d "$carry/shared/conformance" ] || return 0
	serve || return
	mkdir -p "$log/shared"
	for c in "$carry"/shared/conformance/*.c; do
		name=$(basename "$c" .c)
		gcc -O1 -w -I"$cuda_root/include" "$c" -o "$log/shared/$name" -L"$cuda_root/lib64/stubs" \
			-lcuda -lpthread || bad "compile $name"
	done
	ls "$log/shared" | many mount-shared "$log/shared" 60 3 80
	for name in $(ls "$log/shared"); do
		# Where the recorded driver crashed on nonsense, an answer is better: only what we lack
		# counts.
		diff <(grep -v '^~ ' "$carry/shared/conformance/golden/$name.out") \
			<(grep -v '^~ ' "$results/mount-shared/$name.out") |
			grep '^<' | grep -v ': signal 11$\|^< SETUP\|: exit 3$' \
				>"$results/mount-shared/$name.diff"
		if [ -s "$results/mount-shared/$name.diff" ]; then
			bad "shared $name: $(wc -l <"$results/mount-shared/$name.diff") lines of its golden" \
				"file are missing"
			head -n 12 "$results/mount-shared/$name.diff" | cut -c1-150
		else
			same=$((same + 1))
		fi
	done
	say "$same shared conformance programs as their golden files"
	keep
}

through() { "$B/bin/scudafs" run --mount "$mnt" -- "$@"; }
export -f through

bench()
{
	B=$B NATIVE_LIB='' SCUDAFS_TEST_DRIVER=auto step 100 bench tests/bench/bench.sh full ||
		bad "bench: $(tail -n 3 "$results/bench.log")"
	cat "$results/bench.log"
	keep
}

table()
{
	B=$B NATIVE_LIB='' SCUDAFS_TEST_DRIVER=auto step 400 table tests/bench/table.sh ||
		bad "table: $(tail -n 3 "$results/table.log")"
	cat "$results/table.log"
	keep
}

hops()
{
	B=$B SCUDAFS_TEST_DRIVER=auto step 60 hops tests/bench/hops.sh ||
		bad "hops: $(tail -n 3 "$results/hops.log")"
	B=$B SCUDAFS_TEST_DRIVER=auto SCUDAFS_CHANNEL=fuse step 60 hops-fuse tests/bench/hops.sh ||
		bad "hops without shared memory: $(tail -n 3 "$results/hops-fuse.log")"
	cat "$results/hops.log" "$results/hops-fuse.log"
	keep
}

network()
{
	B=$B NATIVE_LIB='' SCUDAFS_TEST_DRIVER=auto step 400 network tests/bench/network.sh ||
		bad "network: $(tail -n 3 "$results/network.log")"
	cat "$results/network.log"
	keep
}

micro()
{
	[ -e "$carry/shared/bench/micro.cu" ] || return 0
	serve || return
	if ! nvcc -w -std=c++17 -arch=native "$carry/shared/bench/micro.cu" -o "$log/micro"; then
		bad "compile micro.cu"
		return
	fi
	step 60 micro-native "$log/micro" || bad "micro natively"
	step 60 micro-mount bash -c "through '$log/micro'" ||
		bad "micro through the mount: $(tail -n 1 "$results/micro-mount.log")"
	paste -d '|' <(cut -c1-110 "$results/micro-native.log") <(cut -c1-110 "$results/micro-mount.log")
	keep
}

smi()
{
	command -v nvidia-smi >/dev/null || return 0
	serve || return
	step 20 smi bash -c "through nvidia-smi -L" && say "nvidia-smi: $(head -n 1 "$results/smi.log")" ||
		bad "nvidia-smi: $(tail -n 2 "$results/smi.log")"
}

torch()
{
	local quick=tests/device/torch_quick.py
	serve || return
	step 60 torch-native python3 "$quick" ||
		bad "torch natively: $(tail -n 1 "$results/torch-native.log")"
	step 90 torch-mount bash -c "through python3 '$quick'" ||
		bad "torch through the mount: $(tail -n 3 "$results/torch-mount.log" | cut -c1-400)"
	grep -v Warning "$results/torch-mount.log" | tail -n 9 | cut -c1-160
	grep -v Warning "$results/torch-native.log" | sed "s/~.*//" >"$results/torch-native.txt"
	grep -v Warning "$results/torch-mount.log" | sed "s/~.*//" >"$results/torch-mount.txt"
	compare torch "$results/torch-native.txt" "$results/torch-mount.txt"
	keep
}

torchbench()
{
	[ -e "$carry/shared/bench/torch_bench.py" ] || return 0
	serve || return
	step 120 torchbench-native python3 "$carry/shared/bench/torch_bench.py" ||
		bad "torch_bench natively: $(tail -n 1 "$results/torchbench-native.log" | cut -c1-200)"
	step 160 torchbench-mount bash -c "through python3 '$carry/shared/bench/torch_bench.py'" ||
		bad "torch_bench through the mount: $(in_a_line 1 "$results/torchbench-mount.log")"
	python3 tests/device/side_by_side.py "$results/torchbench-native.log" "$results/torchbench-mount.log"
	keep
}

frameworks()
{
	serve || return
	mkdir -p "$results/frameworks"
	local all=${SECONDS_IN_ALL:-290}
	MNT=$mnt RESULTS=$results/frameworks SECONDS_IN_ALL=$all timeout -k 10 $((all + 40)) \
		tests/device/frameworks.sh ${FRAMEWORKS:-} </dev/null | tee "$results/frameworks.log"
	[ "${PIPESTATUS[0]}" = 0 ] || bad "frameworks: $(tail -n 1 "$results/frameworks.log")"
	keep
}

leaks()
{
	local all=${SECONDS_IN_ALL:-150}
	mkdir -p "$results/leaks"
	RESULTS=$results/leaks SECONDS_IN_ALL=$all timeout -k 10 $((all + 110)) tests/device/leaks.sh \
		</dev/null 2>&1 | tee "$results/leaks.log"
	[ "${PIPESTATUS[0]}" = 0 ] || bad "leaks: $(tail -n 1 "$results/leaks.log")"
	keep
}

# What needs two devices: programs and conformance, both ways.
twogpus()
{
	local APPS="twogpus ipc ipc.shared" n
	n=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
	[ "$n" -ge 2 ] || { bad "$n GPUs here, two are needed"; return; }
	apps_native
	apps_mounted
	conformance_native peers share descriptors
	conformance_mounted peers share descriptors
	grep -h '^~' "$results/native-conformance/peers.out" | head -n 24
}

[ $# -gt 0 ] || set -- build apps conformance bench shared micro smi torch torchbench
say "$(nvidia-smi -L 2>/dev/null | head -n 1), $jobs processors, /dev/fuse" \
	"$([ -e /dev/fuse ] && echo there || echo missing)"
for s in native programs apps conformance bench table network twogpus; do
	case " $* " in *" $s "*) build_apps; break ;; esac
done
for s; do
	case $s in
	native) apps_native; conformance_native ;;
	programs) ;;
	apps) apps_native; apps_mounted ;;
	conformance) conformance_native ${CONFORMANCE:-}; conformance_mounted ${CONFORMANCE:-} ;;
	build | e2e | shared | bench | table | network | hops | micro | smi | torch | torchbench) "$s" ;;
	frameworks | leaks | twogpus) "$s" ;;
	*) say "no step $s"; exit 2 ;;
	esac
done
