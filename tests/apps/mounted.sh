#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# The same CUDA programs through server, mount and shim, unmodified.
# limit: 900
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_apps through_mount "$work/mounted" "$@" || fail "see above"
within 10 no_sessions || fail "sessions are left when all programs have ended"
