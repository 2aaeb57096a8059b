#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Cleans up a noisy video: a small Gaussian takes the grain away, an unsharp mask brings the edges back. Motion JPEG in Matroska.
#   GST_PLUGIN_PATH=build/gst examples/recipes/denoise-sharpen.sh CLIP OUT.mkv
set -euo pipefail
gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! queue ! \
  cudagaussian sigma=0.8 kernel-size=5 ! cudaconvolve preset=unsharp ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$2"
