#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the plugin in a fresh clone and analyses the motion in a video, in one command:
#   examples/quickstart.sh [CLIP] [OUT_FOLDER]      (no clip, or '': a synthetic moving scene; OUT_FOLDER: out)
# CLIP is a file, a URI, or a folder of clips. Installs missing packages and builds the plugin. Then
# examples/motion-report finds motion (cudadiff) and brightness (cudahistogram) in the clip. It writes
# OUT_FOLDER/report.html, a page with a player, a timeline and a table of objects, which opens automatically in a
# browser; objects.csv and frames.csv; and motion.jsonl (one event per line). It prints a table, and when each
# object entered and left. A folder of clips gets a report for each clip, and index.html; files of a recorder get one
# report.
# docs/motion.md says how to improve the result for a camera.
# MOTION_ZONES='NAME: x,y x,y x,y; …' are zones that objects enter, MOTION_LINES='NAME: x,y x,y; …' lines that they
# cross, both in pixels or as shares of the frame (0.5). LENGTH is the number of seconds to analyse (all). BACKEND=cuda
# or cpu selects the backend, FRAMES the length of the synthetic scene (300), BUILD_DIR the build folder (build).
# INSTALL=0 installs nothing. On a machine with an NVIDIA GPU, the CUDA backend is built for this GPU. If there is no
# CUDA compiler, NVIDIA's is installed from PyPI into the build folder. CUDA=1 builds the CUDA backend on every machine,
# CUDA=0 on none.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=examples/common.sh
. "$root/examples/common.sh"
arguments 0 2 "$@"
clip=${1:-} folder=${2:-out}
build=$(realpath -m "${BUILD_DIR:-$root/build}")
if [[ -n $clip && ! -d $clip && ! $clip =~ ^[a-zA-Z][-+.a-zA-Z0-9]*:// ]]; then readable "$clip"; fi
mkdir -p -- "$folder" 2>/dev/null || fail "cannot make the folder $folder"

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
if has_gpu; then gpu=1; else gpu=0; fi
choose_backends "$build" "$gpu"
install_for_build "${packages_run[@]}" "${packages_report[@]}"
build_project "$root" "$build" "${backend_options[@]}" gst/libgstcudavision.so
export GST_PLUGIN_PATH=$build/gst${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}

# Debian's Python packages are for the system's Python.
exec /usr/bin/python3 "$root/examples/motion-report/motion_report.py" ${clip:+--clip="$clip"} --out="$folder" \
  --backend="${BACKEND:-auto}" \
  --frames="${FRAMES:-300}" ${LENGTH:+--seconds="$LENGTH"} ${MOTION_ZONES:+--zones="$MOTION_ZONES"} \
  ${MOTION_LINES:+--lines="$MOTION_LINES"}
