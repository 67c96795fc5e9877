#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sees to the packages that building, testing and mounting need, on Debian and Ubuntu: installs what is
# missing as root (or with sudo when it asks for no password), else prints the line that does and exits 1. On
# other systems it tells what is needed.
set -eu

# Alternatives, as releases name them differently, are separated by |.
packages="gcc g++ make pkg-config libc6-dev python3 libfuse3-dev fuse3
	libmsgpack-dev|libmsgpack-c-dev libssl-dev libjansson-dev
	liblz4-dev libzstd-dev check libsubunit-dev scdoc procps util-linux"

installed() {
	dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'
}

if ! command -v dpkg-query >/dev/null; then
	echo "Not a Debian system. Needed: gcc, make, pkg-config, python3, libfuse 3, msgpack-c," \
		"OpenSSL 3, jansson, lz4, zstd, check, scdoc." >&2
	exit 0
fi

missing=
for choice in $packages; do
	found=
	for p in $(echo "$choice" | tr '|' ' '); do
		installed "$p" && found=yes
	done
	[ -n "$found" ] || missing="$missing $choice"
done
[ -n "$missing" ] || exit 0

become=
if [ "$(id -u)" != 0 ]; then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		become="sudo -n"
	else
		echo "Some packages are missing. Install them with:" >&2
		echo "  sudo apt-get install $(echo "$missing" | sed 's/|[^ ]*//g; s/^ *//')" >&2
		exit 1
	fi
fi

$become env DEBIAN_FRONTEND=noninteractive apt-get update -q
names=
for choice in $missing; do
	for p in $(echo "$choice" | tr '|' ' '); do
		if apt-cache show "$p" >/dev/null 2>&1; then
			names="$names $p"
			break
		fi
	done
done
# shellcheck disable=SC2086
$become env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $names
