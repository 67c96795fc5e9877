#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking unix
# limit: 120
# A program that posts more than the queues hold while its GPU is busy for longer than the heartbeat's
# patience: it waits, and nothing is lost.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program behind | grep -q '^right' || fail "$(tail -n 3 "$work"/*.err 2>/dev/null)"
within 10 no_sessions || fail "sessions are left: $(sessions)"
