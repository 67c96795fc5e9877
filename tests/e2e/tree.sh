#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tree: every file that it must have, in its format, readable, not writable; folders list without the
# server.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

value() # FILE REGEX: one line, matching all of it
{
	local file=$mnt/$1 text
	[ -f "$file" ] || fail "there is no $1"
	text=$(cat "$file") || fail "$1 cannot be read"
	[ "$(wc -l <"$file")" = 1 ] || fail "$1 has not one line"
	[[ $text =~ ^($2)$ ]] || fail "$1 is '$text'"
	[ "$(stat -c %a "$file")" = 444 ] || fail "$1 has mode $(stat -c %a "$file")"
}
number='0|[1-9][0-9]*'
value version '[0-9]+\.[0-9]+\.[0-9]+.*'
value status ready
value gpu0/name '.+'
value gpu0/uuid 'GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
value gpu0/compute_capability '[0-9]+\.[0-9]'
value gpu0/multiprocessors "$number"
value gpu0/cuda_version '[0-9]+\.[0-9]'
value gpu0/server '.+'
for file in total used free; do
	value gpu0/memory/$file "$number"
done
for file in pci_bus_id:'[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-f]' driver_version:'.+'; do
	[ ! -e "$mnt/gpu0/${file%%:*}" ] || value "gpu0/${file%%:*}" "${file#*:}"
done
# What only NVML knows is there where it is known: numbers in their units, within what a card can have.
between() # FILE LEAST MOST
{
	[ -e "$mnt/$1" ] || return 0
	value "$1" "$number"
	[ "$(cat "$mnt/$1")" -ge "$2" ] && [ "$(cat "$mnt/$1")" -le "$3" ] || fail "$1 is $(cat "$mnt/$1")"
}
for file in gpu memory encoder decoder; do
	between gpu0/utilization/$file 0 100
done
for file in gpu memory; do
	between gpu0/temperature/$file 1000 150000
done
for file in usage limit; do
	between gpu0/power/$file 100000 2000000000
done
between gpu0/power/energy 0 9223372036854775807
for file in sm memory max_sm max_memory; do
	between gpu0/clocks/$file 1000000 100000000000
done
between gpu0/pcie/generation 1 9
between gpu0/pcie/width 1 32
for file in pcie/replay ecc/corrected ecc/uncorrected minor_number; do
	between gpu0/$file 0 4294967295
done
for file in serial:'[0-9A-Za-z]+' vbios_version:'[0-9A-Za-z.]+' ecc/mode:'enabled|disabled' \
	mode:'shared|exclusive|prohibited'
do
	[ ! -e "$mnt/gpu0/${file%%:*}" ] || value "gpu0/${file%%:*}" "${file#*:}"
done
[ ! -e "$mnt/gpu0/sessions" ] || ! grep -vqE '^[0-9]+ ([0-9]+|-) .+$' "$mnt/gpu0/sessions" ||
	fail "sessions: $(cat "$mnt/gpu0/sessions")"
if [ "$driver" = soft ]; then
	[ "$(cat "$mnt/gpu0/mode")" = shared ] && [ "$(cat "$mnt/gpu0/minor_number")" = 0 ] ||
		fail "mode or minor_number"
	for file in temperature power clocks pcie ecc utilization serial; do
		[ ! -e "$mnt/gpu0/$file" ] || fail "a software device has no $file"
	done
else
	for file in utilization/gpu temperature/gpu power/usage clocks/sm serial sessions; do
		[ -e "$mnt/gpu0/$file" ] || echo "there is no $file"
	done
fi
total=$(cat "$mnt/gpu0/memory/total")
[ "$total" = "$(($(cat "$mnt/gpu0/memory/used") + $(cat "$mnt/gpu0/memory/free")))" ] ||
	fail "used and free are not total"
grep -q '^Model: 	*[^ ]' "$mnt/gpu0/information" || fail "information: $(cat "$mnt/gpu0/information")"
[ "$(readlink -f "$mnt/by-uuid/$(cat "$mnt/gpu0/uuid")")" = "$mnt/gpu0" ] ||
	fail "by-uuid does not lead to gpu0"
[ -d "$mnt/servers" ] && [ -d "$mnt/stats" ] || fail "servers/ or stats/ is missing"
for server_dir in "$mnt"/servers/*; do
	grep -q . "$server_dir/status" || fail "${server_dir##*/} has no status"
	[ "$(cat "$server_dir/tls")" = none ] || fail "tls is '$(cat "$server_dir/tls")'"
done
[ -e "$mnt/ctl" ] || fail "there is no ctl"

# Every file but the session node can be read to its end, in pieces as in one.
while read -r file; do
	at_most 5 cat "$file" >"$work/whole" || fail "$file cannot be read"
	at_most 5 dd if="$file" bs=1 status=none of="$work/pieces" || fail "$file cannot be read in pieces"
	case $file in
	*/stats/* | */memory/* | */utilization/* | */temperature/* | */power/* | */clocks/* | */pcie/*) ;;
	*/sessions* | */rtt_us | */status.json) ;;
	*) cmp -s "$work/whole" "$work/pieces" || fail "$file reads differently in pieces" ;;
	esac
done < <(find "$mnt" -type f ! -name ctl)

# Whatever offset a folder is read from.
run_program folder "$mnt" | grep -qx right || fail "a folder, read from any offset, gives what is not in it"

# Nothing can be made, written or removed.
touch "$mnt/new" 2>/dev/null && fail "a file was made"
mkdir "$mnt/gpu0/new" 2>/dev/null && fail "a folder was made"
rm -f "$mnt/version" 2>/dev/null
[ -e "$mnt/version" ] || fail "a file was removed"
{ echo x >"$mnt/gpu0/name"; } 2>/dev/null && fail "a value was written"
[ "$(ls -d "$mnt"/gpu* | wc -l)" = 1 ] || [ "$driver" != soft ] || fail "more GPUs than one"

# Memory that a program holds shows, and shows no more after it.
free_before=$(cat "$mnt/gpu0/memory/free")
start_program holder hold $((256 << 20))
expect holder 20 ready
less()
{
	[ "$(cat "$mnt/gpu0/memory/free")" -le $((free_before - (256 << 20))) ]
}
within 5 less || fail "256 MiB in use do not show: $free_before, $(cat "$mnt/gpu0/memory/free")"
tell holder
expect holder 10 right
back()
{
	[ "$(cat "$mnt/gpu0/memory/free")" -ge $((free_before - (16 << 20))) ]
}
within 5 back || fail "memory is not free again: $free_before, $(cat "$mnt/gpu0/memory/free")"
