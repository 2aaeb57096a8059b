#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Shows a small video in the corner of a large one. Writes motion JPEG in Matroska, 1280×720.
#   GST_PLUGIN_PATH=build/gst examples/recipes/picture-in-picture.sh CLIP OUT.mkv [SMALL_CLIP]
# Without a SMALL_CLIP, the small video shows the edges of CLIP.
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 3 "$@"
clip=$(uri "$1")
if [[ -n ${3:-} ]]; then
  small=$(uri "$3") filter=(identity)
else
  small=$clip filter=(cudaconvolve preset=gradient)
fi
save "$2" launch -q cudablend name=mix background=black sink_0::width=1280 sink_0::height=720 \
  sink_0::sizing-policy=keep-aspect-ratio \
  sink_1::xpos=848 sink_1::ypos=472 sink_1::width=400 sink_1::height=216 sink_1::sizing-policy=fill \
  sink_1::alpha=0.9 ! \
  video/x-raw,format=I420,width=1280,height=720 ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out" \
  uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! mix.sink_0 \
  uridecodebin uri="$small" "${video[@]}" ! videoconvert ! "${filter[@]}" ! queue ! mix.sink_1
