#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes the summed-area table of a picture in float32. Any size works; this script scales to 333×251. OUT gets 251 rows
# of 333 floats without padding, in the machine's byte order. Prints the last entry, which is the sum of all pixels. The
# samples are the picture's luma with 16 bits, because raw video has no float formats.
#   GST_PLUGIN_PATH=build/gst examples/recipes/integral-table-photo.sh PICTURE OUT.f32
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 2 "$@"
picture=$(uri "$1")
save "$2" launch -q uridecodebin uri="$picture" "${video[@]}" ! videoconvert ! videoscale ! \
  video/x-raw,format=GRAY16_LE,width=333,height=251 ! cudaintegral ! video/x-integral,format=F32LE,layout=inclusive ! \
  filesink location="$out"
od -An -tf4 -w4 "$2" | tail -1
