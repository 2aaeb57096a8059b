#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Cleans up a noisy video: a small Gaussian removes the grain, and an unsharp mask restores the edges. Writes motion
# JPEG in Matroska.
#   GST_PLUGIN_PATH=build/gst examples/recipes/denoise-sharpen.sh CLIP OUT.mkv
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
clip=$(uri "$1")
save "$2" launch -q uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! \
  cudagaussian sigma=0.8 kernel-size=5 ! cudaconvolve preset=unsharp ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out"
