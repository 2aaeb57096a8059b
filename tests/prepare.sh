# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the scripts that build. Lists the Debian packages and runs the build. Needs bash with -euo pipefail.
# INSTALL=0 installs nothing; CUDA_HOME names a CUDA toolkit that is neither on PATH nor at /usr/local/cuda.
# shellcheck disable=SC2034  # the sourcing scripts use the lists

packages_build=(g++ meson ninja-build pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
  libopencv-core-dev libopencv-imgproc-dev)
packages_cuda=(libgstreamer-plugins-bad1.0-dev)  # GStreamer's CUDA library; on Debian 12 it depends on all of OpenCV
packages_run=(gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav)
packages_report=(python3-gi python3-gst-1.0 gir1.2-gst-plugins-base-1.0)  # the examples in Python
packages_test=(libgtest-dev libbenchmark-dev valgrind python3 python3-numpy cppcheck shellcheck)
# Large programs that single tests use, by the word that asks for them (WITH='mqtt browser' tests/run.sh). Tests skip without them.
declare -A packages_with=(
  [browser]='chromium chromium-driver python3-selenium fonts-dejavu-core'
  [mqtt]='mosquitto mosquitto-clients python3-paho-mqtt python3-prometheus-client gir1.2-gst-rtsp-server-1.0 gstreamer1.0-x curl openssl'
  [packages]='debootstrap dpkg-dev python3-venv'  # also runs tests/packages.sh
  [ray]=python3-venv  # and a virtual environment: see make_ray_environment
)
if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
  packages_test+=(clang-format)  # version 14: see tests/lint.sh
else
  packages_test+=(libgstreamer-plugins-bad1.0-dev)  # GStreamer's analytics metas, from 1.24 on
fi

# Prints the path of nvcc, found like in meson.build. Status 1 if there is none.
find_nvcc() { command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; }

# install_packages PACKAGE…: installs missing packages with apt-get, as root or with sudo. If none is missing it needs neither of them, nor
# a network.
install_packages() {
  local package log missing=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qqy -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  if [[ ${INSTALL:-1} == 0 ]]; then return; fi
  if ! command -v dpkg-query apt-get >/dev/null; then
    echo "no apt-get here: using the installed ones of $*" >&2
    return
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed* ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  echo "installing ${missing[*]}"
  if ((EUID)); then
    if ! command -v sudo >/dev/null; then
      echo "only root can install packages, and there is no sudo; as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    apt=(sudo "${apt[@]}")
  fi
  if ! log=$("${apt[@]}" update 2>&1 && "${apt[@]}" install --no-install-recommends "${missing[@]}" 2>&1); then
    printf '%s\ncould not install %s\n' "$log" "${missing[*]}" >&2
    return 1
  fi
}

# install_asked_for WORDS: installs the packages of these words, which are separated by spaces. Status 1 if there is no such word.
install_asked_for() {
  local words word more packages=()
  read -ra words <<<"$1"
  for word in "${words[@]}"; do
    if [[ ! -v packages_with[$word] ]]; then
      echo "WITH=$word is not known; known are: ${!packages_with[*]}" >&2
      return 1
    fi
    read -ra more <<<"${packages_with[$word]}"
    packages+=("${more[@]}")
  done
  install_packages "${packages[@]}"
}

# make_ray_environment BUILD_FOLDER: makes BUILD_FOLDER/ray, a virtual environment for examples/motion-scan, if WITH asks for Ray.
make_ray_environment() {
  local list=examples/motion-scan/requirements.txt environment=$1/ray
  if [[ " ${WITH:-} " != *' ray '* || ${INSTALL:-1} == 0 ]]; then return; fi
  list=$(dirname "${BASH_SOURCE[0]}")/../$list
  if cmp -s "$list" "$environment/requirements.txt"; then return; fi
  echo "installing $(grep -v '^#' "$list" | tr '\n' ' ')into $environment"
  /usr/bin/python3 -m venv --system-site-packages "$environment" &&
    "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$list" &&
    cp "$list" "$environment/requirements.txt"
}

# install_for_build PACKAGE…: installs the packages of any build, those for CUDA if there is nvcc, and the named ones.
install_for_build() {
  if find_nvcc >/dev/null; then set -- "${packages_cuda[@]}" "$@"; fi
  install_packages "${packages_build[@]}" "$@"
}

# build_project SOURCE_FOLDER BUILD_FOLDER [MESON_OPTION | TARGET]…: configures and builds. Always configures again, since packages may have
# been installed.
build_project() {
  local source=$1 build=$2 argument options=() targets=()
  shift 2
  for argument in "$@"; do
    if [[ $argument == -* ]]; then options+=("$argument"); else targets+=("$argument"); fi
  done
  if [[ -f $build/build.ninja ]]; then options+=(--reconfigure); fi
  mkdir -p "$build"
  if ! meson setup "${options[@]}" "$build" "$source" >"$build/setup.log" 2>&1; then
    cat "$build/setup.log" >&2
    return 1
  fi
  sed -n '/^  Backends/,/^$/p' "$build/setup.log"
  ninja -C "$build" "${targets[@]}"
}
