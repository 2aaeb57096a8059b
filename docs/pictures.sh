#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the pictures of the documentation with the elements themselves: docs/pictures.sh [build folder]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export GST_PLUGIN_PATH="$PWD/$build/gst"

# A scene with edges, fine detail and flat parts, from GStreamer's test sources.
scene="videotestsrc num-buffers=1 pattern=smpte ! video/x-raw,format=RGB,width=320,height=240"
detail="videotestsrc num-buffers=1 pattern=circular ! video/x-raw,format=RGB,width=140,height=140"

# panels OUTPUT ELEMENTS… : the scene, and beside it the scene through each of the ELEMENTS; the last frame of all.
panels() {
  local output=$1 pads='' branches='t. ! queue ! wall.sink_0' i=0
  shift
  for elements in "$@"; do
    i=$((i + 1))
    pads+=" sink_$i::xpos=$((i * 324))"
    branches+=" t. ! queue ! $elements ! wall.sink_$i"
  done
  # shellcheck disable=SC2086
  gst-launch-1.0 -q compositor name=input background=black sink_1::xpos=90 sink_1::ypos=16 ! tee name=t $scene ! input.sink_0 $detail ! input.sink_1 \
    compositor name=wall background=white $pads ! videoconvert ! video/x-raw,format=RGB ! pngenc ! multifilesink location="$output" $branches
  echo "$output"
}

panels docs/elements/cudagaussian.png "cudagaussian kernel-size=7" "cudagaussian kernel-size=31"
panels docs/elements/cudaconvolve.png "cudaconvolve preset=unsharp" "cudaconvolve preset=gradient"
panels docs/elements/cudaintegral.png "cudaintegral output=box-mean radius=8" "cudaintegral output=deviation radius=2" \
  "cudaintegral output=threshold radius=12 sensitivity=0.05"
# Blurred, to have values between those of the bars.
panels docs/elements/cudahistogram.png "cudagaussian kernel-size=63 ! cudahistogram channels=components overlay=true overlay-log=true overlay-position=8,120,304,112" \
  "cudagaussian kernel-size=63 ! cudahistogram equalize=true overlay=true overlay-log=true overlay-position=8,120,304,112"
# A ball that moves, beside noise that is masked out in the end.
scene=${scene/num-buffers=1/num-buffers=12}
detail="videotestsrc num-buffers=12 pattern=ball ! video/x-raw,format=RGB,width=140,height=140"
panels docs/elements/cudadiff.png "cudadiff interval=4" "cudadiff interval=4 cell-size=10 output=overlay mask-regions=240,180,80,60"

# What examples/quickstart.sh shows of its synthetic scene.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
examples/motion_report.py --out="$work" >/dev/null
cp "$work/summary.png" docs/quickstart.png
