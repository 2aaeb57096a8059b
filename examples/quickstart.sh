#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# From a fresh clone to motion analytics of a video, in one command:
#   examples/quickstart.sh [CLIP] [OUT_FOLDER]      (no clip, or '': a synthetic moving scene; OUT_FOLDER: out)
# Installs missing packages and builds the plugin. Then examples/motion_report.py finds motion (cudadiff) and brightness (cudahistogram) in
# the clip. It writes OUT_FOLDER/motion.mkv (with boxes and a histogram), OUT_FOLDER/motion.jsonl (one event for each line) and
# OUT_FOLDER/summary.png (the frames with the most motion; motion and brightness over time), and prints a table and when each object
# entered and left. docs/motion.md says how to improve the result for a camera.
# BACKEND=cuda or cpu selects the backend, FRAMES the length of the synthetic scene (300), BUILD_DIR the build folder (build).
# INSTALL=0 installs nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=examples/common.sh
. "$root/examples/common.sh"
arguments 0 2 "$@"
clip=${1:-} folder=${2:-out}
build=$(realpath -m "${BUILD_DIR:-$root/build}")
if [[ -n $clip ]]; then readable "$clip"; fi
mkdir -p -- "$folder" 2>/dev/null || fail "cannot make the folder $folder"

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build "${packages_run[@]}" "${packages_report[@]}"
build_project "$root" "$build" gst/libgstcudavision.so
export GST_PLUGIN_PATH=$build/gst${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}

echo "${clip:-a synthetic scene} -> $folder"
# Debian's Python packages are for the system's Python.
exec /usr/bin/python3 "$root/examples/motion_report.py" ${clip:+--clip="$clip"} --out="$folder" --backend="${BACKEND:-auto}" --frames="${FRAMES:-300}"
