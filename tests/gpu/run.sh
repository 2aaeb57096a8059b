#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in the unpacked bundle of tests/gpu-bundle.sh, on a GPU host that has only the driver:
#   run.sh [tests] [late] [neighbours] [sanitize] [bench] [pipelines] [frames] [soak] [all]       (no argument: tests)
# tests      kernel tests on CUDA, element tests, the fuzzer on CUDA (FUZZ_CASES=3000)
# late       element tests and the fuzzer again, while the GPU pauses before random frames: frames that are used too
#            early or too late differ
# neighbours the plugin's elements beside all stock elements of the bundle (minutes: each pipeline is a process, which
#            opens the GPU)
# sanitize   some kernel tests with compute-sanitizer's memcheck, racecheck and initcheck (SANITIZE_TESTS=16 for each
#            program); element tests with memcheck
# bench      bench_kernels (compared with NPP if the host has nvcc and NPP), bench_pipelines.py (compared with elements
#            of GStreamer: those of nvcodec that compile kernels need an NVRTC of CUDA 12; unzip PyPI's wheel
#            nvidia-cuda-nvrtc-cu12, add its folder nvidia/cuda_nvrtc/lib to LD_LIBRARY_PATH and set
#            GST_CUDA_NVRTC_LIBNAME=libnvrtc.so.12). FRAMES=, TURNS= and ONLY= (a regular expression) for the pipelines;
#            with ONLY, only pipelines are measured. ONLY='at a time' is motion-scan's share of the decoder's rate.
#            cvcuda_peers.py needs a python3 with PyTorch and CV-CUDA: unzip PyPI's wheel cvcuda-cu13 and add its folder
#            to PYTHONPATH
# pipelines  gst-launch-1.0 pipelines; some decode the packed clips; a live one must not drop a frame
# frames     frames in CUDA memory as arrays of PyTorch, CuPy, Numba and JAX, and arrays as frames: needs a python3 with
#            PyTorch and CuPy. FRAMES_TESTS='-k late' selects tests
# soak       16 pipelines in parallel, disturbed at random, for SOAK_SECONDS=600 (SOAK_SEED=1); every frame is compared,
#            and memory must not grow. After a failure its journal is beside its log. SOAK_ARGS='--only 15' adds
#            arguments, such as --replay JOURNAL
# all        everything except the soak
# Logs and JSON files go to $OUT, or to ./logs. The last line is the count. The exit status is 0 only if nothing failed.
# Tests that need something the host lacks are skipped and give the reason.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
logs=${OUT:-$PWD/logs}
mkdir -p "$logs"
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

# The environment only for programs of the bundle: the host's compiler and tools must find the host's libraries.
bundled=(env -u GST_PLUGIN_PATH -u GST_PLUGIN_SYSTEM_PATH
  LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$here/bin:$PATH" LC_ALL=C.UTF-8
  GST_PLUGIN_SYSTEM_PATH_1_0="$here/gst" GST_PLUGIN_PATH_1_0="$here/plugin"
  GST_PLUGIN_SCANNER="$here/bin/gst-plugin-scanner" GST_REGISTRY="$state/registry.bin")

passed=0 failed=0 skipped=0
report() {  # result name [remark]
  case $1 in
    PASS) ((++passed)) ;;
    FAIL) ((++failed)) ;;
    SKIP) ((++skipped)) ;;
  esac
  printf '%s  %-34s %s\n' "$1" "$2" "${3:-}"
}

# name seconds command …: runs a command with a time limit. Its exit status is 0, 77 (skipped) or a failure. The remark
# contains the count of test cases from the log, if any.
run() {
  local name=$1 limit=$2 log start status remark
  shift 2
  log=$logs/${name//[^A-Za-z0-9._-]/_}.log
  start=$EPOCHREALTIME
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null
  status=$?
  remark=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%6.1f s", b - a }')
  remark+="  $(grep -aE '^[0-9]+ passed,|^[0-9]+%: Checks|ERROR SUMMARY|RACECHECK SUMMARY|^Execution ended' "$log" |
    tail -1)"
  case $status in
    0) report PASS "$name" "$remark" ;;
    77) report SKIP "$name" "$(tail -1 "$log" | cut -c1-120)" ;;
    *)
      if ((status == 124 || status == 137)); then
        remark+="  stopped after $limit s"
      else
        remark+="  exit status $status"
      fi
      report FAIL "$name" "$remark"
      grep -aE '\[  FAILED  \]|Failure|: [FE]:|ERROR|error:|erroneous|FAILED' "$log" | head -8 | cut -c1-160 |
        sed 's/^/      | /'
      ;;
  esac
  return "$status"
}

programs() { find "$here/tests/$1" -maxdepth 1 -type f -perm -u+x ! -name '*.so' ! -name '*.py' 2>/dev/null | sort; }
has() { "${bundled[@]}" gst-inspect-1.0 --exists --atleast-version=0.0 "$1" 2>/dev/null; }
gpu() { nvidia-smi -L >/dev/null 2>&1 || [[ -e /dev/nvidiactl ]]; }

# program count: prints a filter with at most this many CUDA tests, spread evenly over all tests of the program except
# the large ones.
some_tests() {
  "${bundled[@]}" "$1" --gtest_list_tests '--gtest_filter=*Cuda*-*Large*' 2>/dev/null |
    awk '/^[^ ].*\.( |$)/ { suite = $1; next } /^  / { print suite $1 }' |
    awk -v most="$2" '{ names[NR] = $0 } END {
      count = NR < most ? NR : most
      for (i = 0; i < count; ++i) printf "%s%s", (i ? ":" : ""), names[int(i * NR / count) + 1]
    }'
}

# Runs a test program in several parallel parts, because its slow references take most of the time. Prints their logs
# and the sum of their counts.
# shellcheck disable=SC2016
in_parts='
  parts=$1; shift
  rm -f "$0".*
  for ((i = 0; i < parts; ++i)); do
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$i "$@" >"$0.$i" 2>&1 &
    pids+=($!)
  done
  worst=77
  for pid in "${pids[@]}"; do
    wait "$pid"
    status=$?
    if ((status != 0 && status != 77)); then worst=$status; elif ((status == 0 && worst == 77)); then worst=0; fi
  done
  cat "$0".*
  cat "$0".* | awk "/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped/ { p += \$1; f += \$3; s += \$5 }
    END { printf \"%d passed, %d failed, %d skipped\n\", p, f, s }"
  exit $worst'

mode_tests() {
  local program found=0 parts
  parts=$(($(nproc) * 3 / 4))
  ((parts)) || parts=1
  for program in $(programs kernels); do
    found=1
    if [[ -z $(some_tests "$program" 1) ]]; then continue; fi  # the program has no CUDA tests
    run "kernels/${program##*/}" 550 "${bundled[@]}" OPENCV_FOR_THREADS_NUM=1 bash -c "$in_parts" "$logs/part" \
      "$parts" "$program" '--gtest_filter=*Cuda*'
  done
  ((found)) || report SKIP kernels 'no kernel tests in the bundle'
  elements_and_fuzz '' "${FUZZ_CASES:-3000}"
}

mode_late() { elements_and_fuzz late/ "$((${FUZZ_CASES:-3000} / 10))" env CUDAVISION_DELAY_STREAMS=2; }

mode_neighbours() {
  local program=$here/tests/elements/elements_neighbours
  if [[ -x $program ]]; then
    run neighbours 550 "${bundled[@]}" "$program"
  else
    report SKIP neighbours 'not in the bundle'
  fi
}

# prefix cases [command …]: runs the element tests and the fuzzer, each with the command. All tests of a program run in
# one process, because opening the GPU takes half a second.
elements_and_fuzz() {
  local prefix=$1 cases=$2 program found=0
  shift 2
  for program in $(programs elements); do
    [[ $program == *_neighbours ]] && continue
    found=1
    run "${prefix}elements/${program##*/}" 300 "${bundled[@]}" CK_FORK=no "$@" "$program"
  done
  ((found)) || report SKIP "${prefix}elements" 'no element tests in the bundle'
  if [[ -x $here/tests/fuzz/fuzz ]]; then
    run "${prefix}fuzz" 300 "${bundled[@]}" "$@" "$here/tests/fuzz/fuzz" --backend cuda --cases "$cases"
  else
    report SKIP "${prefix}fuzz" 'no fuzzer in the bundle'
  fi
}

mode_soak() {
  local seconds=${SOAK_SECONDS:-600} log=$logs/soak.log journal=$logs/soak.journal
  if [[ ! -x $here/tests/soak/soak ]]; then
    report SKIP soak 'not in the bundle'
    return
  fi
  # shellcheck disable=SC2086
  run soak $((seconds + 120)) "${bundled[@]}" "$here/tests/soak/soak" --backend cuda --seconds "$seconds" \
    --seed "${SOAK_SEED:-1}" --journal "$journal" ${SOAK_ARGS:-}
  grep -aE '^(FAILED: )?(process|device):|frames compared|GStreamer (left|kept)|without our elements' "$log" |
    sed 's/^/      | /'
  [[ ! -e $journal ]] || echo "      | the journal: $journal"
}

mode_sanitize() {
  local program tool filter
  if ! command -v compute-sanitizer >/dev/null; then
    report SKIP sanitize 'no compute-sanitizer on PATH'
    return
  fi
  for program in $(programs kernels); do
    filter=$(some_tests "$program" "${SANITIZE_TESTS:-16}")
    [[ -n $filter ]] || continue
    for tool in memcheck racecheck initcheck; do
      run "$tool/${program##*/}" 500 "${bundled[@]}" compute-sanitizer --tool "$tool" \
        --error-exitcode 9 "$program" "--gtest_filter=$filter"
    done
  done
  # Frames in flight: their copies and kernels overlap.
  for program in "$here/tests/elements/elements_async_depth" "$here/tests/elements/elements_gaussian"; do
    [[ -x $program ]] || continue
    run "memcheck/${program##*/}" 300 "${bundled[@]}" CK_FORK=no compute-sanitizer --tool memcheck \
      --error-exitcode 9 "$program"
  done
}

# Python and its libraries come from the host, so LD_LIBRARY_PATH has no folder of the bundle: tests/gpu/gstreamer.py
# loads libraries that the host lacks from the bundle.
mode_frames() {
  local log=$logs/frames.log
  # shellcheck disable=SC2086
  run frames 550 env -u GST_PLUGIN_PATH -u GST_PLUGIN_SYSTEM_PATH GST_PLUGIN_SYSTEM_PATH_1_0="$here/gst" \
    GST_PLUGIN_PATH_1_0="$here/plugin" \
    GST_PLUGIN_SCANNER="$here/bin/gst-plugin-scanner" GST_REGISTRY="$state/registry-frames.bin" PYTHONUNBUFFERED=1 \
    python3 "$here/tests/gpu/frames_test.py" ${FRAMES_TESTS:-}
  grep -aE '^(#|refused:|kernels of)|\.\.\. (FAIL|ERROR|skipped)|^(FAIL|ERROR|[A-Za-z]*Error|AssertionError):' "$log" |
    cut -c1-160 | sed 's/^/      | /'
}

# Builds the peers if the host has NPP (CUB comes with nvcc). Reports a result in either case.
build_peers() {
  local name='peers (NPP, CUB)' nvcc header library folder part libraries=()
  nvcc=$(command -v nvcc || find /usr/local/cuda*/bin -name nvcc 2>/dev/null | tail -1)
  if [[ -z $nvcc ]]; then
    report SKIP "$name" 'no nvcc'
    return
  fi
  folder=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  header=$(find -L "$folder" /usr/include /usr/local/cuda*/ -maxdepth 5 -name nppi_filtering_functions.h 2>/dev/null |
    head -1)
  library=$(find -L "$folder" /usr/lib/x86_64-linux-gnu /usr/local/cuda*/ -maxdepth 5 -name 'libnppif.so*' \
    ! -path '*/stubs/*' 2>/dev/null | head -1)
  folder=$(dirname "$library")
  # Link by file name, because a runtime package has only versioned file names.
  for part in nppial nppif nppist nppc; do
    libraries+=(-Xlinker "$(find -L "$folder" -maxdepth 1 -name "lib$part.so*" 2>/dev/null | head -1)")
  done
  if [[ -z $header || " ${libraries[*]} " == *'-Xlinker  '* ]]; then
    report SKIP "$name" "nvcc, but no NPP (${header:-no header}, ${library:-no library})"
    return
  fi
  run "$name" 240 "$nvcc" -O2 -std=c++17 -arch=native -shared -Xcompiler -fPIC -cudart static \
    -I"$here" -I"$(dirname "$header")" \
    "$here/tests/bench/peers.cu" -o "$here/tests/bench/libcudavision-bench-npp.so" "${libraries[@]}" \
    -Xlinker -rpath="$folder" -Xcompiler -static-libstdc++ -Xcompiler -static-libgcc
}

mode_bench() {
  if [[ ${ONLY:-} ]]; then
    report SKIP bench/kernels 'ONLY names pipelines'
  elif [[ ! -x $here/tests/bench/bench_kernels ]]; then
    report SKIP bench/kernels 'no benchmarks in the bundle'
  else
    build_peers
    local log bench=("${bundled[@]}" "$here/tests/bench/bench_kernels" "--benchmark_out=$logs/kernels.json")
    run bench/kernels 300 "${bench[@]}"
    local status=$?
    if ((status != 0 && status != 77)) && [[ -f $here/tests/bench/libcudavision-bench-npp.so ]]; then
      cp "$logs/bench_kernels.log" "$logs/bench_kernels_with_peers.log"
      run 'bench/kernels without peers' 200 "${bench[@]}" --peers=none  # a crash in a peer also ended our measurements
      log=$logs/bench_kernels_without_peers.log
    else
      log=$logs/bench_kernels.log
    fi
    grep -aE '^#|/' "$log" | cut -c1-120
  fi
  if [[ ${ONLY:-} ]]; then
    report SKIP bench/cvcuda 'ONLY names pipelines'
  elif command -v python3 >/dev/null; then  # with the host's libraries, as in mode_frames
    run bench/cvcuda 200 python3 "$here/tests/bench/cvcuda_peers.py" --json="$logs/cvcuda.json"
    grep -aE '^#|/' "$logs/bench_cvcuda.log" | cut -c1-120
  else
    report SKIP bench/cvcuda 'no python3'
  fi
  if ! gpu; then
    report SKIP bench/pipelines 'no GPU'
  elif command -v python3 >/dev/null; then
    local clips=() clip
    for clip in "$here"/media/*.mp4; do [[ -f $clip ]] && clips+=("--clip=$clip"); done
    run bench/pipelines 900 "${bundled[@]}" python3 "$here/tests/bench/bench_pipelines.py" --plugin="$here/plugin" \
      --json="$logs/pipelines.json" --turns="${TURNS:-3}" --only="${ONLY:-}" ${FRAMES:+"--frames=$FRAMES"} \
      "${clips[@]}" || [[ $? == 1 ]] && cut -c1-220 "$logs/bench_pipelines.log"
  else
    report SKIP bench/pipelines 'no python3'
  fi
}

# name source: cudadiff must post the same messages on both backends.
same_events() {
  local backend
  if ! gpu || ! has cudadiff || ! has nvh264dec; then
    report SKIP "$1" "no GPU, cudadiff or nvh264dec"
    return
  fi
  for backend in cuda cpu; do
    # shellcheck disable=SC2086
    "${bundled[@]}" timeout 60 gst-launch-1.0 -m $2 ! video/x-raw ! cudadiff output=passthrough backend="$backend" ! \
      fakesink 2>/dev/null |
      sed -n 's/.*(element): cudadiff, //p' >"$state/events.$backend"
  done
  # shellcheck disable=SC2016
  run "$1" 10 bash -c '[[ $(wc -l <"$1") -ge 100 ]] && cmp "$1" "$2" && echo "$(wc -l <"$1") frames passed, 0 differ"' \
    sh "$state/events.cuda" "$state/events.cpu"
}

# name elements-needed pipeline: runs a pipeline. Skipped if an element or the GPU is missing.
launch() {
  local name=$1 element
  if ! gpu && [[ $3 != *backend=cpu* ]]; then
    report SKIP "$name" 'no GPU'
    return
  fi
  for element in $2; do
    if ! has "$element"; then
      report SKIP "$name" "no $element"
      return
    fi
  done
  # shellcheck disable=SC2086
  run "$name" 60 "${bundled[@]}" gst-launch-1.0 $3
}

# name elements-needed frames pipeline: a live pipeline, whose sink (named last) must render this many frames in time.
drops_none() {
  local element program=$here/tests/bench/pipeline_timing
  for element in $2; do
    if ! gpu || ! has "$element" || [[ ! -x $program ]]; then
      report SKIP "$1" "no GPU, $element or pipeline_timing"
      return
    fi
  done
  run "$1" 60 "${bundled[@]}" "$program" --rendered "$3" "$4"
}

# name element source [between]: between cudaupload, which lists system memory first, and a sink that accepts anything,
# all caps of the element must have CUDA memory, even with other elements between cudaupload and the element.
stays_on_the_gpu() {
  local between=${4:-}
  if ! gpu || ! has cudaupload || { [[ $between ]] && ! has "${between%% *}"; }; then
    report SKIP "$1" "no GPU, cudaupload or ${between%% *}"
    return
  fi
  # shellcheck disable=SC2016,SC2086
  run "$1" 60 "${bundled[@]}" bash -c '
    gst-launch-1.0 -v $2 ! cudaupload ${3:+! $3} ! $1 name=element ! fakesink | tee /dev/stderr |
      awk "/element\\.|:element:/ && /: caps = / { all++; cuda += /memory:CUDAMemory/ }
        END { exit !(all >= 2 && cuda == all) }"' \
    sh "$2" "$3" "$between"
}

mode_pipelines() {
  local ours='cudagaussian cudaconvolve' filters='cudagaussian backend=cuda ! cudaconvolve preset=sharpen backend=cuda'
  local raw='video/x-raw' cuda='video/x-raw(memory:CUDAMemory)' clip name
  local source="videotestsrc num-buffers=100 ! $raw,width=1280,height=720"
  run pipelines/inspect 60 "${bundled[@]}" gst-inspect-1.0 cudavision
  launch pipelines/system "$ours" "$source ! $filters ! $raw ! fakesink"
  launch pipelines/to-cuda "$ours" "$source,format=NV12 ! $filters ! $cuda ! fakesink"
  launch pipelines/from-cuda "$ours" \
    "$source,format=NV12 ! cudagaussian backend=cuda ! $cuda ! cudaconvolve preset=gradient ! $raw ! fakesink"
  launch pipelines/queue "$ours" \
    "$source,format=NV12 ! cudagaussian backend=cuda ! queue ! cudaconvolve preset=sharpen ! queue ! $raw ! fakesink"
  launch pipelines/tee "$ours" \
    "$source,format=NV12 ! cudagaussian backend=cuda ! tee name=t ! queue ! cudaconvolve preset=emboss ! $raw ! fakesink
     t. ! queue ! cudaconvolve preset=box ! $raw ! fakesink"
  local live='videotestsrc is-live=true num-buffers=300 pattern=blue' \
    last='fakesink name=last sync=true qos=true max-lateness=20000000'
  drops_none 'pipelines/live, 60 a second, system' "$ours" 300 \
    "$live ! $raw,format=RGBA,width=1920,height=1080,framerate=60/1 ! $filters ! $raw ! $last"
  drops_none 'pipelines/live, 60 a second, CUDA' "$ours cudadiff" 300 \
    "$live ! $raw,format=NV12,width=1920,height=1080,framerate=60/1 ! $filters ! cudadiff output=overlay backend=cuda
     ! $cuda ! $last"
  drops_none 'pipelines/live, 60 a second, blend' "cudablend cudagaussian" 300 \
    "cudablend name=b backend=cuda sink_1::alpha=0.5 ! $raw,format=NV12,width=1920,height=1080,framerate=60/1 ! $last
     $live ! $raw,format=NV12,width=1920,height=1080,framerate=60/1 ! b.
     $live ! $raw,format=RGBA,width=640,height=360,framerate=60/1 ! cudagaussian ! b."
  launch pipelines/gray "$ours" "$source,format=GRAY8 ! $filters ! $raw ! fakesink"
  launch pipelines/10-bit "$ours" "$source,format=P010_10LE ! $filters ! $raw ! fakesink"
  launch pipelines/odd-size "$ours" \
    "videotestsrc num-buffers=20 ! $raw,width=333,height=77,format=I420 ! $filters ! $raw ! fakesink"
  launch pipelines/cpu "$ours" \
    "videotestsrc num-buffers=20 ! cudagaussian backend=cpu ! cudaconvolve preset=sharpen backend=cpu ! fakesink"
  launch pipelines/upload "$ours cudaupload cudadownload" \
    "$source,format=NV12 ! cudaupload ! $filters ! cudadownload ! fakesink"
  for name in cudaconvolve cudablend; do
    stays_on_the_gpu "pipelines/$name stays on the GPU" "$name" "$source,format=NV12"
  done
  stays_on_the_gpu 'pipelines/queue, tee stay on the GPU' cudablend "$source,format=NV12" 'queue ! tee name=t ! queue'
  stays_on_the_gpu 'pipelines/imagefreeze stays on the GPU' cudaconvolve "$source,format=NV12" \
    'imagefreeze num-buffers=20'
  stays_on_the_gpu 'pipelines/videorate stays on the GPU' cudagaussian "$source,format=NV12" \
    'videorate ! video/x-raw(ANY),framerate=60/1'
  launch pipelines/diff "$ours cudadiff" \
    "$source,format=NV12 ! cudagaussian backend=cuda ! cudaconvolve preset=sharpen ! cudadiff output=overlay ! $raw
     ! fakesink"
  launch pipelines/motion cudadiff "$source,format=NV12 ! cudadiff backend=cuda output=passthrough ! fakesink"
  launch pipelines/histogram cudahistogram \
    "$source,format=NV12 ! cudahistogram channels=all add-meta=true backend=cuda ! $raw ! fakesink"
  launch pipelines/histogram-pictures "$ours cudahistogram" \
    "$source,format=RGBA ! cudagaussian backend=cuda ! cudahistogram equalize=true overlay=true backend=cuda
     ! $cuda ! cudahistogram ! $raw ! fakesink"
  launch pipelines/integral "cudaintegral $ours" \
    "$source,format=NV12 ! cudagaussian backend=cuda ! cudaintegral squared=true backend=cuda ! $raw ! fakesink"
  launch pipelines/x-integral cudaintegral \
    "$source,format=RGBA ! cudaintegral channel=all backend=cuda ! video/x-integral,format=F32LE ! fakesink"
  launch pipelines/threshold cudaintegral \
    "$source,format=NV12 ! cudaintegral output=threshold radius=20 backend=cuda ! $raw ! fakesink"
  launch pipelines/mosaic cudaintegral \
    "$source,format=NV12 ! cudaintegral output=pixelate radius=0 region=roi regions=0.1,0.1,0.3,0.4 backend=cuda
     ! $raw ! fakesink"
  launch pipelines/blend "cudablend cudagaussian" \
    "cudablend name=b backend=cuda sink_1::alpha=0.5 sink_1::xpos=200 sink_1::width=400 ! $raw ! fakesink
     $source,format=NV12 ! cudagaussian backend=cuda ! b. $source,format=RGBA ! b."
  launch pipelines/blend-wall cudablend \
    "cudablend name=b backend=cuda layout=grid gap=8 ! $cuda,format=NV12 ! fakesink
     $source,format=NV12 ! b. $source,format=I420 ! b. $source,format=GRAY8 ! b."
  launch pipelines/blend-fusion cudablend \
    "cudablend name=f backend=cuda sink_1::operator=average sink_1::alpha=0.65 sink_1::key=first-pixel ! $raw
     ! fakesink cudablend name=w backend=cuda layout=grid ! $raw,width=1280,height=720 ! f. $source,format=RGB ! f.
     $source,format=NV12 ! w. $source,format=P010_10LE ! w."
  local found=0
  for clip in "$here"/media/*.mp4; do
    [[ -f $clip ]] || continue
    found=1 name=${clip##*/}
    launch "pipelines/decode blend $name" "cudablend cudaconvolve qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! tee name=t ! queue
       ! cudablend name=b backend=cuda layout=grid columns=2 ! $cuda ! fakesink
       t. ! queue ! cudaconvolve preset=gradient backend=cuda ! b."
    launch "pipelines/decode twice, blend $name" "cudablend qtdemux h264parse nvh264dec" \
      "cudablend name=b backend=cuda sink_1::xpos=100 sink_1::width=200 sink_1::alpha=0.5 ! $cuda ! fakesink
       filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! b.
       filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! b."
    launch "pipelines/decode $name" "$ours qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! $filters ! fakesink"
    launch "pipelines/decode to system $name" "$ours qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! $filters ! $raw ! fakesink"
    # Only the grid of motion leaves the GPU here. The overlay pipeline below also downloads the frames.
    launch "pipelines/decode motion $name" "cudadiff qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! cudadiff output=passthrough backend=cuda ! fakesink"
    same_events "pipelines/same events $name" "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec"
    launch "pipelines/decode overlay to system $name" "cudadiff qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! cudadiff output=overlay reference=background
       backend=cuda ! $raw ! fakesink"
    launch "pipelines/decode histogram $name" "cudahistogram qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! cudahistogram ! fakesink"
    launch "pipelines/decode histogram to system $name" "cudahistogram qtdemux h264parse nvh264dec" \
      "filesrc location=$clip ! qtdemux ! h264parse ! nvh264dec ! cudahistogram add-meta=true backend=cuda
       ! $raw ! fakesink"
  done
  ((found)) || report SKIP pipelines/decode 'no .mp4 in the bundle'
  for name in $("${bundled[@]}" gst-inspect-1.0 cudavision | sed -n 's/^  \(cuda[a-z0-9]*\):.*/\1/p'); do
    declare -f mode_pipelines | grep -qw "$name" ||
      report FAIL "pipelines/$name" 'no pipeline of run.sh has this element'
  done
}

(($#)) || set -- tests
[[ $* == all ]] && set -- tests late neighbours sanitize pipelines frames bench
for mode in "$@"; do
  case $mode in
    tests | late | neighbours | sanitize | bench | pipelines | frames | soak) ;;
    *) sed -n '4,27p' "$0" >&2; exit 2 ;;
  esac
done
printf '# cudavision %s on %s\n' "$(cat "$here/VERSION")" \
  "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 || true)"
for mode in "$@"; do "mode_$mode"; done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
