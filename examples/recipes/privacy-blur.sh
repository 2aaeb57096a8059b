#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Blurs only what moves: cudadiff attaches a region of interest for each region in motion, and cudagaussian blurs these regions. Regions
# from a detector work the same way: set roi-type to their type (face).
#   GST_PLUGIN_PATH=build/gst examples/recipes/privacy-blur.sh CLIP OUT.mkv
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
clip=$(uri "$1")
save "$2" launch -q uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! \
  cudadiff reference=mog2 output=passthrough cell-threshold=0.1 ! cudagaussian region=roi roi-type=motion kernel-size=41 ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out"
