#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gathers what a GPU machine without a package manager needs to build us: headers and libraries of our
# dependencies, unpacked from this machine's own packages into .carry/root, and the measuring programs that
# lie beside the checkout into .carry/shared. .carry/ is ignored by git locally. Run it once before
# tests/device/run.sh is taken to such a machine. The target may have a newer libc: shared objects linked
# here run there, not the other way round.
set -eu
cd "$(dirname "$0")/../.."
dir=.carry
limit=$((40 << 10)) # KiB that we are ready to carry
packages="libfuse3-dev libfuse3-3 fuse3 libmsgpack-dev libmsgpackc2 check libsubunit-dev libsubunit0
	liblz4-dev liblz4-1 libzstd-dev libzstd1 libjansson-dev libjansson4 libssl-dev libssl3"

exclude=$(git rev-parse --git-path info/exclude)
grep -qx "/$dir/" "$exclude" 2>/dev/null || echo "/$dir/" >>"$exclude"
mkdir -p $dir/deb $dir/root $dir/shared

# A package that this machine does not know is named and left out: the build there says what it misses.
for p in $packages; do
	ls $dir/deb/"${p}"_*.deb >/dev/null 2>&1 && continue
	(cd $dir/deb && apt-get download -q "$p" >/dev/null 2>&1) || echo "carry: no package $p" >&2
done
for f in $dir/deb/*.deb; do
	dpkg -x "$f" $dir/root
done

# Only what compiling and linking needs stays; the packages themselves need not travel.
mv $dir/deb "$(mktemp -d)/"
rm -rf $dir/root/usr/share $dir/root/etc $dir/root/lib/udev $dir/root/lib/modules-load.d
find $dir/root -name '*.a' -size +4M -delete

for d in bench conformance; do
	[ -d ../shared/$d ] && cp -r ../shared/$d $dir/shared/
done
size=$(du -sk $dir | cut -f1)
echo "carry: $((size >> 10)) MiB in $dir"
[ "$size" -lt $limit ] || { echo "carry: more than $((limit >> 10)) MiB" >&2; exit 1; }
