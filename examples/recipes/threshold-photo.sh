#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a photographed page black on white, however unevenly it was lit: Bradley's adaptive threshold on summed-area tables.
#   GST_PLUGIN_PATH=build/gst examples/recipes/threshold-photo.sh PAGE OUT.png
set -euo pipefail
gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! video/x-raw,format=GRAY8 ! \
  cudaintegral output=threshold radius=20 sensitivity=0.15 ! pngenc snapshot=true ! filesink location="$2"
