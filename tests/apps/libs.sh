#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where NVIDIA's libraries are that programs of the list name in its fourth column: in the toolkit, or among
# the packages of a Python that has them.
#
#     libs.sh TOOLKIT missing       the programs whose libraries are not here
#     libs.sh TOOLKIT flags NAME    what the compiler needs for a program
set -u
cuda=$1
list=$(dirname "$0")/list
declare -A header=([cublas]=cublas_v2.h [cublasLt]=cublasLt.h [cufft]=cufft.h [cusolver]=cusolverDn.h
	[cusparse]=cusparse.h [curand]=curand.h
	[cudnn]=cudnn.h [nccl]=nccl.h [nvrtc]=nvrtc.h [nvJitLink]=nvJitLink.h)
roots=
find_in() # ROOT LIBRARY: prints "INCLUDE LIBRARY-FILE" when both are there
{
	local dir file
	for dir in "$1/lib64" "$1/lib"; do
		for file in "$dir/lib$2.so" "$dir/lib$2.so".[0-9]*; do
			[ -e "$file" ] && [ -e "$1/include/${header[$2]:-$2.h}" ] &&
				echo "$1/include $file" && return
		done
	done
	return 1
}
find_library() # LIBRARY
{
	local r package
	find_in "$cuda" "$1" && return
	[ -n "$roots" ] || \
		roots=$(python3 -c 'import nvidia; [print(p) for p in nvidia.__path__]' 2>/dev/null ||
			echo /nonexistent)
	for r in $roots; do
		for package in "$r"/*/; do
			find_in "${package%/}" "$1" && return
		done
	done
	return 1
}
case $2 in
missing)
	while read -r name _ _ libs; do
		for l in ${libs//,/ }; do
			find_library "$l" >/dev/null || { echo "$name"; break; }
		done
	done < <(sed 's/#.*//' "$list")
	;;
flags)
	for l in $(sed -n "s/^$3  *[a-z,][a-z,]*  *[a-z][a-z]*  *\([A-Za-z,]*\).*/\1/p" "$list" | tr ',' ' ')
	do
		read -r include file < <(find_library "$l")
		[ "$include" = "$cuda/include" ] || printf -- '-I%s ' "$include"
		printf -- '-L%s -l:%s -Xlinker -rpath,%s ' "${file%/*}" "${file##*/}" "${file%/*}"
	done
	;;
esac
