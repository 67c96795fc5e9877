#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# A program under a timer signal, with several threads that copy at once, and many that come and go.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program interrupted | grep -q whole || fail "the program did not end well"
within 3 no_sessions || fail "a session is left: $(sessions)"
