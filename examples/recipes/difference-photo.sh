#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The absolute difference of two pictures as a PNG. They are brought to one size, 100×100 unless WIDTHxHEIGHT says otherwise.
#   GST_PLUGIN_PATH=build/gst examples/recipes/difference-photo.sh PICTURE_A OUT.png [PICTURE_B] [WIDTHxHEIGHT]
# Without PICTURE_B: what of A a strong blur takes away.
set -euo pipefail
size=${4:-100x100}
size=width=${size%x*},height=${size#*x}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
picture() {  # FILE NUMBER [FILTER…]: as the NUMBERth frame of a sequence
  local filter=("${@:3}")
  gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! videoscale ! "video/x-raw,format=RGB,$size" ! \
    "${filter[@]:-identity}" ! pngenc snapshot=true ! filesink location="$work/$2.png"
}
picture "$1" 0
if [[ -n ${3:-} ]]; then picture "$3" 1; else picture "$1" 1 cudagaussian kernel-size=15; fi
# Of two frames the second is the difference; the file of the first is written over.
gst-launch-1.0 -q multifilesrc location="$work/%d.png" caps=image/png,framerate=1/1 ! pngdec ! \
  cudadiff output=difference mode=absolute ! pngenc ! multifilesink location="$2"
