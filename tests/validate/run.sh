#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the .validatetest files by GStreamer's validate:  run.sh TEMPLATE ELEMENT…
# Debian has no package of gst-validate-1.0 (12, 13): exit status 77 where it is missing.
set -eu
command -v gst-validate-1.0 >/dev/null || { echo 'skipped: no gst-validate-1.0'; exit 77; }
template=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for element; do
  sed "s/@ELEMENT@/$element/" "$template" >"$folder/test.validatetest"
  echo "$element"
  gst-validate-1.0 --set-test-file "$folder/test.validatetest"
done
