#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the .validatetest files of this folder with GStreamer's validate. Debian (12, 13) has no package of
# gst-validate-1.0: exit status 77 where it is missing.
set -eu
command -v gst-validate-1.0 >/dev/null || \
  { echo 'skipped: no gst-validate-1.0: Debian 12 and 13 have no package'; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# run NAME ELEMENT PIPELINE [GENERATE]: runs NAME.validatetest.in with @ELEMENT@ in the pipeline. With GENERATE=true it
# writes the expectations; with false it needs them.
run() {
  pipeline=$(printf '%s' "$3" | sed "s/@ELEMENT@/$2/g")
  sed "s|@PIPELINE@|$pipeline|; s|@FOLDER@|$folder/flow|g; s|@GENERATE@|${4:-false}|" "$here/$1.validatetest.in" \
    >"$folder/$1.validatetest"
  echo "$1: $2"
  gst-validate-1.0 --set-test-file "$folder/$1.validatetest"
}
# flow_as TWIN PIPELINE ELEMENT…: the output of the elements must equal the output of the twin.
flow_as() {
  twin=$1 line=$2
  shift 2
  rm -rf "$folder/flow"
  run flow "$twin" "$line" true
  grep -q '^buffer' "$folder/flow/expected/log-sink-sink-expected"
  for element; do run flow "$element" "$line"; done
}
caps=video/x-raw,format=NV12,width=64,height=48,framerate=25/1
filter="videotestsrc pattern=ball ! $caps ! @ELEMENT@ name=filter ! fakesink name=sink sync=true"
set -- 'cudagaussian backend=cpu' 'cudaconvolve preset=sharpen backend=cpu' 'cudadiff backend=cpu' \
  'cudahistogram backend=cpu' 'cudaintegral output=threshold backend=cpu'
for element; do run filters "$element" "$filter"; done
flow_as identity "$filter" "$@"
flow_as compositor "@ELEMENT@ name=mix ! $caps ! fakesink name=sink sync=true videotestsrc ! $caps ! mix. \
videotestsrc pattern=ball ! video/x-raw,format=I420,width=32,height=32,framerate=25/1 ! mix." 'cudablend backend=cpu'
