#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs of frameworks/ (PyTorch, transformers, JAX, CuPy, Triton, numba-cuda), each natively and
# through a mount, compared line by line; one row of a table for each as soon as it has ended, with what is
# wrong or differs below it. A program that fails or hangs does not stop the others.
#
#     tests/device/frameworks.sh [NAME|GROUP...]     all in the order of the groups unless named; -l lists
#                                                    them
#
# Where two runs differ a second native run tells whether native runs agree at all. Variables: B (build
# folder), MNT (a mount that is there; else a server and a mount are started), PYTHON, JOBS (programs at a
# time), SECONDS_IN_ALL (290: what has not begun then is told as not run), RESULTS (a folder for the outputs
# and frameworks.tsv), SHOWN (lines shown of each difference), NATIVE_ONLY=1.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
B=$(realpath -m "${B:-build}")
PYTHON=${PYTHON:-python3}
IN_ALL=${SECONDS_IN_ALL:-290}
SHOWN=${SHOWN:-12}
here=tests/device/frameworks
export PATH=$PATH:/usr/local/cuda/bin
order="extension models torch math memory processes ipc compile triton jax cupy numba tools"
cores=$(nproc)
JOBS=${JOBS:-$((cores >= 16 ? 4 : cores >= 8 ? 2 : 1))}

of() # SCRIPT WORD DEFAULT: what its head says, "# WORD: VALUE"
{
	local v
	v=$(sed -n "s/^# $2: //p" "$here/$1.py" | head -n 1)
	echo "${v:-$3}"
}

all=()
for g in $order; do
	for f in "$here"/*.py; do
		n=$(basename "$f" .py)
		[ "$(of "$n" group -)" = "$g" ] && all+=("$n")
	done
done
if [ "${1:-}" = -l ]; then
	for n in "${all[@]}"; do
		printf '%-12s %-22s limit %s s\n' "$(of "$n" group -)" "$n" "$(of "$n" limit 60)"
	done
	exit 0
fi
chosen=()
for n in "${all[@]}"; do
	[ $# = 0 ] && chosen+=("$n")
	for w; do
		[ "$w" = "$n" ] || [ "$w" = "$(of "$n" group -)" ] && chosen+=("$n") && break
	done
done
[ ${#chosen[@]} -gt 0 ] || { echo "no program is called or grouped so: $*"; exit 2; }

work=$(mktemp -d)
results=${RESULTS:-$work/results}
mkdir -p "$results" "$work/cache"
: >"$results/frameworks.tsv"
server=
finish()
{
	trap - EXIT
	trap '' INT TERM HUP
	local p
	for p in $(jobs -p); do
		[ "$p" = "$server" ] || { pkill -TERM -P "$p"; kill -TERM "$p"; } 2>/dev/null
	done
	if [ -n "$server" ]; then
		timeout 10 "$B/bin/scudafs" umount --lazy "$work/mnt" >/dev/null 2>&1
		kill "$server" 2>/dev/null
		wait "$server" 2>/dev/null
	fi
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

if [ -n "${NATIVE_ONLY:-}" ]; then
	MNT=
elif [ -z "${MNT:-}" ]; then
	MNT=$work/mnt
	mkdir -p "$MNT"
	"$B/bin/scuda-server" --listen 127.0.0.1:0 --driver "${SCUDAFS_TEST_DRIVER:-auto}" --ready-fd 3 \
		3>"$work/port" 2>"$results/frameworks-server.log" &
	server=$!
	for ((i = 0; i < 300; i++)); do
		[ -s "$work/port" ] && break
		sleep 0.05
	done
	[ -s "$work/port" ] || { echo "no server: $(tail -n 3 "$results/frameworks-server.log")"; exit 1; }
	timeout 20 "$B/bin/scudafs" mount "127.0.0.1:$(head -n 1 "$work/port" | sed 's/.*://')" "$MNT" \
		-o log="$results/frameworks-daemon.log" ||
		{ echo "no mount: $(tail -n 3 "$results"/frameworks-*.log)"; exit 1; }
fi

once() # HOW NAME FILE: output to FILE.out, errors to FILE.err, its status and seconds to FILE.status
{
	local limit end start code
	local -a way=()
	limit=$(of "$2" limit 60)
	end=$((IN_ALL + 20 - SECONDS))
	[ "$limit" -lt "$end" ] || limit=$((end = end > 1 ? end : 1))
	[ "$1" = mount ] && way=(env "FRAMEWORKS_SHIM=$B/lib" "$B/bin/scudafs" run --mount "$MNT" --)
	start=$(date +%s%N)
	NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
		TOKENIZERS_PARALLELISM=false \
		FRAMEWORKS_LIMIT=$limit FRAMEWORKS_CACHE=$work/cache/$2 \
		timeout -k 5 "$limit" "${way[@]}" "$PYTHON" "$here/$2.py" >"$3.out" 2>"$3.err" </dev/null
	code=$?
	[ $code = 124 ] && [ "$limit" = "$end" ] && code="cut"
	echo "$code $((($(date +%s%N) - start) / 100000000))" >"$3.status"
}

result_of() # FILE: a word for its status
{
	local code
	read -r code _ <"$1.status"
	case $code in
	0) echo right ;;
	77) echo skipped ;;
	cut) echo "cut short" ;;
	124 | 137) echo "time limit" ;;
	*) grep -q '^WRONG' "$1.out" && echo "$(grep -c '^WRONG' "$1.out") wrong" || echo "status $code" ;;
	esac
}
seconds_of() # FILE
{
	local t
	read -r _ t <"$1.status"
	echo "$((t / 10)).$((t % 10))"
}
faults() # LABEL FILE: what a run that is not right has to say
{
	[ "$(result_of "$2")" = right ] && return
	{ grep '^WRONG\|^SKIP' "$2.out" || tail -n 1 "$2.out"
	} | head -n "$SHOWN" | cut -c1-260 | sed "s/^/    $1: /"
	case $(result_of "$2") in
	skipped | *wrong) ;;
	*) (sed -n '/^Timeout (/,$p' "$2.err" | grep . || grep -vE 'Warning|^\s*$' "$2.err" | tail -n 6) |
		head -n 12 | cut -c1-260 | sed "s/^/    $1, standard error: /" ;;
	esac
}

both() # NAME: runs it both ways and prints its row, whole, at once
{
	local name=$1 n=$results/$1.native m=$results/$1.mount verdict=- text=
	once native "$name" "$n"
	[ "$(of "$name" "native runs" 1)" = 2 ] && once native "$name" "$n.again"
	if [ -n "$MNT" ]; then
		once mount "$name" "$m"
		text=$("$PYTHON" "$here/compare.py" "$n.out" "$m.out" \
			$([ -e "$n.again.out" ] && echo "$n.again.out"))
		if [ $? != 0 ] && [ ! -e "$n.again.out" ] && [ "$(result_of "$n")" = right ] &&
			[ "$(result_of "$m")" != "time limit" ]
		then
			once native "$name" "$n.again"
			text=$("$PYTHON" "$here/compare.py" "$n.out" "$m.out" "$n.again.out") &&
				verdict=same || verdict=differs
		else
			"$PYTHON" "$here/compare.py" "$n.out" "$m.out" \
				$([ -e "$n.again.out" ] && echo "$n.again.out") >/dev/null && verdict=same ||
					verdict=differs
		fi
		[ "$(result_of "$n")" = "$(result_of "$m")" ] || verdict=differs
	fi
	{
		flock 9
		printf '%-20s %-11s %-11s %8s %9s   %s\n' "$name" "$(result_of "$n")" \
			"$([ -n "$MNT" ] && result_of "$m" || echo -)" "$(seconds_of "$n")" \
			"$([ -n "$MNT" ] && seconds_of "$m" || echo -)" "$(echo "$text" | head -n 1)"
		if [ -n "$MNT" ] && [ "$(faults - "$n")" = "$(faults - "$m")" ]; then
			faults both "$n"
		else
			faults native "$n"
			[ -z "$MNT" ] || faults mounted "$m"
		fi
		[ "$verdict" != differs ] || [ "$(result_of "$m")" != right ] ||
			echo "$text" | tail -n +2 | head -n "$SHOWN" | cut -c1-200 | sed 's/^/    /'
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$(result_of "$n")" \
			"$([ -n "$MNT" ] && result_of "$m" || echo -)" "$verdict" "$(seconds_of "$n")" \
			"$([ -n "$MNT" ] && seconds_of "$m" || echo -)" >>"$results/frameworks.tsv"
	} 9>"$work/lock"
}

echo "$($PYTHON --version 2>&1), $JOBS at a time, limit $IN_ALL s in all"
printf '%-20s %-11s %-11s %8s %9s   %s\n' program native mounted "native s" "mounted s" compared
late=()
busy=0
start() # NAME
{
	if [ "$SECONDS" -ge "$IN_ALL" ]; then
		late+=("$1")
		return
	fi
	while [ "$busy" -ge "$JOBS" ]; do
		settle
	done
	both "$1" &
	running+=($!)
	busy=$((busy + 1))
}
running=()
settle() # waits for one of the running, which is never the server
{
	local p q
	local -a rest=()
	wait -n -p p "${running[@]}"
	for q in "${running[@]}"; do
		[ "$q" = "${p:-}" ] || rest+=("$q")
	done
	running=("${rest[@]}")
	busy=${#running[@]}
}
for n in "${chosen[@]}"; do
	[ "$(of "$n" alone no)" = yes ] || start "$n"
done
while [ "$busy" -gt 0 ]; do
	settle
done
for n in "${chosen[@]}"; do
	[ "$(of "$n" alone no)" = yes ] || continue
	start "$n"
	while [ "$busy" -gt 0 ]; do
		settle
	done
done
[ ${#late[@]} = 0 ] || echo "not run, no time was left: ${late[*]}"

bad=$(awk -F '\t' '$4 == "differs"' "$results/frameworks.tsv" | wc -l)
native_bad=$(awk -F '\t' '$2 != "right" && $2 != "skipped"' "$results/frameworks.tsv" | wc -l)
if [ -n "$MNT" ]; then
	for ((i = 0; i < 100; i++)); do
		[ -s "$MNT/gpu0/sessions" ] || break
		sleep 0.1
	done
	if [ -s "$MNT/gpu0/sessions" ]; then
		echo "sessions are left: $(cat "$MNT/gpu0/sessions")"
		bad=$((bad + 1))
	fi
fi
alike=$(awk -F '\t' '$3 == "right" && $4 == "same"' "$results/frameworks.tsv" | wc -l)
echo "$alike of ${#chosen[@]} programs right and the same through the mount, $bad differ," \
	"$native_bad not right natively, ${#late[@]} not run, $SECONDS s"
[ "$bad" = 0 ] && [ "$native_bad" = 0 ] && [ ${#late[@]} = 0 ]
