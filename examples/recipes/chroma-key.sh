#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Chroma key: puts a clip with a green screen over another clip or over a still picture. Writes motion JPEG in Matroska,
# 1280×720.
#   GST_PLUGIN_PATH=build/gst examples/recipes/chroma-key.sh GREENSCREEN OUT.mkv BACKGROUND [0xRRGGBB]
# Pixels near the key colour (0x00ff00) become transparent. Pixels that differ slightly more become partly transparent,
# for soft edges.
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 3 4 "$@"
clip=$(uri "$1")
background=$(uri "$3") color=${4:-0x00ff00}
[[ $color =~ ^0x[0-9A-Fa-f]{6}$ ]] || misuse "$color is not a colour such as 0x00ff00"
box='width=1280 height=720' pads=()
for property in $box sizing-policy=fill; do pads+=("sink_0::$property" "sink_1::$property"); done
save "$2" launch -q cudablend name=mix background=black "${pads[@]}" sink_0::repeat-after-eos=true \
  sink_1::key=color sink_1::key-color="$color" sink_1::key-tolerance=60 sink_1::key-softness=60 ! \
  video/x-raw,format=I420,width=1280,height=720 ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out" \
  uridecodebin uri="$background" "${video[@]}" ! videoconvert ! queue ! mix.sink_0 \
  uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! mix.sink_1
