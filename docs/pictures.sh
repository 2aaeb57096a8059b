#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the pictures of the documentation with the elements themselves: docs/pictures.sh [build folder] [MEDIA]
# MEDIA, a folder with photos/ and vtest.avi (the examples/data of Debian's opencv-doc), is for the pictures of
# motion.md and scenes.md and for report.png.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export GST_PLUGIN_PATH="$PWD/$build/gst"

# A scene with edges, fine detail and flat areas, from GStreamer's test sources.
scene="videotestsrc num-buffers=1 pattern=smpte ! video/x-raw,format=RGB,width=320,height=240"
detail="videotestsrc num-buffers=1 pattern=circular ! video/x-raw,format=RGB,width=140,height=140"

# panels OUTPUT ELEMENTS… : shows the scene, and next to it the scene after each of the ELEMENTS. Keeps the last frame.
panels() {
  local output=$1 pads='' branches='t. ! queue ! wall.sink_0' i=0
  shift
  for elements in "$@"; do
    i=$((i + 1))
    pads+=" sink_$i::xpos=$((i * 324))"
    branches+=" t. ! queue ! $elements ! wall.sink_$i"
  done
  # shellcheck disable=SC2086
  gst-launch-1.0 -q compositor name=input background=black sink_1::xpos=90 sink_1::ypos=16 ! tee name=t $scene ! \
    input.sink_0 $detail ! input.sink_1 \
    compositor name=wall background=white $pads ! videoconvert ! video/x-raw,format=RGB ! pngenc ! \
    multifilesink location="$output" $branches
  echo "$output"
}

panels docs/elements/cudagaussian.png "cudagaussian kernel-size=7" "cudagaussian kernel-size=31"
panels docs/elements/cudaconvolve.png "cudaconvolve preset=unsharp" "cudaconvolve preset=gradient"
panels docs/elements/cudaintegral.png "cudaintegral output=box-mean radius=8" "cudaintegral output=deviation radius=2" \
  "cudaintegral output=threshold radius=12 sensitivity=0.05"
# Blurred, so that there are values between the values of the bars.
histogram='cudagaussian kernel-size=63 ! cudahistogram overlay=true overlay-log=true overlay-position=8,120,304,112'
panels docs/elements/cudahistogram.png "$histogram channels=components" "$histogram equalize=true"
# A moving ball next to noise, which the last panel masks out.
scene=${scene/num-buffers=1/num-buffers=12}
detail="videotestsrc num-buffers=12 pattern=ball ! video/x-raw,format=RGB,width=140,height=140"
panels docs/elements/cudadiff.png "cudadiff interval=4" \
  "cudadiff interval=4 cell-size=10 output=overlay mask-regions=240,180,80,60"

# A wall of test pictures with a ball blended over it. Next to it a gradient over bars, with each operator.
still() { echo "videotestsrc num-buffers=1 pattern=$1 ${*:4} ! video/x-raw,format=RGB,width=$2,height=$3"; }
wall='' operators='' i=0
for pattern in smpte circular gamut pinwheel spokes gradient colors chroma-zone-plate smpte75 checkers-8 zone-plate \
  smpte100; do
  wall+=" $(still $pattern 149 101 kx2=20 ky2=20 kt=1) ! wall.sink_$i"
  i=$((i + 1))
done
i=0
for operator in source over add subtract multiply screen difference min max average; do
  operators+=" cudablend name=o$i sink_1::operator=$operator sink_1::alpha=0.8 sink_1::xpos=20 sink_1::ypos=10
    ! operators.sink_$i $(still smpte75 120 76) ! o$i.sink_0 $(still gradient 80 56) ! o$i.sink_1"
  i=$((i + 1))
done
# shellcheck disable=SC2046,SC2086
gst-launch-1.0 -q cudablend name=all background=white sink_1::xpos=490 ! video/x-raw,format=RGB,width=980,height=320 ! \
  pngenc ! filesink location=docs/elements/cudablend.png \
  cudablend name=fused sink_1::operator=average sink_1::alpha=0.65 sink_1::key=first-pixel sink_1::key-softness=200 \
  sink_1::width=486 sink_1::height=320 ! video/x-raw,format=RGB ! all.sink_0 \
  cudablend name=wall layout=grid columns=4 gap=3 background=white ! video/x-raw,format=RGB,width=486,height=320 ! \
  fused.sink_0 $wall $(still ball 90 60 background-color=0xff204060 foreground-color=0xffffd040) ! fused.sink_1 \
  cudablend name=operators layout=grid columns=4 gap=3 background=white ! \
  video/x-raw,format=RGB,width=490,height=320 ! all.sink_1 $operators
echo docs/elements/cudablend.png

if [[ ${2:-} ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  examples/recipes/privacy-blur.sh "$2/vtest.avi" "$work/hidden.mkv"
  docs/motion_pictures.py "$2" "$work/hidden.mkv"
  docs/scene_pictures.py "$2"
  docs/report_picture.py "$2"
  # The wall of motion-alarm-service, after the people came: two cameras, a test picture, and one that is lost.
  media=$(realpath "$2")
  cat >"$work/cameras.toml" <<END
camera.street = {uri = "$media/vtest.avi", cudadiff = {preset = "outdoor", output = "overlay"}}
camera.path = {uri = "$media/vtest.avi", cudadiff = {preset = "indoor", output = "overlay"}}
camera.test = {uri = "test", cudadiff = {output = "overlay"}}
camera.yard = {title = "Yard", uri = "rtsp://127.0.0.1:9/"}
[wall]
width = 640
height = 480
fps = 2
sink = "videoconvert ! video/x-raw,format=RGB ! pngenc ! multifilesink max-files=1 location=$work/wall.png"
END
  timeout 30 /usr/bin/python3 examples/motion-alarm-service/motion_alarm_service.py "$work/cameras.toml" 2>/dev/null ||
    true
  /usr/bin/python3 \
    -c 'import sys; from PIL import Image; Image.open(sys.argv[1]).quantize(128).save("docs/wall.png", optimize=True)' \
    "$work/wall.png"
  echo docs/wall.png
fi
