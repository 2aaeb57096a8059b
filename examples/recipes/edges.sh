#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Draws the edges of a video, white on black: the gradient magnitude. A slight blur removes grain, which would show as
# edges.
#   GST_PLUGIN_PATH=build/gst examples/recipes/edges.sh CLIP OUT.mkv
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
clip=$(uri "$1")
save "$2" launch -q uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! video/x-raw,format=GRAY8 ! queue ! \
  cudagaussian sigma=1.2 kernel-size=7 ! cudaconvolve preset=gradient ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out"
