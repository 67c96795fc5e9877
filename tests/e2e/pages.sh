#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking unix
# Large copies whose records lie anywhere in a page: each batch is one request of the kernel's.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program pages >"$work/pages.out" 2>&1 || fail "pages: $(cat "$work/pages.out")"
contains "$work/pages.out" right || fail "pages did not say right: $(cat "$work/pages.out")"
