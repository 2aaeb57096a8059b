#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a photo wall: 36 pictures of a folder, of any sizes and formats, in 6 columns and 6 rows. If there are fewer
# pictures, they repeat. One more PICTURE is blended over the wall: pixels like its first pixel are transparent, the
# others are 0.35·wall + 0.65·picture. Writes a PNG.
#   GST_PLUGIN_PATH=build/gst examples/recipes/photo-wall.sh FOLDER OUT.png [PICTURE] [WIDTHxHEIGHT]
# PICTURE: the folder's first picture by default. WIDTHxHEIGHT: any size (1283x857).
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 4 "$@"
shopt -s nullglob nocaseglob
pictures=("$1"/*.{jpg,jpeg,png})
if ((${#pictures[@]} == 0)); then fail "there is no .jpg or .png in $1"; fi
size "${4:-1283x857}"
picture=$(uri "${3:-${pictures[0]}}")
still=(! videoconvert ! imagefreeze num-buffers=1 ! 'video/x-raw,framerate=1/1' !)
wall=() fill=()
for ((i = 0; i < 36; ++i)); do
  uri=$(uri "${pictures[i % ${#pictures[@]}]}")
  wall+=(uridecodebin uri="$uri" "${video[@]}" "${still[@]}" "wall.sink_$i")
  fill+=("sink_$i::sizing-policy=fill")
done
save "$2" launch -q cudablend name=fused sink_1::width="$width" sink_1::height="$height" \
  sink_1::sizing-policy=keep-aspect-ratio \
  sink_1::operator=average sink_1::alpha=0.65 sink_1::key=first-pixel sink_1::key-tolerance=12 ! \
  "video/x-raw,width=$width,height=$height" ! videoconvert ! video/x-raw,format=RGB ! pngenc snapshot=true ! \
  filesink location="$out" \
  cudablend name=wall layout=grid columns=6 rows=6 gap=3 background=white interpolation=area "${fill[@]}" ! \
  "video/x-raw,format=RGB,width=$width,height=$height" ! fused.sink_0 \
  uridecodebin uri="$picture" "${video[@]}" "${still[@]}" fused.sink_1 "${wall[@]}"
