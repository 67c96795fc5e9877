# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Signals to children of this shell, and to nobody else: bash lets go of a child as soon as it has ended, and
# then its number may become another test's process.

ours() # PID: a child of this shell
{
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	stat=${stat##*) }
	stat=${stat#* }
	[ "${stat%% *}" = $$ ]
}

end() # SIGNAL PID: of a child, if it is there still
{
	ours "$2" && kill "-$1" "$2"
}
