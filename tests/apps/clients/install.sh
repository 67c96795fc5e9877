#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh DIR: CuPy and numba-cuda (which brings cuda.core) with what they need of the toolkit, Taichi,
# Warp, nvidia-ml-py and the header of NVML, from the package index, in a virtual environment in DIR; prints
# its interpreter, for SCUDAFS_TEST_PYTHON. One that is there is used again. Fails, with the reason, where
# there is no network, no pip, or not enough time (INSTALL_SECONDS, 400). Without PyTorch, whose wheels are 4
# GB and more, so without Triton, which imports it.
set -eu -o pipefail
dir=$1
packages=('cupy-cuda13x>=14,<15' 'numba-cuda[cu13]>=0.20,<1' 'nvidia-ml-py>=13.580,<13.581'
	'nvidia-nvml-dev<13.1' 'taichi>=1.7,<1.8' 'warp-lang>=1.11,<1.12')
stamp="$(python3 --version) ${packages[*]}"
if [ "$(cat "$dir/installed" 2>/dev/null)" != "$stamp" ]; then
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	{
		timeout 200 python3 -m venv "$dir/venv" &&
			timeout "${INSTALL_SECONDS:-400}" "$dir/venv/bin/pip" install --quiet --no-input \
				--disable-pip-version-check --timeout 15 --retries 1 "${packages[@]}"
	} >"$dir/log" 2>&1 </dev/null || {
		echo "CuPy, numba-cuda and the others cannot be installed: $(tail -n 1 "$dir/log")" >&2
		exit 1
	}
	echo "$stamp" >"$dir/installed"
fi
echo "$dir/venv/bin/python3"
