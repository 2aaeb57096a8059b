#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes the absolute difference of two pictures as a PNG. Both are scaled to WIDTHxHEIGHT (100×100).
#   GST_PLUGIN_PATH=build/gst examples/recipes/difference-photo.sh PICTURE_A OUT.png [PICTURE_B] [WIDTHxHEIGHT]
# Without PICTURE_B, it writes the difference of A and a strongly blurred A.
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 4 "$@"
size "${4:-100x100}"
first=$(uri "$1")
second=$(uri "${3:-$1}")
if [[ -n ${3:-} ]]; then filter=(identity); else filter=(cudagaussian kernel-size=15); fi
work=$(mktemp -d /tmp/XXXXXXXXXX)  # not in TMPDIR, whose name may have special characters
temporaries+=("$work")
picture() {  # URI NUMBER FILTER…: writes the picture as frame NUMBER of a sequence
  launch -q uridecodebin uri="$1" "${video[@]}" ! videoconvert ! videoscale ! \
    "video/x-raw,format=RGB,width=$width,height=$height" ! \
    "${@:3}" ! pngenc snapshot=true ! filesink location="$work/$2.png"
}
difference() {
  picture "$first" 0 identity && picture "$second" 1 "${filter[@]}" &&
    launch -q multifilesrc location="$work/%d.png" caps=image/png,framerate=1/1 ! pngdec ! \
      cudadiff output=difference mode=absolute ! pngenc ! multifilesink location="$work/difference-%d.png" &&
    cat "$work/difference-1.png" >"$out"
}
save "$2" difference
