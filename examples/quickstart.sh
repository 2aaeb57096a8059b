#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# From a fresh clone to a filtered video, in one command:
#   examples/quickstart.sh [CLIP] [OUT_FOLDER]      (no clip, or '': a synthetic moving scene; OUT_FOLDER: out)
# Installs what is missing, builds, then decodes the clip, denoises it with cudagaussian, sharpens it with cudaconvolve, and writes
# OUT_FOLDER/quickstart.mkv (motion JPEG) and OUT_FOLDER/quickstart.png (one frame: input | blurred | sharpened).
# BACKEND=cuda or cpu chooses the backend, FRAMES the length of the synthetic scene (300), BUILD_DIR the build folder (build);
# INSTALL=0 installs nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in -*) sed -n '3,8s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;; esac
clip=${1:-}
out=${2:-out}
build=$(realpath -m "${BUILD_DIR:-$root/build}")
if [[ -n $clip && ! -r $clip ]]; then
  echo "quickstart: cannot read $clip" >&2
  exit 2
fi
mkdir -p "$out"

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build "${packages_run[@]}"
build_project "$root" "$build" gst/libgstcudavision.so
export GST_PLUGIN_PATH=$build/gst${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}

# The scene as the head of a pipeline, and its sources, which stand at the end.
if [[ -n $clip ]]; then
  scene=(filesrc "location=$clip" ! decodebin ! videoconvert)
  sources=()
else
  number=num-buffers=${FRAMES:-300}
  full=video/x-raw,width=640,height=480,framerate=30/1 small=video/x-raw,width=240,height=240,framerate=30/1
  scene=(compositor name=scene sink_1::xpos=60 sink_1::ypos=30 sink_3::alpha=0.12 ! videoconvert)
  sources=(videotestsrc pattern=smpte100 "$number" ! "$full" ! scene.sink_0
    videotestsrc pattern=zone-plate kx2=20 ky2=20 kt=1 "$number" ! "$small" ! scene.sink_1
    videotestsrc pattern=ball background-color=0 "$number" ! "$full,format=AYUV" ! scene.sink_2
    videotestsrc pattern=snow "$number" ! "$full" ! scene.sink_3)
fi
denoise=(cudagaussian name=denoise kernel-size=5 "backend=${BACKEND:-auto}")
# The weights of sharpen-5 add up to 2: divided by that, the picture keeps its brightness.
sharpen=(cudaconvolve name=sharpen preset=sharpen-5 divisor=2 "backend=${BACKEND:-auto}")

# With -v, gst-launch says what is read here: each frame that is written, its size, the backends, and how far it is.
echo "${clip:-a synthetic scene} -> $out/quickstart.mkv"
frames=0 width=0 began=$EPOCHREALTIME
declare -A backends=()
while IFS= read -r line; do
  case $line in
    *': last-message = chain '*) ((++frames)) ;;
    *': active-backend = '*) if [[ ${line##* } != none ]]; then backends[${line##* }]=1; fi ;;
    *:written.GstPad:src:\ caps*) if [[ $line =~ width=\(int\)([0-9]+) ]]; then width=${BASH_REMATCH[1]}; fi ;;
    'progress ('*) echo "  ${line##*): } in the clip, $frames frames written" ;;
    WARNING* | ERROR*) echo "$line" >&2 ;;
  esac
done < <(exec gst-launch-1.0 -v "${scene[@]}" ! progressreport name=progress update-freq=1 ! queue ! "${denoise[@]}" ! "${sharpen[@]}" ! \
  videoconvert ! queue ! jpegenc quality=90 ! identity name=written silent=false ! matroskamux ! \
  filesink "location=$out/quickstart.mkv" "${sources[@]}")
wait $! || { echo "quickstart: the pipeline failed" >&2; exit 1; }
ended=$EPOCHREALTIME

# The 60th frame, or the last: each picture is written over the one before, and the leaky queue spares most of them the encoder.
gst-launch-1.0 -q compositor name=panels "sink_1::xpos=$width" "sink_2::xpos=$((2 * width))" ! \
  queue leaky=downstream max-size-buffers=1 ! videoconvert ! pngenc ! multifilesink "location=$out/quickstart.png" \
  "${scene[@]}" ! identity eos-after=61 ! tee name=input ! queue ! panels.sink_0 \
  input. ! queue ! "${denoise[@]}" ! tee name=blurred ! queue ! panels.sink_1 \
  blurred. ! queue ! "${sharpen[@]}" ! panels.sink_2 "${sources[@]}"

echo "$out/quickstart.png: input | blurred | sharpened"
awk -v frames="$frames" -v began="$began" -v ended="$ended" -v backend="${!backends[*]}" 'BEGIN {
  printf "%d frames in %.1f seconds (%.0f a second) on backend %s\n", frames, ended - began, frames / (ended - began), backend }'
