# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts of this folder share: which programs there are, and running them all under one way of
# reaching a GPU. A program is right when it exits 0 and its last line is PASS; 77 is a skip. Sourced after
# tests/e2e/lib.sh. Variables: SCUDAFS_TEST_LONG (the long ones too), SCUDAFS_TEST_GPU (those that need a
# real GPU too), SCUDAFS_TEST_NATIVE (the folder of the libcuda.so.1 that is native here; empty on a GPU
# machine: the system's own).
apps=${SCUDAFS_TEST_APPS:-$B/tests/apps}
native_lib=${SCUDAFS_TEST_NATIVE-$B/lib/soft}

[ -x "$apps/vectoradd" ] || skip "the CUDA programs are not built (no nvcc)"

app_names() # every program that is to run, one a line, in the list's order
{
	local name builds when b
	while read -r name builds when _; do
		case $when in
		check) ;;
		long) [ -n "${SCUDAFS_TEST_LONG:-}" ] || continue ;;
		gpu) [ -n "${SCUDAFS_TEST_GPU:-}" ] || continue ;;
		two) [ -n "${SCUDAFS_TEST_TWO:-}" ] || continue ;;
		*) continue ;;
		esac
		for b in ${builds//,/ }; do
			case $b in
			static | driver) echo "$name" ;;
			*) echo "$name.$b" ;;
			esac
		done
	done < <(sed 's/#.*//' "$top/tests/apps/list")
}

libraries_of() # NAME: NVIDIA's libraries that a program needs
{
	sed -n "s/^${1%%.*}  *[a-z,][a-z,]*  *[a-z][a-z]*  *\([A-Za-z,]*\).*/\1/p" "$top/tests/apps/list"
}

# The ways. Each ends what it started after APP_LIMIT seconds, with all its children.
APP_LIMIT=${APP_LIMIT:-120}

native() # COMMAND...: with the native libcuda
{
	at_most "$APP_LIMIT" "${foreign[@]}" ${native_lib:+LD_LIBRARY_PATH="$native_lib"} "$@"
}

through_mount() # COMMAND...
{
	at_most "$APP_LIMIT" "$bin/scudafs" run --mount "$mnt" -- "${foreign[@]}" "$@"
}

# run_apps HOW LOGS [NAME...]: each program with `HOW PROGRAM`, its output to LOGS/NAME.out and .err; a line
# each. The status is whether all passed.
run_apps()
{
	local how=$1 logs=$2 name code start bad=0 ran=0 skipped=0
	shift 2
	mkdir -p "$logs"
	[ $# -gt 0 ] || set -- $(app_names)
	for name; do
		if [ ! -x "$apps/$name" ]; then
			if [ -n "$(libraries_of "$name")" ]; then
				echo "skipped $name: not built, for it needs $(libraries_of "$name")"
			else
				echo "FAILED $name: not built"
				bad=$((bad + 1))
			fi
			continue
		fi
		start=$(now_ms)
		"$how" "$apps/$name" >"$logs/$name.out" 2>"$logs/$name.err" </dev/null
		code=$?
		ran=$((ran + 1))
		if [ "$code" = 77 ]; then
			skipped=$((skipped + 1))
			echo "skipped $(tail -n 1 "$logs/$name.out")"
		elif [ "$code" = 0 ] && tail -n 1 "$logs/$name.out" | grep -q '^PASS '; then
			echo "ok $name ($(($(now_ms) - start)) ms)"
		else
			bad=$((bad + 1))
			echo "FAILED $name: status $code: $(tail -n 2 "$logs/$name.err" | tr '\n' ' ')"
		fi
	done
	echo "$how: $((ran - bad - skipped)) of $ran programs passed, $skipped skipped, $bad failed"
	[ "$bad" = 0 ]
}
