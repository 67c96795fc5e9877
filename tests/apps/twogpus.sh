#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs for two devices, natively and through the mount: on two software devices here, on two GPUs
# where there are two.
. "$(dirname "$0")/../e2e/lib.sh"
export SCUDAFS_SOFT_DEVICES=2 SCUDAFS_SOFT_MEMORY=${SCUDAFS_SOFT_MEMORY:-1G}
. "$(dirname "$0")/lib.sh"
[ $# -gt 0 ] || set -- twogpus ipc
run_apps native "$work/native" "$@" || fail "natively: see above"
requires mount
start_server
start_mount
run_apps through_mount "$work/mounted" "$@" || fail "see above"
within 10 no_sessions || fail "sessions are left when all programs have ended"
