#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hides what moves in a clip: cudadiff attaches a region of interest to each moving object, and holds it for a while
# where the object cannot be seen; cudaintegral makes a mosaic (pixelate) or a blur of each region with a margin, near
# and far equally coarse.
#   GST_PLUGIN_PATH=build/gst examples/recipes/privacy-blur.sh CLIP OUT.mkv [pixelate|blur]
# Made for a fixed camera. It cannot promise that nobody is recognised: it knows motion, not people.
# - Somebody who stands still becomes background after about 500 frames (20 s at 25 frames a second), and is shown
#   again; learning-rate sets this.
# - Somebody who is there in the first frame is shown until they move. Where they stood, the ground is hidden for about
#   as long. Cut the start off.
# - Somebody who enters is hidden as soon as enough of them has changed, which may be a few frames late.
# - Small, faint or badly lit people may change too little. A moving camera changes everything. Slow changes of the
#   light hide more than people.
# - Clothes, gait and place remain, and mosaics of many frames tell more than one mosaic. Sound is not in OUT.mkv.
# On vtest.avi of OpenCV, 99.4 % of the 4476 labelled boxes of people are hidden to nine tenths or more; five heads are
# not. Look at the whole result before you publish it. A detector of faces or people works in the place of cudadiff: set
# roi-type to its type.
set -euo pipefail
# shellcheck source=examples/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
arguments 2 3 "$@"
case ${3:-pixelate} in
  pixelate) hide=pixelate ;;
  blur) hide=box-mean ;;
  *) misuse "$3 is neither pixelate nor blur" ;;
esac
clip=$(uri "$1")
save "$2" launch -q uridecodebin uri="$clip" "${video[@]}" ! videoconvert ! queue ! \
  cudadiff reference=mog2 learning-rate=0.0002 output=passthrough cell-size=8 cell-threshold=0.1 region-distance=2 \
  track-hold=2 ! cudaintegral output="$hide" radius=0 region=roi roi-type=motion region-margin=0.25 ! \
  videoconvert ! queue ! jpegenc quality=90 ! matroskamux ! filesink location="$out"
