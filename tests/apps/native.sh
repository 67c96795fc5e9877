#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CUDA programs without the mount: on the software device here, on the real driver where
# SCUDAFS_TEST_NATIVE is empty.
# limit: 900
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
run_apps native "$work/native" "$@" || fail "see above"
