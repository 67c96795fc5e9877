#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs of conformance/ that a software device as it comes does not run: two devices, clusters of
# blocks, the occupancy of a capability. On a GPU machine they are among the others.
# limit: 300
export SCUDAFS_SOFT_DEVICES=2 SCUDAFS_SOFT_CAPABILITY=9.0 SCUDAFS_SOFT_MEMORY=${SCUDAFS_SOFT_MEMORY:-1G}
[ $# -gt 0 ] || set -- peers clusters occupancy
. "$(dirname "$0")/conformance.sh"
