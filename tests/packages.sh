#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs the packages in a fresh Debian of this machine's release:   tests/packages.sh wheel | deb | container [FILE]
#   wheel, deb   runs the commands of docs/install.md there, and removes the package again. Without FILE it builds the
#                package first
#   container    runs the steps of gst/packaging/Dockerfile there, without docker: each FROM is a fresh root
# CUDA=auto also builds the CUDA backend, which is slow; the default, disabled, builds only the CPU backend. debootstrap
# makes the root in COMPAT_DIR (~/.cache/cudavision), from COMPAT_MIRROR. Exit status 77 (skipped) without root,
# debootstrap, a network, or mounts. It runs only on request (WITH=packages tests/run.sh), because it takes minutes.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kind=${1:-} file=${2:-}
CUDA=${CUDA-disabled}
export CUDA
unset BUILD_DIR  # packages have their own folders
fail() { echo "$*" >&2; exit 1; }
case $kind in wheel | deb | container) ;; *) fail 'usage: tests/packages.sh wheel | deb | container [FILE]' ;; esac
if [[ -n $file ]]; then file=$(realpath "$file"); fi
# shellcheck source=tests/roots.sh
. "$root/tests/roots.sh"
((EUID == 0)) || skip 'only root can make a Debian in a folder'
needs_roots debootstrap
fresh=$cache/$this_suite-minimal
make_root "$this_suite" "$fresh"
work=$(mktemp -d "$cache/packages-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

new_root() { cp -a "$fresh" "$work/$1"; }  # NAME: a fresh Debian in $work/NAME
inside() {  # NAME COMMAND [VARIABLE=VALUE]…: runs a bash command in a root
  echo "+ $2"
  # shellcheck disable=SC2016
  in_root "$work/$1" 'cd "$HOME"; sudo() { "$@"; }; '"$2" "${@:3}"
}
commands_of() {  # HEADING: the commands in the first block below a heading of docs/install.md
  awk -v heading="## $1" \
    '$0 == heading { below = 1 } below && /^```$/ { exit } block { print } below && /^```sh$/ { block = 1 }' \
    "$root/docs/install.md"
}
timed() {  # WHAT COMMAND…
  local began=$SECONDS
  "${@:2}"
  echo "$1 took $((SECONDS - began)) s"
}

test_package() {  # HEADING PATTERN_OF_FILE
  if [[ -z $file ]]; then
    timed "building the $kind" "$root/gst/packaging/$kind.sh" "$work/dist"
    file=$(find "$work/dist" -name "$2")
  fi
  new_root system
  inside system 'apt-get -qq update'
  mkdir -p "$work/system/root/dist"
  cp "$file" "$work/system/root/dist/"
  timed 'installing and trying it' inside system "$(commands_of "$1")"
  timed 'a blurred and analysed clip' inside system "$(commands_of "$1" | grep ^export || true)
$(commands_of 'First pipeline')
test -s blurred.mkv"
  # Only the package's own files disappear, and all of them.
  if [[ $kind == deb ]]; then
    inside system 'apt-get remove -y gstreamer1.0-cudavision >/dev/null; ! gst-inspect-1.0 --exists cudablend'
  else
    inside system 'cudavision/bin/pip uninstall -y cudavision >/dev/null; rm -r dist'
  fi
  rm -rf "$work/system/root/dist" "$work/system/root/.cache"
  local left
  left=$(find "$work/system" -xdev -iname '*cudavision*' -not -path "$work/system/root/cudavision" \
    -not -path '*/dpkg/info/*')
  if [[ -n $left ]]; then fail "left behind after the removal: $left"; fi
}

# The steps that gst/packaging/Dockerfile uses: ARG, ENV with NAME=VALUE words, FROM, RUN and COPY on one line each, and
# CMD as a list.
test_container() {
  local line word argument value stage='' variables=() source target found
  local -A given=([DEBIAN]=$this_suite [CUDA_ARCH]=${CUDA_ARCH:-all} [CUDA]=$([[ $CUDA == disabled ]] || echo 13.0))
  while IFS= read -r line; do
    read -ra word <<<"$line"
    case ${word[0]:-#} in
      '#'*) ;;
      ARG)
        argument=${word[1]%%=*}
        value=${given[$argument]-${word[1]#*=}}
        if [[ -n $stage ]]; then variables+=("$argument=$value"); fi
        ;;
      ENV) variables+=("${word[@]:1}") ;;
      FROM)
        [[ ${word[1]} == "debian:\${DEBIAN}" ]] || fail "no such image here: ${word[1]}"
        stage=${word[3]:-final} variables=()
        new_root "$stage"
        ;;
      RUN) timed 'this step' inside "$stage" "cd /; ${line#RUN }" "${variables[@]}" ;;
      COPY)
        if [[ ${word[1]} == --from=* ]]; then
          source=$work/${word[1]#--from=}${word[2]} target=${word[3]}
        else
          source=$root/${word[1]} target=${word[2]}
        fi
        mkdir -p "$work/$stage$target"
        if [[ $source == "$root/." ]]; then
          git -C "$root" archive HEAD | tar -x -C "$work/$stage$target"
        else
          cp -r "$source/." "$work/$stage$target"
        fi
        ;;
      CMD)
        found=$(/usr/bin/python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' \
          "${line#CMD }")
        inside "$stage" "$found" "${variables[@]}"
        ;;
      *) fail "this test does not know the step: $line" ;;
    esac
  done <"$root/gst/packaging/Dockerfile"
}

case $kind in
  wheel) test_package Wheel '*.whl' ;;
  deb) test_package 'Debian package' '*.deb' ;;
  container) test_container ;;
esac
