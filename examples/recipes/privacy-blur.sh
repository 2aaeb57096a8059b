#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hides moving objects in a clip. cudadiff attaches a region of interest to each moving object, and keeps the region for
# two seconds after it loses the object. cudaintegral enlarges each region by a margin, and replaces it with a mosaic
# (pixelate) or a blur that is equally coarse for near and far objects.
#   GST_PLUGIN_PATH=build/gst examples/recipes/privacy-blur.sh CLIP OUT.mkv [pixelate|blur]
# The camera must be fixed. The script detects motion, not people, so it cannot guarantee that nobody is recognisable:
# - A person who stands still becomes background after about 500 frames (20 s at 25 frames per second), and is visible
#   again; learning-rate sets this time.
# - A person who is present in the first frame stays visible until they move. The ground where they stood is then hidden
#   for about the same time. Cut off the start of the clip.
# - A person who enters is hidden once enough of their pixels have changed. This may take a few frames.
# - Small, faint or badly lit people may change too few pixels. If the camera moves, every pixel changes. Slow changes
#   of the light hide more than people.
# - Clothes, gait and location stay recognisable, and mosaics of many frames reveal more than a single one. OUT.mkv has
#   no sound.
# In OpenCV's vtest.avi, at least nine tenths of the area are hidden in 99.4 % of the 4476 labelled boxes of people, and
# five heads are visible. Watch the whole result before you publish it. A detector of faces or people can replace
# cudadiff: set roi-type to its type.
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
