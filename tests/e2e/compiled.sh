#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What NVRTC compiled once it need not compile again: the library keeps results for compilers in the program,
# as a driver does, in files, and gives them back only to who asks for the very same. What is damaged, what
# others may have written, what is too much is not used; without a place for it all is compiled, as ever.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
export CUDA_CACHE_PATH=$work/compute
ours=$CUDA_CACHE_PATH/scudafs
answer() # WORDS-OF-ITS-OUTPUT ARGUMENT...
{
	local got
	got=$(run_program compiled "${@:2}" 2>>"$work/compiled.err") || fail "'${*:2}' ended with $?: $got"
	[ "$got" = "$1" ] || fail "'${*:2}' said '$got', not '$1'"
}
fresh=$'not found 500\nkeeping it answers 0'
answer "$fresh" 1 input options build result
answer 'found result' 1 input options build other
answer 'not found 500' 2 input options build
answer 'not found 500' 1 inpu options build
answer 'not found 500' 1 input toptions build
answer 'not found 500' 1 input options buil

file=$(echo "$ours"/*)
[ "$(stat -c %a "$CUDA_CACHE_PATH" "$ours" "$file" | tr '\n' ' ')" = "700 700 600 " ] ||
	fail "others may read it"
cp "$file" "$work/good"
printf x | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 1)) conv=notrunc status=none
answer 'not found 500' 1 input options build
[ -e "$file" ] && fail "what is damaged is still there"
for size in 0 40 72 73; do
	head -c "$size" "$work/good" >"$file"
	answer 'not found 500' 1 input options build
done
mkfifo "$file"
answer 'not found 500' 1 input options build
rm -f "$file"
cp "$work/good" "$file"
answer 'found result' 1 input options build
if [ -z "$sanitizer" ]; then # which wants terabytes of addresses
	truncate -s 1500M "$file"
	got=$(ulimit -v 1000000 && run_program compiled 1 input options build 2>>"$work/compiled.err")
	[ "$got" = 'not found 500' ] || fail "without memory for what is kept it said '$got'"
	[ -e "$file" ] || fail "what there was no memory for was thrown away"
	cp "$work/good" "$file"
fi
chmod 722 "$ours"
answer 'not found 500' 1 input options build
answer $'not found 500\nkeeping it answers 304' 1 input options build mine
chmod 700 "$ours"
answer 'found result' 1 input options build

CUDA_CACHE_DISABLE=0 answer 'found result' 1 input options build
got=$(CUDA_CACHE_DISABLE=1 run_program compiled 1 input options build)
[ "$got" = 'no key 801' ] || fail "switched off it said '$got'"

# Where it is by itself, and where it cannot be.
mkdir "$work/home"
CUDA_CACHE_PATH='' HOME=$work/home answer "$fresh" 1 input options build result
CUDA_CACHE_PATH='' HOME=$work/home answer 'found result' 1 input options build result
[ -n "$(ls "$work/home/.nv/ComputeCache/scudafs")" ] || fail "not where a driver's is"
nowhere=$'not found 500\nkeeping it answers 304'
CUDA_CACHE_PATH='' HOME='' answer "$nowhere" 1 input options build result
CUDA_CACHE_PATH=$work/good answer "$nowhere" 1 input options build result
if [ "$sanitizer" != tsan ]; then # its runtime writes a file
	got=$(ulimit -f 0 && run_program compiled 1 elsewhere options build result)
	[ "$got" = "$nowhere" ] || fail "where no file may be written it said '$got'"
fi

# Room: never more than was allowed, by far the most of that is used, and the latest is there.
rm -rf "$ours"
CUDA_CACHE_MAXSIZE=100000 answer '100 kept, 100 found' many 100 5000
total=$(cat "$ours"/* | wc -c)
((total <= 100000 && total >= 50000)) || fail "$total bytes are kept where 100000 were allowed"
CUDA_CACHE_MAXSIZE=4000 answer '0 kept, 0 found' many 3 5000
touch -d '1 hour ago' "$ours/new.1.1"
CUDA_CACHE_MAXSIZE=100000 answer '9 kept, 9 found' many 9 5000
[ -e "$ours/new.1.1" ] && fail "what nobody finished stays for ever"

# NVRTC itself, where it is.
for library in /usr/local/cuda/lib64/libnvrtc.so.13 libnvrtc.so.13 none; do
	[ "$library" = none ] && break
	run_program compiled nvrtc "$library" "$work/first.cubin" >"$work/first.out" 2>&1 && break
	[ $? = 4 ] || fail "NVRTC: $(tail -n 1 "$work/first.out")"
done
[ "$library" != none ] || { echo "no NVRTC 13 here: tried without it"; exit 0; }
grep -q 'Successfully added cubin' "$work/first.out" || fail "NVRTC could not keep what it compiled"
run_program compiled nvrtc "$library" "$work/again.cubin" >"$work/again.out" 2>&1 || fail "NVRTC again: $?"
grep -q 'Successfully retrieved cached ptx' "$work/again.out" || fail "NVRTC compiled again"
grep -q 'Successfully retrieved cached cubin' "$work/again.out" || fail "NVRTC assembled again"
cmp "$work/first.cubin" "$work/again.cubin" || fail "NVRTC got something else back"
