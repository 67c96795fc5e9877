#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse unix
# Pinned memory is shared with forked children, as natively, and they do not disturb what is pinned later.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program pinned | grep -q right || fail "pinned memory and children"
within 3 no_sessions || fail "a session is left: $(sessions)"
