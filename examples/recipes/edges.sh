#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Draws the edges of a video, white on black: the magnitude of the gradient, with a little blur first so that grain makes no edges.
#   GST_PLUGIN_PATH=build/gst examples/recipes/edges.sh CLIP OUT.mkv
set -euo pipefail
gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! video/x-raw,format=GRAY8 ! queue ! \
  cudagaussian sigma=1.2 kernel-size=7 ! cudaconvolve preset=gradient ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$2"
