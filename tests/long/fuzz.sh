#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 1500
# What comes from outside, in every parser, under the address and undefined-behaviour sanitizers,
# FUZZ_MINUTES (10) long: sessions whose frames are damaged on their way, in clear and inside of TLS's
# stream, with a second connection, and by a unix socket, where memory is lent; monitor connections, and
# programs that attack the mount by the memory that they share with it; then the units that throw garbage at
# one parser each. FUZZ_FIRST (the hour that it is) is the first seed.
# Nothing crashes, hangs, or is reported by a sanitizer.
. "$(dirname "$0")/../e2e/lib.sh"
requires mount python3 make
minutes=${FUZZ_MINUTES:-10}
seed=${FUZZ_FIRST:-$(($(date +%s) / 3600 % 100000))}
cd "$top" || exit 1
asan=${B#"$top"/}-asan # check-asan's; relative, as the names are that make knows the headers by
reports=$work/reports
mkdir "$reports"
{
	flock Makefile make -s -j2 B="$asan" SAN=address,undefined CFLAGS='-O1 -g' NVCC= tests ||
		fail "the build"
} >"$work/build.log" 2>&1
export B=$asan SLOW=4 CK_TIMEOUT_MULTIPLIER=8
export ASAN_OPTIONS=log_path=$reports/asan:detect_leaks=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:log_path=$reports/asan

clean() # WHAT: no report was written meanwhile
{
	[ -z "$(ls "$reports")" ] || fail "$1: $(head -n 40 "$reports"/*)"
}

round() # NAME [VARIABLE=VALUE]: one seed
{
	local how=${2:-SCUDAFS_TEST_CONNECTIONS=}
	env "$how" MANGLE_FIRST=$seed MANGLE_ROUNDS=1 tests/e2e/mangled.sh >"$work/one" 2>&1 ||
		fail "mangled.sh, $how MANGLE_FIRST=$seed: $(tail -n 40 "$work/one")"
	clean "mangled.sh, $how MANGLE_FIRST=$seed"
	env "$how" HOSTILE_SEED=$((seed * 1000)) HOSTILE_SECONDS=10 tests/e2e/hostile.sh >"$work/one" 2>&1 ||
		fail "hostile.sh, $how HOSTILE_SEED=$((seed * 1000)): $(tail -n 20 "$work/one")"
	clean "hostile.sh, $how HOSTILE_SEED=$((seed * 1000))"
	rounds[$1]=$((${rounds[$1]:-0} + 1))
}

end=$(($(now_ms) + minutes * 60000))
first=$seed
declare -A rounds
while [ "$(now_ms)" -lt "$end" ]; do
	round unix SCUDAFS_TEST_UNIX=1
	[ "$(now_ms)" -lt "$end" ] && round two SCUDAFS_TEST_CONNECTIONS=2
	[ "$(now_ms)" -lt "$end" ] && round one
	seed=$((seed + 1))
done
for unit in msg frame keys input stream stream_bulk relay relay_end lend lent ring ring_hostile ring_second \
	ring_lent ring_lies session session_hostile serve tree image cache handle; do
	"$asan/tests/unit/check_$unit" >"$work/one" 2>&1 || fail "check_$unit: $(tail -n 20 "$work/one")"
	clean "check_$unit"
done
for one in garbage lying_server truncated; do
	tests/e2e/$one.sh >"$work/one" 2>&1 || fail "$one.sh: $(tail -n 20 "$work/one")"
	clean "$one.sh"
done
echo "seeds $first to $((seed - 1)): ${rounds[unix]} by a unix socket," \
	"${rounds[two]:-0} with two connections, ${rounds[one]:-0} with one"
