#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sharpens a photo (PNG, JPEG, or whatever decodebin reads; an alpha channel stays as it is) with an unsharp mask, and writes a PNG.
#   GST_PLUGIN_PATH=build/gst examples/recipes/unsharp-photo.sh PHOTO OUT.png
set -euo pipefail
gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! \
  cudaconvolve preset=unsharp ! videoconvert ! pngenc snapshot=true ! filesink location="$2"
