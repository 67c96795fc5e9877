#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# umount while a program uses the mount fails and names the program, which goes on; --lazy takes the mount
# away and the program still goes on; the daemon ends after it.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

start_program user hold
expect user 20 ready
"$bin/scudafs" umount "$mnt" 2>"$work/err" && fail "a busy mount was taken away"
contains "$work/err" "${pid[user]} (hold)" || fail "the user is not named: $(cat "$work/err")"
run_program small | grep -q right || fail "the mount does not work after the refusal"
"$bin/scudafs" umount --lazy "$mnt" || fail "umount --lazy"
mountpoint -q "$mnt" && fail "the mount is still there"
tell user
expect user 10 right
within 5 no_daemon || fail "the daemon did not end after its last user"
within 5 no_sessions || fail "a session is left"
