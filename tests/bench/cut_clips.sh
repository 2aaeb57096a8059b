#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Cuts a long clip into 195 short ones of five kinds, and adds five that are no good, for trials of
# examples/motion-scan:
#   tests/bench/cut_clips.sh CLIP FOLDER      (CLIP of 80 seconds such as vtest.avi of Debian's opencv-doc)
# The five: text, half an MP4 (its index is missing), an empty file, sound alone, and a FIFO whose writer never comes.
set -euo pipefail
if (($# != 2)) || [[ ! -f $1 ]]; then
  echo 'usage: tests/bench/cut_clips.sh CLIP FOLDER' >&2
  exit 2
fi
clip=file://$(realpath "$1") folder=$2
mkdir -p "$folder"
cut() {  # KIND LENGTH_IN_MS MUXER ENCODER…
  gst-launch-1.0 -q uridecodebin uri="$clip" caps='video/x-raw(ANY)' expose-all-streams=false ! videoconvert ! \
    videoscale ! video/x-raw,format=I420,width=384,height=288 ! "${@:4}" ! \
    splitmuxsink muxer-factory="$3" send-keyframe-requests=true max-size-time=$(($2 * 1000000)) \
    location="$folder/$1-%03d.$1"
}
cut mp4 1800 mp4mux openh264enc ! h264parse
cut mkv 1800 matroskamux jpegenc
cut avi 1800 avimux avenc_mpeg4 ! mpeg4videoparse
cut webm 1800 webmmux vp8enc deadline=1 cpu-used=16
cut mov 1800 qtmux jpegenc
for kind in mp4 mkv avi webm mov; do
  for ((i = 39; i < 100; ++i)); do rm -f "$(printf '%s/%s-%03d.%s' "$folder" $kind $i $kind)"; done
done
echo 'This is no clip.' >"$folder/text.avi"
head -c 20000 "$folder/mp4-000.mp4" >"$folder/half.mp4"
: >"$folder/empty.mkv"
gst-launch-1.0 -q audiotestsrc num-buffers=50 ! wavenc ! filesink location="$folder/sound.mp4"
mkfifo "$folder/endless.ts"
echo "$(find "$folder" -maxdepth 1 -name '*.*' | wc -l) clips in $folder"
