#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sharpens a photo (PNG, JPEG, or any format that decodebin reads) with an unsharp mask and writes a PNG. Does not
# change alpha.
#   GST_PLUGIN_PATH=build/gst examples/recipes/unsharp-photo.sh PHOTO OUT.png
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
picture=$(uri "$1")
save "$2" launch -q uridecodebin uri="$picture" "${video[@]}" ! videoconvert ! \
  cudaconvolve preset=unsharp ! videoconvert ! pngenc snapshot=true ! filesink location="$out"
