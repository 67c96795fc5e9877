#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking unix
# fork after cuInit: whatever becomes of the child, the parent's session goes on.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program forks | grep -q right || fail "the parent did not go on"
within 3 no_sessions || fail "a session is left: $(sessions)"
