# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the shell examples. gst-launch-1.0 parses its arguments, so it would treat a file name as part of the
# pipeline. Therefore inputs are URIs, which have no special characters, and the output is a file that is already open.
# Exit status of the examples: 0; 1 after a failure, with one sentence on stderr; 2 for wrong usage.

temporaries=()
trap 'rm -rf -- "${temporaries[@]}"' EXIT

# shellcheck disable=SC2034  # used by the sourcing scripts
out=/dev/fd/3  # the command that `save` runs must write to this file

# shellcheck disable=SC2034
# For uridecodebin: sound is not decoded, and a file without video is an error.
video=('caps=video/x-raw(ANY)' expose-all-streams=false)

complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() { complain "$@"; exit 1; }
misuse() { complain "$*; see --help"; exit 2; }

# arguments LEAST MOST ARGUMENT…: checks a command line. The help is the comment at the top of the script.
arguments() {
  local least=$1 most=$2 argument
  shift 2
  for argument in "$@"; do
    case $argument in
      -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
      -?*) misuse "there is no option $argument (a file of that name is ./$argument)" ;;
    esac
  done
  if (($# < least)); then misuse 'an argument is missing'; fi
  if (($# > most)); then misuse "the argument ${*:most + 1:1} is one too many"; fi
}

# size WIDTHxHEIGHT: sets `width` and `height`.
# shellcheck disable=SC2034
size() {
  [[ $1 =~ ^([1-9][0-9]{0,4})x([1-9][0-9]{0,4})$ ]] || misuse "$1 is not a size such as 640x480"
  width=${BASH_REMATCH[1]} height=${BASH_REMATCH[2]}
}

# readable FILE: fails if FILE cannot be read or is empty.
readable() {
  if [[ -d $1 ]]; then fail "cannot read $1: it is a folder"; fi
  if [[ ! -e $1 ]]; then fail "cannot read $1: there is no such file"; fi
  if [[ ! -r $1 ]]; then fail "cannot read $1: permission denied"; fi
  if [[ -f $1 && ! -s $1 ]]; then fail "cannot read $1: it is empty"; fi
}

# playable FILE: fails if FILE cannot be read or is neither video nor a picture. With a text file, GStreamer 1.26's
# uridecodebin sometimes reports nothing, and a pipeline with a mixer then waits forever.
playable() {
  readable "$1"
  [[ -f $1 ]] || return 0
  case $(gst-typefind-1.0 "$1" 2>&1) in
    *' - FAILED: '* | *' - text/'*) fail "$1: there is no video in it" ;;
  esac
}

# uri FILE: prints the URI of a playable file, with special characters percent-encoded.
uri() {
  local LC_ALL=C path=$1 text=file:// character i code
  playable "$path"
  [[ $path == /* ]] || path=$PWD/$path
  for ((i = 0; i < ${#path}; ++i)); do
    character=${path:i:1}
    if [[ $character != [A-Za-z0-9/._-] ]]; then
      printf -v code %d "'$character"
      printf -v character %%%02X $((code & 255))
    fi
    text+=$character
  done
  printf %s "$text"
}

# launch ARGUMENT…: runs gst-launch-1.0. Prints the first error in one sentence, with the name of the file that caused
# it.
launch() {
  local log first argument uris=() file=
  if { log=$(LANGUAGE=en gst-launch-1.0 "$@" 2>&1 >&4); } 4>&1; then
    if [[ -n $log ]]; then printf '%s\n' "$log" >&2; fi
    return
  fi
  first=$(sed -n '/^ERROR: from element \|^WARNING: erroneous pipeline: /{p;q}' <<<"$log")
  for argument in "$@"; do
    if [[ $argument == uri=* ]]; then uris+=("${argument#uri=file://}"); fi
  done
  # gst-launch-1.0 numbers the elements of each type in order.
  if [[ $first =~ /GstURIDecodeBin:uridecodebin([0-9]+) ]]; then
    printf -v file '%b: ' "${uris[BASH_REMATCH[1]]//%/\\x}"
  fi
  first=${first#*: * *: }
  if [[ $first == 'no element "cuda'* ]]; then first+='; set GST_PLUGIN_PATH to the folder of libgstcudavision.so'; fi
  if [[ $first == *'missing a plug-in'* ]]; then
    first='there is no video in it, or the plugin that decodes it is missing'
  fi
  complain "$file${first:-gst-launch-1.0 failed: $log}"
  return 1
}

# proper_name FILE COMMANDS: refuses a FILE whose name ends like another kind of file than the COMMANDS write.
proper_name() {
  local kind=numbers ending=.txt
  case $2 in
    *' matroskamux '*) kind=Matroska ending=.mkv ;;
    *' pngenc '*) kind=PNG ending=.png ;;
  esac
  if [[ ${1,,} =~ \.(avi|bmp|jpeg|jpg|m4v|mkv|mov|mp4|png|tif|tiff|ts|webm|webp)$ && ${1,,} != *"$ending" ]]; then
    misuse "$1 would be $kind: choose a name that ends in $ending"
  fi
}

# save FILE COMMAND…: runs COMMAND, which writes to $out. The result becomes FILE if COMMAND succeeds, and is removed
# if it fails.
save() {
  local file=$1 temporary
  shift
  if [[ -d $file || $file == */ ]]; then fail "cannot write $file: it is a folder"; fi
  proper_name "$file" "$*
$(declare -f -- "$1" || true)"
  if [[ -e $file && ! -f $file ]]; then  # a device or a pipe
    "$@" 3>"$file" || exit 1
    return
  fi
  if [[ -L $file ]]; then file=$(readlink -f -- "$file"); fi
  [[ $file == */* ]] || file=./$file
  temporary=$(mktemp -- "${file%/*}/.XXXXXXXXXX" 2>/dev/null) ||
    fail "cannot write $file: its folder does not exist or cannot be written"
  temporaries+=("$temporary")
  "$@" 3>"$temporary" || exit 1
  [[ -s $temporary ]] || fail "$file was not written: there is no picture in the input"
  chmod "$(printf %o $((0666 & ~$(umask))))" "$temporary"
  mv -fT -- "$temporary" "$file" 2>/dev/null ||
    fail "cannot write $file: its name is too long, or its folder does not let it be replaced"
}
