#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs a build into an empty folder, and looks for the plugin where GStreamer would:   install_test.sh MESON BUILD_FOLDER
set -euo pipefail
meson=$1 build=$2
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
"$meson" install -C "$build" --destdir "$target" --no-rebuild --quiet

folder=$target$(pkg-config --variable=pluginsdir gstreamer-1.0)
[[ -f $folder/libgstcudavision.so ]] || { echo "not in $folder:"; find "$target" -type f; exit 1; }
env -u GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0="$folder" GST_REGISTRY="$target/registry.bin" gst-inspect-1.0 cudavision | tee "$target/inspect"
for element in cudagaussian cudaconvolve; do grep -q "$element:" "$target/inspect"; done
grep -q "$folder/libgstcudavision.so" "$target/inspect"
