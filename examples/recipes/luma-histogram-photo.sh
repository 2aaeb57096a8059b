#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes the luma histogram of an RGB photo to OUT.txt, with "value count" on each line. The photo is scaled to
# 1280×1024 pixels.
#   GST_PLUGIN_PATH=build/gst examples/recipes/luma-histogram-photo.sh PHOTO OUT.txt
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
picture=$(uri "$1")
histogram() {
  launch -m uridecodebin uri="$picture" "${video[@]}" ! videoconvert ! videoscale ! \
    video/x-raw,format=RGB,width=1280,height=1024 ! cudahistogram bins=256 luma=bt601 ! fakesink |
    sed -n 's/.*counts[^<]*<\([^>]*\)>.*/\1/p' | tr -dc '0-9,' | tr ',' '\n' |
    awk '{ print NR - 1, $1; pixels += $1 } END { exit pixels != 1280 * 1024 }' >"$out"
}
save "$2" histogram
awk '{ pixels += $2 } END { print pixels " pixels counted" }' "$2"
