#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Shows a video and, next to it, the same video after a filter. Writes motion JPEG in Matroska, 1284×480.
#   GST_PLUGIN_PATH=build/gst examples/recipes/side-by-side.sh CLIP OUT.mkv [FILTER [PROPERTY=VALUE]…]
# FILTER: cudagaussian kernel-size=31 by default. It may consist of several elements with ! between them.
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 99 "$@"
clip=$(uri "$1")
filter=("${@:3}")
if ((${#filter[@]} == 0)); then filter=(cudagaussian kernel-size=31); fi
save "$2" launch -q cudablend name=mix layout=grid columns=2 rows=1 gap=4 background=white \
  sink_0::sizing-policy=keep-aspect-ratio sink_1::sizing-policy=keep-aspect-ratio ! \
  video/x-raw,format=I420,width=1284,height=480 ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out" \
  uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! tee name=t ! queue ! mix.sink_0 t. ! queue ! \
  "${filter[@]}" ! mix.sink_1
