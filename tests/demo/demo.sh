#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo: from a fresh clone to a CUDA program that computes through a mount. Installs what is missing,
# builds, starts a server on this machine (its real GPU when it has one, else the software device), mounts it
# on a private folder, looks around, builds vectorAdd with nvcc (or, without nvcc, the same program over the
# driver API with gcc) and runs it. Takes away all that it made.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}

say()
{
	printf '\n\033[1m== %s\033[0m\n' "$*" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
		cat
	else
		sed 's/\x1b\[[0-9]*m//g'
	fi
}
show() # COMMAND...: shows and runs it
{
	echo "\$ $*"
	"$@"
}

say "packages"
tests/deps.sh
echo "all there"

say "build (a minute or two the first time)"
${MAKE:-make} --no-print-directory -s -j"$(nproc)" B="$B" all
for f in "$B"/bin/* "$B"/lib/*.so*; do
	echo "  $f ($(($(stat -c %s "$f") >> 10)) KiB)"
done

[ -r /dev/fuse ] && [ -w /dev/fuse ] || {
	echo "This user cannot use /dev/fuse. In a container it needs:" \
		"--device /dev/fuse --cap-add SYS_ADMIN" >&2
	exit 1
}

work=$(mktemp -d)
server=
cleanup()
{
	trap - EXIT
	"$B/bin/scudafs" umount --lazy "$work/scuda" 2>/dev/null || :
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || :
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

say "a server on this machine (scudafs serve; with a GPU of its own it would offer that one)"
"$B/bin/scuda-server" --listen 127.0.0.1:0 --driver auto --ready-fd 3 3>"$work/port" 2>"$work/server.log" &
server=$!
for ((i = 0; i < 200; i++)); do
	[ -s "$work/port" ] && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.05
done
[ -s "$work/port" ] || { cat "$work/server.log"; exit 1; }
address=127.0.0.1:$(head -n 1 "$work/port")
cat "$work/server.log"

say "its GPU becomes a directory"
mkdir "$work/scuda"
show "$B/bin/scudafs" mount "$address" "$work/scuda"
show ls "$work/scuda" "$work/scuda/gpu0"
(cd "$work/scuda/gpu0" && for f in name uuid compute_capability multiprocessors memory/total memory/free; do
	printf '%-26s %s\n' "gpu0/$f" "$(cat "$f")"
done)
show "$B/bin/scudafs" status "$work/scuda"

say "an unmodified CUDA program computes on it"
nvcc=$(command -v nvcc || ls -d /usr/local/cuda*/bin/nvcc 2>/dev/null | tail -n 1 || :)
if [ -n "$nvcc" ]; then
	show "$nvcc" -o "$work/vectoradd" tests/demo/vectoradd.cu
else
	echo "(no nvcc here: the same program over the driver API, with gcc)"
	show gcc -O1 -I. -o "$work/vectoradd" tests/demo/vectoradd_driver.c -L"$B/lib" -l:libcuda.so.1
fi
show "$B/bin/scudafs" run --mount "$work/scuda" -- "$work/vectoradd"

say "done"
echo "On a machine with a GPU: scudafs serve --listen ADDRESS --keys FILE;" \
	"here: scudafs mount HOST DIR -o key=FILE. README.md tells how."
