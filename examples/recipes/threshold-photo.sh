#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a photographed page black on white, even with uneven light: Bradley's adaptive threshold on summed-area tables.
#   GST_PLUGIN_PATH=build/gst examples/recipes/threshold-photo.sh PAGE OUT.png
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
picture=$(uri "$1")
save "$2" launch -q uridecodebin uri="$picture" "${video[@]}" ! videoconvert ! video/x-raw,format=GRAY8 ! \
  cudaintegral output=threshold radius=20 sensitivity=0.15 ! pngenc snapshot=true ! filesink location="$out"
