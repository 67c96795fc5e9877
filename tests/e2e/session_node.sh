#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 180
# The daemon against a fake server: the session node's contract, and every way in which a party can go away
# (tests/relay/run.sh).
exec "$(dirname "$0")/../relay/run.sh" "${B:-build}"
