#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs one of the examples on a short synthetic input and decodes its output:
#   tests/examples.sh quickstart | motion-alarm | motion_alarm.py | motion-alarm-service | integral_numbers.py |
#     cross-fade.py | time-lapse.py | torch_model.py | cupy_kernel.py | RECIPE
# Needs a finished build in BUILD_DIR (build). Exit status 77 (skipped) if something that the example needs is not
# installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=$(realpath -m "${BUILD_DIR:-$root/build}")
export BUILD_DIR GST_PLUGIN_PATH=$BUILD_DIR/gst INSTALL=0 FRAMES=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# frames_of FILE: prints the number of decoded frames.
frames_of() {
  gst-launch-1.0 -v filesrc location="$1" ! decodebin ! identity silent=false ! fakesink silent=true |
    grep -c ': last-message = chain '
}
expect() {  # what expected found
  if [[ $2 != "$3" ]]; then
    echo "$1: expected $2, found $3" >&2
    exit 1
  fi
}
HANGS=900  # longer than any command takes on the busiest machine, in seconds
# status_of EXPECTED COMMAND…: runs a command with its output in $work/out and $work/err, and checks its exit status.
status_of() {
  local expected=$1 status=0
  shift
  timeout --kill-after=5 "$HANGS" "$@" >"$work/out" 2>"$work/err" || status=$?
  if ((status != expected)); then cat "$work/out" "$work/err" >&2; fi
  expect "exit status of $*" "$expected" "$status"
}
events_of() {  # FILE, with JSON in every line: prints a line INPUT BEGINS ENDS PICTURES for each input
  python3 -c '
import collections, json, os, sys
counts = collections.defaultdict(lambda: [0, 0, 0])
for line in open(sys.argv[1]):
  event = json.loads(line)
  box = event["regions"][0] if event["event"] == "begin" else None
  assert event["time"] >= 0 and 0 <= event["changed_ratio"] <= 1 and (not box or box["width"] * box["area"] > 0), line
  found = counts[event["input"]]
  found[0] += event["event"] == "begin"
  found[1] += event["event"] == "end"
  found[2] += os.path.getsize(event.get("snapshot", "/dev/null")) > 0
for name in sorted(counts): print(name, *counts[name])' "$1"
}
no_secret() {
  if grep -E 'secret|me:' "$work/out" "$work/err"; then expect 'password in what it says' none some; fi
}
# check_alarm COMMAND…: checks the behaviour that both alarms share. Runs in $work, where they must save their pictures.
check_alarm() {
  local alarm=("$@") pid status=0
  # Two inputs at once, one of them a file with an unusual name.
  gst-launch-1.0 -q videotestsrc pattern=ball num-buffers=30 ! jpegenc ! avimux ! \
    filesink location="$work/a \"b\" ü.avi"
  status_of 0 "${alarm[@]}" test:30 'a "b" ü.avi'
  expect "events of $1" $'a "b" ü.avi 1 1 1\ntest:30 1 1 1' "$(events_of "$work/out")"
  local picture
  for picture in *.jpg; do expect "frames of $picture" 1 "$(frames_of "$picture")"; done
  expect "pictures of $1" 2 "$(find . -name '*.jpg' | wc -l)"
  status_of 1 "${alarm[@]}" test:30 /nonexistent.mp4 rtsp://me:secret@127.0.0.1:9/x
  expect "events of $1 beside failures" 'test:30 1 1 1' "$(events_of "$work/out")"
  grep -q '^/nonexistent.mp4: ' "$work/err"
  grep -q '^rtsp://127.0.0.1:9/x: ' "$work/err"
  no_secret
  rm -- *.jpg
  fails 2 "${alarm[@]}"
  check_usage "$1"
  # Names may have any characters and any length: each input gets its picture, and no picture is overwritten.
  mkdir names other
  cp 'a "b" ü.avi' names/x
  cp 'a "b" ü.avi' other/x
  cp 'a "b" ü.avi' names/x-2
  printf -v long '%0255d' 0
  cp 'a "b" ü.avi' "names/$long"
  cp 'a "b" ü.avi' $'names/" ! filesink location=victim \xff'
  echo precious >victim
  status_of 0 "${alarm[@]}" names/* other/x
  expect 'pictures' 5 "$(find . -maxdepth 1 -name '*.jpg' | wc -l)"
  expect 'a file that was not named' precious "$(cat victim)"
  gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=audio
  for name in victim audio . missing; do fails 1 "${alarm[@]}" "$name"; done
  status=0
  timeout "$HANGS" "${alarm[@]}" test:30 2>"$work/err" >/dev/full || status=$?
  expect 'exit status on a full disk' 1 "$status"
  expect 'lines on stderr on a full disk' 1 "$(wc -l <"$work/err")"
  # A server that never answers.
  python3 -u "$root/tests/examples/servers.py" >"$work/server" &
  local server=$! port
  until port=$(sed -n 1p "$work/server") && [[ $port ]]; do sleep 0.1; done
  for signal in INT TERM; do
    : >"$work/server"
    env "${alarm[@]}" "http://127.0.0.1:$port/silent" &
    pid=$!
    until grep -q silent "$work/server"; do sleep 0.1; done
    sleep 0.5
    kill -"$signal" "$pid"
    for ((i = 0; i < 10 * HANGS; ++i)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
    status=0
    wait "$pid" || status=$?
    expect "exit status after SIG$signal before the first frame" 0 "$status"
  done
  kill "$server"
  # Ctrl-C (and kill) end live streams, and motion in progress gets its end event.
  for signal in INT TERM; do
    : >"$work/out"
    env "${alarm[@]}" test test >>"$work/out" &
    pid=$!
    for ((i = 0; i < 10 * HANGS; ++i)); do
      if (($(wc -l <"$work/out") >= 2)); then break; fi
      sleep 0.1
    done
    kill -"$signal" "$pid"
    wait "$pid" || status=$?
    expect "exit status of $1 after SIG$signal" 0 "$status"
    # On a busy machine frames may be missing, so that motion ends and begins again.
    local name begins ends pictures
    read -r name begins ends pictures <<<"$(events_of "$work/out")"
    expect "events of $1 after SIG$signal" "test $begins $begins" "$name $ends $pictures"
    ((begins >= 2)) || expect "begins of $1 after SIG$signal" 2 "$begins"
  done
  GST_PLUGIN_PATH='' GST_REGISTRY="$work/registry.bin" status_of 1 "${alarm[@]}" test:30
  grep -q GST_PLUGIN_PATH "$work/err"
}
# fails STATUS COMMAND…: expects this exit status and one line on stderr.
fails() {
  status_of "$@"
  expect "lines on stderr of ${*:2}" 1 "$(wc -l <"$work/err")"
}
# check_names SCRIPT INPUT [ARGUMENT…]: checks an example that makes one file from another (SCRIPT INPUT OUTPUT
# ARGUMENT…) with unusual names, with files that it cannot read or write, and with wrong usage. FOLDER is a folder that
# it cannot read (.), or empty.
check_names() {
  local script=$1 input=$2 name before
  shift 2
  mkdir "$work/the \"names\" ! ü"
  cd "$work/the \"names\" ! ü"
  echo precious >victim
  gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=audio
  for name in 'my "clip" ! x.avi' 'x ! filesink location=victim' $'\\" ! filesink location=victim \xff \\'; do
    cp "$input" "$name"
    status_of 0 "$script" "$name" "$name.%d" "$@"
    expect "whether $name.%d was written" yes "$([[ -s $name.%d ]] && echo yes)"
  done
  expect 'a file that was not named' precious "$(cat victim)"
  before=$(ls -A)
  for name in victim audio ${FOLDER-.} missing; do fails 1 "$script" "$name" out "$@"; done
  for name in victim/out missing/out .; do fails 1 "$script" "$input" "$name" "$@"; done
  expect 'files after failures' "$before" "$(ls -A)"
  check_usage "$script"
  fails 2 "$script" "$input"
  fails 1 env GST_PLUGIN_PATH= GST_REGISTRY="$work/registry.bin" "$script" "$input" out "$@"
  cd "$work"
}
check_usage() {  # SCRIPT
  fails 2 "$1" --no-such
  status_of 0 "$1" --help
  expect "help of $1" yes "$([[ -s $work/out && ! -s $work/err ]] && echo yes)"
}
needs_python() {
  if /usr/bin/python3 -c 'import gi, numpy; gi.require_version("GstVideo", "1.0")' 2>/dev/null; then return; fi
  echo 'skipped: no python3-gi, no python3-numpy, or no gir1.2-gst-plugins-base-1.0'
  exit 77
}
source=(videotestsrc num-buffers="$FRAMES" ! 'video/x-raw,format=I420,width=161,height=121')

case $1 in
  quickstart)
    needs_python
    "$root/examples/quickstart.sh" '' "$work/an out" | tee "$work/said"
    grep -qE "^frames +$FRAMES$" "$work/said"
    grep -qE '^backend +(cpu|cuda)$' "$work/said"
    expect 'files of a report' $'frames.csv\nheat.jpg\nmotion.jsonl\nobjects.csv\nreport.html' "$(ls -A "$work/an out")"
    parts=$root/tests/examples/report_parts.py
    "$parts" "$work/an out/report.html" "$work/video" "$work/poster"
    expect 'frames of the video' "$FRAMES" "$(frames_of "$work/video")"
    expect 'frames of the poster' 1 "$(frames_of "$work/poster")"
    expect 'lines of frames.csv' $((FRAMES + 1)) "$(wc -l <"$work/an out/frames.csv")"
    python3 -c 'import json, sys; print(*(json.loads(line)["event"] for line in sys.stdin))' \
      <"$work/an out/motion.jsonl" >"$work/events"
    grep -q '^begin .*motion .*motion' "$work/events"
    expect 'objects that left' "$(grep -o enter "$work/events" | wc -l)" \
      "$(grep -c '^object [0-9]* entered at .* s, left at ' "$work/said")"
    expect 'lines of objects.csv' $(($(grep -o leave "$work/events" | wc -l) + 1)) \
      "$(wc -l <"$work/an out/objects.csv")"
    grep -q 'enter.*leave' "$work/events"
    cd "$work"
    echo precious >victim
    gst-launch-1.0 -q "${source[@]}" ! jpegenc ! avimux ! filesink location=clip.avi
    name='x" ! filesink location="victim'
    cp clip.avi "$name"
    report=$root/examples/motion-report/motion_report.py
    status_of 0 "$report" --clip="$name" --out='o" ! filesink location="victim'
    expect 'files of motion_report.py' $'frames.csv\nheat.jpg\nmotion.jsonl\nobjects.csv\nreport.html' \
      "$(ls -A 'o" ! filesink location="victim')"
    # A folder with names that contain HTML, and with a clip that is not a video.
    mkdir clips
    script='<script>alert(1)<!-- "><img src=x onerror=alert(2)> {{video}} &amp;.avi'
    cp clip.avi "clips/$script"
    cp clip.avi $'clips/%41 \xff #?.AVI'
    echo no clip >clips/broken.mp4
    fails 1 "$report" --clip=clips --out=reports --zones='<b>all</b>: 0.0,0.0 1.0,0.0 1.0,1.0 0.0,1.0'
    grep -q 'broken.mp4: ' "$work/err"
    for page in reports/index.html reports/*/report.html; do "$parts" "$page"; done
    expect 'reports of a folder' 2 "$(find reports -name report.html | wc -l)"
    expect 'cards of index.html' 3 "$(grep -o '<li class="card' reports/index.html | wc -l)"
    gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=audio
    mkdir empty
    for name in victim audio missing empty 'http://me:secret@127.0.0.1:9/x?user=me&password=secret'; do
      fails 1 "$report" --clip="$name" --out=empty
      no_secret
    done
    fails 1 "$report" --zones='door: 1,1' --out=empty
    expect 'files after failures' '' "$(ls -A empty)"
    expect 'a file that was not named' precious "$(cat victim)"
    fails 1 "$report" --out=victim/out
    for name in report.html motion.jsonl; do
      mkdir -p "folder-$name/$name"
      fails 1 "$report" --out="folder-$name" --frames=2 --embed=0
    done
    fails 2 "$report" --zones=$'\xff: 0,0 1,0 1,1'
    check_usage "$report"
    check_usage "$root/examples/quickstart.sh"
    fails 1 "$root/examples/quickstart.sh" missing
    fails 1 "$root/examples/quickstart.sh" '' victim/out
    fails 2 "$root/examples/quickstart.sh" a b c
    ;;
  motion-alarm)
    cd "$work"
    program=$BUILD_DIR/examples/motion-alarm/motion-alarm
    check_alarm "$program" --snapshots=.
    status_of 2 "$program" --set no-such=1 test:3
    status_of 2 "$program" --threshold=x test:3
    status_of 2 "$program" --no-such test:3
    status_of 2 "$program" --every=-1 test:3
    status_of 1 "$program" --threshold=300 test:3
    # Without metas cudadiff may report after the frame has been pushed.
    rm -- *.jpg
    status_of 0 "$program" --set attach-roi=false --snapshots=. test:30
    expect 'events without metas' 'test:30 1 1 1' "$(events_of "$work/out")"
    # With --every, the frames of motion have pictures, too, which wait until the motion is long enough.
    for more in '' --set=attach-roi=false --min-event=5 --rate=10; do
      rm -- *.jpg
      status_of 0 "$program" --every=0 --snapshots=. ${more:+"$more"} test:30
      expect "events with a picture $more" 29 "$(grep -cE '"event": "(begin|motion)".*"snapshot"' "$work/out")"
      expect "other events with a picture $more" 0 "$(grep -vE '"(begin|motion)"' "$work/out" | grep -c snapshot)"
      expect "pictures $more" 29 "$(find . -name '*.jpg' | wc -l)"
    done
    rm -- *.jpg
    status_of 0 "$program" --every=0 --snapshots=. --min-event=31 test:30
    expect 'pictures of a motion that is too short' 0 "$(find . -name '*.jpg' | wc -l)"
    status_of 1 "$program" test:x
    echo precious >file
    fails 1 "$program" --snapshots=file/pictures test:3
    status_of 0 "$program" --every=0 --gap=1 --set interval=2 test:30
    expect 'lines for 30 frames and the end' 31 "$(wc -l <"$work/out")"
    # A second Ctrl-C ends it even if nobody reads its output.
    mkfifo lines
    exec 3<>lines
    dd if=/dev/zero of=lines oflag=nonblock bs=4096 status=none 2>/dev/null || true  # fills the FIFO
    "$program" --every=0 test:1000000 >lines &
    pid=$!
    for signal in INT INT; do
      sleep 1
      kill -INT "$pid"
    done
    status=0
    wait "$pid" || status=$?
    exec 3>&-
    expect 'exit status after two SIGINT' 130 "$status"
    GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 status_of 1 "$program" -s . --boxes test:30 'a "b" ü.avi' /nonexistent.mp4
    if grep 'object-alive, type-name=(string)[^%]' "$work/err"; then expect leaks none some; fi
    ;;
  motion_alarm.py)
    needs_python
    cd "$work"
    check_alarm "$root/examples/motion_alarm.py"
    status_of 0 "$root/examples/motion_alarm.py" "file://localhost$work/a%20%22b%22%20%C3%BC.avi"
    fails 2 "$root/examples/motion_alarm.py" no-such=1 test:3
    fails 2 "$root/examples/motion_alarm.py" threshold=x test:3
    ;;
  motion-alarm-service)
    needs_python
    for module in paho.mqtt.client prometheus_client; do
      /usr/bin/python3 -c "import $module" 2>/dev/null ||
        { echo "skipped: no Python module $module (WITH=mqtt tests/run.sh installs it)"; exit 77; }
    done
    PATH=$PATH:/usr/sbin command -v mosquitto >/dev/null ||
      { echo 'skipped: no mosquitto (WITH=mqtt tests/run.sh installs it)'; exit 77; }
    # The tests of the service are in Python, because they need a broker and cameras. They mostly wait, so the files run
    # in parallel.
    cd "$root/tests/examples/motion_alarm_service"
    tests=()
    for test in *_test.py; do
      python=/usr/bin/python3
      if [[ $test == onvif*_test.py && -x $BUILD_DIR/onvif/bin/python ]]; then python=$BUILD_DIR/onvif/bin/python; fi
      TMPDIR=$work "$python" -m unittest --buffer --verbose "${test%.py}" >"$work/$test" 2>&1 &
      tests+=("$test $!")
    done
    status=0
    for test in "${tests[@]}"; do
      wait "${test#* }" || status=1
      cat "$work/${test% *}"
    done
    expect 'exit status of the tests' 0 "$status"
    ;;
  integral_numbers.py)
    needs_python
    "$root/examples/integral_numbers.py" | tee "$work/said"
    expect 'frames' 5 "$(wc -l <"$work/said")"
    # In the first frame, the sum of pixels 10 to 39 of rows 20 to 59.
    gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,format=NV12,width=320,height=240 ! \
      filesink location="$work/raw"
    expect 'the sum' \
      "$(od -An -v -tu1 -w320 "$work/raw" |
        awk 'NR > 20 && NR <= 60 { for (i = 11; i <= 40; ++i) sum += $i } END { print sum }')" \
      "$(sed -n '1s/.*sum \([0-9]*\),.*/\1/p' "$work/said")"
    cd "$work"
    numbers=$root/examples/integral_numbers.py
    gst-launch-1.0 -q "${source[@]}" ! jpegenc ! avimux ! filesink location=in.avi
    mv in.avi $'my "clip" ! \xff.avi'
    status_of 0 "$numbers" $'my "clip" ! \xff.avi' 10 20 151 101
    expect 'frames' "$FRAMES" "$(wc -l <"$work/out")"
    gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=audio
    for name in said audio . missing; do fails 1 "$numbers" "$name"; done
    fails 1 "$numbers" $'my "clip" ! \xff.avi' 11 20 151 101
    fails 2 "$numbers" $'my "clip" ! \xff.avi' 1 2 3
    fails 2 "$numbers" $'my "clip" ! \xff.avi' 1 2 3 x
    check_usage "$numbers"
    status=0
    "$numbers" 2>err >/dev/full || status=$?
    expect 'exit status on a full disk' 1 "$status"
    expect 'lines on stderr on a full disk' 1 "$(wc -l <err)"
    ;;
  torch_model.py)
    needs_python
    cd "$work"
    model=$root/examples/python/torch_model.py
    check_usage "$model"
    fails 2 "$model" --device=tpu
    if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
      fails 1 "$model" --device=cpu
      expect 'the reason' 1 "$(grep -c 'PyTorch is missing: install it' err)"
      exit 0
    fi
    status_of 0 "$model" --device=cpu --frames=5
    expect 'frames' 5 "$(grep -c 'most edges in row' out)"
    echo precious >victim
    for name in victim . missing; do fails 1 "$model" --device=cpu "$name"; done
    for name in victim . missing; do fails 1 "$model" --device=cpu --model="$name"; done
    ;;
  cupy_kernel.py)
    needs_python
    /usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo 'skipped: no python3-numpy'; exit 77; }
    # White becomes dark: its luma changes from 235 to 20.
    gst-launch-1.0 -q videotestsrc pattern=white num-buffers="$FRAMES" ! \
      video/x-raw,format=I420,width=160,height=120 ! jpegenc ! avimux ! \
      filesink location="$work/white.avi"
    printf '#!/bin/sh\nexec "%s" --device=cpu "$@"\n' "$root/examples/python/cupy_kernel.py" >"$work/kernel"
    chmod +x "$work/kernel"
    "$work/kernel" "$work/white.avi" "$work/out.avi"
    expect 'frames' "$FRAMES" "$(frames_of "$work/out.avi")"
    gst-launch-1.0 -q filesrc location="$work/out.avi" ! decodebin ! videoconvert ! videoscale ! \
      video/x-raw,format=GRAY8,width=4,height=4 ! filesink location="$work/raw"
    expect 'dark pixels' $((16 * FRAMES)) "$(od -An -v -tu1 -w1 "$work/raw" | awk '$1 < 40' | wc -l)"
    fails 2 "$work/kernel" "$work/white.avi" out --threshold=256
    if ! /usr/bin/python3 -c 'import cupy' 2>/dev/null; then
      fails 1 "$root/examples/python/cupy_kernel.py" "$work/white.avi" "$work/no.avi"
      expect 'the reason' 1 "$(grep -c 'CuPy is missing: install it' "$work/err")"
    fi
    check_names "$work/kernel" "$work/white.avi"
    ;;
  time-lapse.py)
    needs_python
    lapse=$root/examples/recipes/time-lapse.py
    # four seconds of black, two of a moving ball, four of black
    raw=video/x-raw,format=I420,width=320,height=240,framerate=25/1
    gst-launch-1.0 -q concat name=all ! jpegenc ! matroskamux ! filesink location="$work/in.mkv" \
      videotestsrc pattern=black num-buffers=100 ! $raw ! all. videotestsrc pattern=ball num-buffers=50 ! $raw ! all. \
      videotestsrc pattern=black num-buffers=100 ! $raw ! all.
    expect 'frames of the clip' 250 "$(frames_of "$work/in.mkv")"
    # The ball and a second on each side keep their 100 frames; one frame of 16 remains of the other 150.
    status_of 0 "$lapse" "$work/in.mkv" "$work/out.mkv" 16 preset=custom
    count=$(frames_of "$work/out.mkv")
    expect "whether $count frames are 108 to 113" yes "$( ((count >= 108 && count <= 113)) && echo yes)"
    end=$(gst-launch-1.0 -v filesrc location="$work/out.mkv" ! matroskademux ! identity silent=false ! fakesink |
      grep ': last-message = chain ' | sed -n '$s/.*pts: 0:00:0\([0-9]\)\.\([0-9]\).*/\1\2/p')
    expect "whether the last frame is at 42 to 45 tenths of a second, not $end" yes \
      "$( ((end >= 42 && end <= 45)) && echo yes)"
    status_of 0 "$lapse" "$work/in.mkv" "$work/out.mkv" 1
    expect 'frames without a change of speed' 250 "$(frames_of "$work/out.mkv")"
    status_of 0 "$lapse" "$work/in.mkv" "$work/out.mkv" 25 preset=custom mask-regions=0,0,320,240
    expect 'frames of a clip without motion' 10 "$(frames_of "$work/out.mkv")"
    # A folder: 100 frames of each clip, in the order of the names. The second clip has another size.
    mkdir "$work/day"
    cp "$work/in.mkv" "$work/day/2.mkv"
    gst-launch-1.0 -q filesrc location="$work/in.mkv" ! matroskademux ! jpegdec ! videoscale ! \
      video/x-raw,width=160,height=120 ! jpegenc ! matroskamux ! filesink location="$work/day/10.mkv"
    status_of 0 "$lapse" "$work/day" "$work/out.mkv" 16 preset=custom
    count=$(frames_of "$work/out.mkv")
    expect "whether $count frames are 215 to 226" yes "$( ((count >= 215 && count <= 226)) && echo yes)"
    fails 1 "$lapse" "$work/the \"names\"" "$work/out.mkv"
    fails 2 "$lapse" "$work/in.mkv" "$work/out.mkv" 0.5
    fails 2 "$lapse" "$work/in.mkv" "$work/out.mkv" 16 no-such=1
    for ending in MP4 jpg png; do fails 2 "$lapse" "$work/in.mkv" "$work/out.$ending"; done
    FOLDER='' check_names "$lapse" "$work/in.mkv"  # it accepts a folder
    ;;
  cross-fade.py)
    needs_python
    for pattern in black white; do
      gst-launch-1.0 -q videotestsrc num-buffers=20 pattern=$pattern ! \
        video/x-raw,width=320,height=180,framerate=20/1 ! jpegenc ! avimux ! \
        filesink location="$work/$pattern.avi"
    done
    "$root/examples/recipes/cross-fade.py" "$work/black.avi" "$work/white.avi" "$work/out.mkv" 0.5 0.5
    gst-launch-1.0 -q filesrc location="$work/out.mkv" ! decodebin ! videoconvert ! video/x-raw,format=GRAY8 ! \
      videoscale ! video/x-raw,width=4,height=4 ! filesink location="$work/raw"
    # From the 11th frame on, white has alpha 0, 0.1, 0.2 …
    od -An -v -tu1 -w16 "$work/raw" | awk '
      { level[NR] = $6 }
      END {
        black = level[1]; white = level[NR]
        for (i = 1; i <= NR; ++i) {
          alpha = (i - 11) / 10
          expected = black + (white - black) * (alpha < 0 ? 0 : alpha > 1 ? 1 : alpha)
          off = level[i] - expected
          if (off < -5 || off > 5) { print "frame " i ": " level[i] ", not " expected; wrong = 1 }
        }
        if (NR != 30 || white - black < 200) { print NR " frames from " black " to " white; wrong = 1 }
        exit wrong
      }'
    cd "$work"
    echo precious >victim
    fade=$root/examples/recipes/cross-fade.py
    cp black.avi $'" ! filesink location=victim \xff'
    status_of 0 "$fade" $'" ! filesink location=victim \xff' white.avi $'" ! \xff.mkv' 0 0.1
    expect 'a file that was not named' precious "$(cat victim)"
    before=$(ls -A)
    gst-launch-1.0 -q audiotestsrc num-buffers=20 ! wavenc ! filesink location=audio
    for name in victim audio . missing; do fails 1 "$fade" black.avi "$name" out; done
    for name in victim/out missing/out . /dev/full; do fails 1 "$fade" black.avi white.avi "$name"; done
    rm audio
    expect 'files after failures' "$before" "$(ls -A)"
    fails 2 "$fade" black.avi white.avi out.MP4
    expect 'a file with a wrong ending' no "$([[ -e out.MP4 ]] && echo yes || echo no)"
    check_usage "$fade"
    fails 2 "$fade" black.avi white.avi
    fails 2 "$fade" black.avi white.avi out -1
    ;;
  photo-wall)
    # Fewer than 36 pictures, of several sizes and formats.
    mkdir "$work/some \"pictures\" ! x"
    for ((i = 1; i <= 7; ++i)); do
      encoder=$( ((i % 2)) && echo jpegenc || echo pngenc )
      gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=$((i + 11)) ! \
        "video/x-raw,width=$((61 * i)),height=$((47 + i))" ! videoconvert ! \
        "$encoder" ! filesink location="$work/some \"pictures\" ! x/$i.${encoder%enc}"
    done
    for file in "$work/some \"pictures\" ! x/"*.jpeg; do mv "$file" "${file%.jpeg}.JPG"; done
    "$root/examples/recipes/photo-wall.sh" "$work/some \"pictures\" ! x" "$work/out.png"
    expect 'frames of photo-wall' 1 "$(frames_of "$work/out.png")"
    expect 'its size' '1283 857' \
      "$(python3 -c 'import struct, sys; print(*struct.unpack(">II", open(sys.argv[1], "rb").read()[16:24]))' \
        "$work/out.png")"
    mkdir "$work/none"
    fails 1 "$root/examples/recipes/photo-wall.sh" "$work/none" "$work/no.png"
    echo precious >"$work/none/broken.jpg"
    fails 1 "$root/examples/recipes/photo-wall.sh" "$work/none" "$work/no.png"
    fails 2 "$root/examples/recipes/photo-wall.sh" "$work/some \"pictures\" ! x" "$work/no.png" '' \
      '10x10 ! filesink location=x'
    expect 'files after failures' '' "$(find "$work" -maxdepth 1 -name 'no.png' -o -maxdepth 1 -name '.??*')"
    check_usage "$root/examples/recipes/photo-wall.sh"
    ;;
  chroma-key)
    screen() {  # PATTERN FILE
      gst-launch-1.0 -q videotestsrc num-buffers="$FRAMES" pattern="$1" ! video/x-raw,width=320,height=180 ! jpegenc ! \
        avimux ! filesink location="$2"
    }
    screen green "$work/green.avi"
    screen red "$work/red.avi"
    screen blue "$work/blue.avi"
    gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=blue ! pngenc ! filesink location="$work/blue.png"
    center() {  # R G B in the middle of the last frame, each 0 or 1
      gst-launch-1.0 -q filesrc location="$work/out.mkv" ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBx,width=4,height=4 ! filesink location="$work/raw"
      tail -c 64 "$work/raw" | od -An -tu1 -j 20 -N 3 | awk '{ print ($1 > 127), ($2 > 127), ($3 > 127) }'
    }
    for below in avi png; do
      for above in green red; do
        "$root/examples/recipes/chroma-key.sh" "$work/$above.avi" "$work/out.mkv" "$work/blue.$below"
        expect "frames of chroma-key over $below" "$FRAMES" "$(frames_of "$work/out.mkv")"
        expect "$above over blue" "$([[ $above == green ]] && echo 0 0 1 || echo 1 0 0)" "$(center)"
      done
    done
    check_names "$root/examples/recipes/chroma-key.sh" "$work/green.avi" "$work/blue.png"
    fails 2 "$root/examples/recipes/chroma-key.sh" "$work/green.avi" out "$work/blue.png" 'red ! filesink location=x'
    ;;
  *-photo)
    for format in png jpeg; do
      gst-launch-1.0 -q "${source[@]}" ! videoconvert ! "${format}enc" snapshot=true ! \
        filesink location="$work/in.$format"
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
            END {
              if (last / sum < 1 - 1e-6 || last / sum > 1 + 1e-6) { print "the sum is " sum ", not " last; exit 1 }
            }'
          ;;
        *) expect "frames of $1 of a $format" 1 "$(frames_of "$work/out")" ;;
      esac
    done
    for ending in JPG mkv; do
      fails 2 "$root/examples/recipes/$1.sh" "$work/in.png" "$work/other.$ending"
      case $1 in
        luma-* | integral-*)
          expect 'the message' "$work/other.$ending would be numbers: choose a name that ends in .txt; see --help" \
            "$(sed 's/^[^:]*: //' "$work/err")"
          ;;
      esac
      expect 'a file with a wrong ending' no "$([[ -e $work/other.$ending ]] && echo yes || echo no)"
    done
    check_names "$root/examples/recipes/$1.sh" "$work/in.png"
    ;;
  *)
    gst-launch-1.0 -q "${source[@]}" ! jpegenc ! avimux ! filesink location="$work/in.avi"
    "$root/examples/recipes/$1.sh" "$work/in.avi" "$work/out.mkv"
    expect "frames of $1" "$FRAMES" "$(frames_of "$work/out.mkv")"
    for ending in MP4 png; do
      fails 2 "$root/examples/recipes/$1.sh" "$work/in.avi" "$work/other.$ending"
      expect 'a file with a wrong ending' no "$([[ -e $work/other.$ending ]] && echo yes || echo no)"
    done
    check_names "$root/examples/recipes/$1.sh" "$work/in.avi"
    ;;
esac
