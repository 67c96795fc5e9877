#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that closes our descriptors and opens files of its own in their place keeps those as they are.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program closes "$work" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
contains "$work/said" '^right' || fail "$(cat "$work/said")"
