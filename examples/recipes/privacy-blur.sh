#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Blurs whoever moves, and nothing else: cudadiff attaches a region of interest for each region in motion, cudagaussian blurs those.
# Regions of a detector work the same way: name their type in roi-type (face).
#   GST_PLUGIN_PATH=build/gst examples/recipes/privacy-blur.sh CLIP OUT.mkv
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
clip=$(uri "$1")
save "$2" launch -q uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! \
  cudadiff reference=mog2 output=passthrough cell-threshold=0.1 ! cudagaussian region=roi roi-type=motion kernel-size=41 ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out"
