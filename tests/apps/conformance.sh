#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a real driver answers, call by call: the programs of conformance/ against their golden files, natively
# and through the mount. Lines that begin with "~ " may vary and are left out. On a GPU machine the native
# run proves the golden files.
# limit: 600
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"

golden=$top/tests/apps/conformance/golden
bad=0
# The golden files are an H200's: the software device presents its compute capability.
export SCUDAFS_SOFT_CAPABILITY=9.0

compare() # HOW NAME
{
	local out=$work/$1-$2.txt
	"$1" "$apps/conformance/$2" >"$out" 2>"$out.err" </dev/null || echo "exit status $?" >>"$out"
	grep -v '^~ ' "$out" >"$out.stable"
	if grep -qx 'not supported by this device' "$out"; then
		echo "skipped $2 ($1): not supported"
	elif diff -u "$golden/$2.txt" "$out.stable" >"$out.diff"; then
		echo "ok $2 ($1)"
	else
		echo "FAILED $2 ($1): $(grep -c '^[-+][^-+]' "$out.diff") lines differ"
		grep '^[-+]' "$out.diff" | head -n "${SCUDAFS_TEST_LINES:-40}"
		bad=$((bad + 1))
	fi
}

[ $# -gt 0 ] || set -- $(cd "$golden" && ls *.txt | sed 's/\.txt$//')
if [ "$driver" = soft ]; then
	case " $* " in *" linkcode "*) echo "skipped linkcode: the software device runs PTX only" ;; esac
	set -- $(printf '%s\n' "$@" | grep -vx linkcode)
	[ $# -gt 0 ] || exit 77
fi
for name; do
	compare native "$name"
done
if [ -z "${SCUDAFS_TEST_NO_MOUNT:-}" ]; then
	requires mount
	start_server
	start_mount
	for name; do
		compare through_mount "$name"
	done
	# What the server remembers of images by now must not show.
	case " $* " in *" loading "*) compare through_mount loading ;; esac
fi
[ "$bad" = 0 ] || fail "$bad differ"
