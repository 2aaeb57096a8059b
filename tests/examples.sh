#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs one of the examples on a short synthetic input, and decodes what it wrote:  tests/examples.sh quickstart | RECIPE
# Needs a finished build in BUILD_DIR (build).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=$(realpath -m "${BUILD_DIR:-$root/build}")
export BUILD_DIR GST_PLUGIN_PATH=$BUILD_DIR/gst INSTALL=0 FRAMES=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# frames_of FILE: how many frames decoding gives.
frames_of() {
  gst-launch-1.0 -v filesrc location="$1" ! decodebin ! identity silent=false ! fakesink silent=true | grep -c ': last-message = chain '
}
expect() {  # what expected found
  if [[ $2 != "$3" ]]; then
    echo "$1: expected $2, found $3" >&2
    exit 1
  fi
}
source=(videotestsrc num-buffers="$FRAMES" ! 'video/x-raw,format=I420,width=161,height=121')

case $1 in
  quickstart)
    "$root/examples/quickstart.sh" '' "$work/an out" | tee "$work/said"
    grep -qE "^frames +$FRAMES$" "$work/said"
    grep -qE '^backend +(cpu|cuda)$' "$work/said"
    expect 'frames of motion.mkv' "$FRAMES" "$(frames_of "$work/an out/motion.mkv")"
    expect 'frames of summary.png' 1 "$(frames_of "$work/an out/summary.png")"
    python3 -c 'import json, sys; print(*(json.loads(line)["event"] for line in sys.stdin))' <"$work/an out/motion.jsonl" | grep -q '^begin motion .*motion'
    ;;
  *-photo)
    for format in png jpeg; do
      gst-launch-1.0 -q "${source[@]}" ! videoconvert ! "${format}enc" snapshot=true ! filesink location="$work/in.$format"
      "$root/examples/recipes/$1.sh" "$work/in.$format" "$work/out" | tee "$work/said"
      case $1 in
        luma-histogram-*) expect 'bins' 256 "$(wc -l <"$work/out")" ;;
        integral-table-*)
          expect 'bytes' $((333 * 251 * 4)) "$(stat -c %s "$work/out")"
          gst-launch-1.0 -q filesrc location="$work/in.$format" ! decodebin ! videoconvert ! videoscale ! \
            video/x-raw,format=GRAY16_LE,width=333,height=251 ! filesink location="$work/raw"
          # Rows of 333 samples are padded to 668 bytes.
          od -An -v -tu2 -w668 "$work/raw" | awk -v last="$(tail -1 "$work/said")" '
            { for (i = 1; i <= 333; ++i) sum += $i }
            END { if (last / sum < 1 - 1e-6 || last / sum > 1 + 1e-6) { print "the sum is " sum ", not " last; exit 1 } }'
          ;;
        *) expect "frames of $1 of a $format" 1 "$(frames_of "$work/out")" ;;
      esac
    done
    ;;
  *)
    gst-launch-1.0 -q "${source[@]}" ! jpegenc ! avimux ! filesink location="$work/in.avi"
    "$root/examples/recipes/$1.sh" "$work/in.avi" "$work/out.mkv"
    expect "frames of $1" "$FRAMES" "$(frames_of "$work/out.mkv")"
    ;;
esac
