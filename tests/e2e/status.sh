#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scudafs status in words and as JSON, with its exit status.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount

"$bin/scudafs" status "$mnt" >"$work/out" || fail "status"
contains "$work/out" "$address" || fail "the server is not named: $(cat "$work/out")"
contains "$work/out" "gpu0  $(cat "$mnt/gpu0/name")" || fail "gpu0 is not named: $(cat "$work/out")"
"$bin/scudafs" status --json "$mnt" | python3 -c '
import json, sys
(mount,) = json.load(sys.stdin)
tree = mount["tree"]
assert mount["status"] == "ready", mount["status"]
assert mount["mount"] == sys.argv[1], mount["mount"]
gpu = tree["gpu0"]
assert gpu["memory"]["total"] >= gpu["memory"]["free"] > 0, gpu["memory"]
assert gpu["uuid"].startswith("GPU-"), gpu["uuid"]
assert len(tree["servers"]) == 1
' "$mnt" || fail "the JSON is not right"
"$bin/scudafs" status "$work" 2>/dev/null && fail "status of a folder that is no mount"
exit 0
