# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the scripts that build. Lists the Debian packages and runs the build. Needs bash with -euo pipefail.
# INSTALL=0 installs nothing. CUDA_HOME names a CUDA toolkit that is neither on PATH nor at /usr/local/cuda. CUDA=1
# builds the CUDA backend on a machine without a GPU, CUDA=0 never does.
# shellcheck disable=SC2034  # the sourcing scripts use the lists

packages_build=(g++ meson ninja-build pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
  libopencv-core-dev libopencv-imgproc-dev)
packages_cuda=(libgstreamer-plugins-bad1.0-dev)  # GStreamer's CUDA library; on Debian 12 it depends on all of OpenCV
packages_run=(gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
  gstreamer1.0-libav)
packages_report=(python3-gi python3-gst-1.0 python3-numpy gir1.2-gst-plugins-base-1.0)  # the examples in Python
packages_test=(libgtest-dev libbenchmark-dev valgrind python3 python3-numpy cppcheck flake8 shellcheck)
packages_fuzz=(clang llvm libclang-rt-dev python3-venv)  # tests/fuzz/fuzz.sh
# Large programs that single tests use, by the word that requests them (WITH='mqtt browser' tests/run.sh). Tests skip
# without them. Debian's OpenCV for Python takes 2 MB after the development files of GStreamer's CUDA library, which
# need all of OpenCV, and 81 MB without them (Debian 12). PyPI's takes 61 MB, and does not match Debian's Python and
# NumPy.
declare -A packages_with=(
  [browser]='chromium chromium-driver python3-selenium fonts-dejavu-core'
  [mkdocs]=mkdocs
  [mqtt]="mosquitto mosquitto-clients python3-paho-mqtt python3-prometheus-client \
    gir1.2-gst-rtsp-server-1.0 gstreamer1.0-x curl openssl faketime libnss-wrapper"
  [onvif]=python3-venv  # and a virtual environment: see make_environments
  [opencv]=python3-opencv
  [packages]='debootstrap dpkg-dev python3-venv'  # also runs tests/packages.sh
  [ray]=python3-venv  # and a virtual environment: see make_environments
)
if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
  packages_test+=(clang-format)  # version 14: see tests/lint.sh
else
  packages_test+=(libgstreamer-plugins-bad1.0-dev)  # GStreamer's analytics metas, from 1.24 on
fi

# NVIDIA's compiler from PyPI. It needs a driver for CUDA 13 or newer (580).
packages_nvcc=('nvidia-cuda-nvcc==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-runtime==13.0.*'
  'nvidia-cuda-cccl==13.0.*')

# find_nvcc [--version]: prints the path, or the version, of an nvcc that is new enough. Status 1 if there is none.
find_nvcc() { "$(dirname "${BASH_SOURCE[0]}")/../kernels/find_nvcc.sh" "$@"; }

# Whether this machine has an NVIDIA GPU and its driver.
has_gpu() { [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]; }

# Prints the CUDA version of the driver, such as 13, or nothing if it is unknown.
driver_version() { nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' | head -1; }

# Whether the driver is too old for the code of the nvcc found. Prints the reason on stderr.
driver_is_too_old() {
  local driver version
  driver=$(driver_version) version=$(find_nvcc --version) || return 1
  [[ $driver ]] && ((driver < ${version%%.*})) || return 1
  echo "the driver is for CUDA $driver, and the compiler $(find_nvcc) is for CUDA $version: its code does not" \
    'run here; install a newer driver or an older toolkit (12.1 is enough)' >&2
}

# use_nvcc_of BUILD_FOLDER: sets CUDA_HOME to the compiler that get_nvcc installed there. Status 1 if there is none.
use_nvcc_of() {
  [[ -x $1/nvcc/nvidia/cu13/bin/nvcc ]] && export CUDA_HOME=$1/nvcc/nvidia/cu13
}

# get_nvcc BUILD_FOLDER: installs NVIDIA's compiler from PyPI into BUILD_FOLDER/nvcc, and sets CUDA_HOME. Status 1, with
# the reason on stderr, if that is impossible.
get_nvcc() {
  local driver
  driver=$(driver_version)
  if [[ ${INSTALL:-1} == 0 ]]; then
    echo 'there is no CUDA compiler (nvcc from 12.1 on), and INSTALL=0 installs none' >&2
    return 1
  elif [[ $driver ]] && ((driver < 13)); then
    echo "the driver is for CUDA $driver, and the compiler from PyPI needs one for CUDA 13 (580 or newer);" \
      'or install a toolkit from CUDA 12.1 on that is not newer than the driver (on Debian 13 nvidia-cuda-toolkit)' >&2
    return 1
  fi
  echo "no CUDA compiler (nvcc from 12.1 on) here: installing NVIDIA's from PyPI into $1/nvcc"
  install_nvcc "$1/nvcc" && use_nvcc_of "$1"
}
# install_nvcc FOLDER: installs it there; CUDA_HOME is then FOLDER/nvidia/cu13.
install_nvcc() {
  install_packages python3-pip && /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --target="$1" \
    "${packages_nvcc[@]}"
}

# cuda_option: prints meson's option cuda for the variable CUDA: enabled for 1, disabled for 0, otherwise auto. Status 1
# for another word.
cuda_option() {
  case ${CUDA:-auto} in
    1 | enabled) echo enabled ;;
    0 | disabled) echo disabled ;;
    auto) echo auto ;;
    *)
      echo "CUDA=$CUDA is not valid: it must be 1 or 0" >&2
      return 1
      ;;
  esac
}

# copy_source FOLDER: copies only what a build needs from this tree.
copy_source() {
  local root
  root=$(dirname "${BASH_SOURCE[0]}")/..
  mkdir -p "$1"
  (cd "$root" && tar --exclude=__pycache__ -cf - debian docs examples gst kernels release tests \
    meson.build meson_options.txt pyproject.toml LICENSE ./*.md) | tar -C "$1" -xf -
}

# has_compiler BUILD_FOLDER auto|enabled: whether there is a compiler. Installs one if necessary. With auto, this
# machine must be able to run its code.
has_compiler() {
  if find_nvcc >/dev/null; then
    if [[ $2 == auto ]] && driver_is_too_old; then return 1; fi
  else
    get_nvcc "$1"
  fi
}

# choose_backends BUILD_FOLDER 0|1: sets backend_options to meson's options for a build with the CUDA backend (1) or
# without it. CUDA has precedence. An existing build folder keeps its backends, unless it was made without CUDA here and
# now gets it. Installs the compiler if necessary.
choose_backends() {
  local build=$1 wanted=$2 asked note=$1/without-cuda
  asked=$(cuda_option) || return 1
  case $asked in
    enabled) wanted=1 ;;
    disabled) wanted=0 ;;
  esac
  backend_options=() with_cuda=0
  mkdir -p "$build"
  use_nvcc_of "$build" || true
  if [[ -f $build/build.ninja && ! -f $note && $asked == auto ]]; then
    if find_nvcc >/dev/null; then with_cuda=1; fi
    return
  fi
  if ((wanted)) && ! has_compiler "$build" "$asked"; then
    if [[ $asked == enabled ]]; then return 1; fi
    echo 'building only the CPU backend' >&2
    wanted=0
  fi
  if ((wanted)); then
    rm -f "$note"
    with_cuda=1 backend_options=(-Dcuda="$asked")
    # One architecture compiles in half the time of the default's two. Without CUDA=1, the kernels are not meant for
    # another machine either, so they need not be fast.
    if ! has_gpu; then
      backend_options+=(-Dcuda-arch=90 -Dcuda-optimize="$([[ $asked == enabled ]] && echo true || echo false)")
    fi
  else
    touch "$note"
    backend_options=(-Dcuda=disabled)
  fi
}

# install_packages PACKAGE…: installs missing packages with apt-get, as root or with sudo. If none is missing, it needs
# neither root nor a network.
install_packages() {
  local package log missing=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qqy -o DPkg::Lock::Timeout=300
    -o Dpkg::Use-Pty=0)
  if [[ ${INSTALL:-1} == 0 ]]; then return; fi
  if ! command -v dpkg-query apt-get >/dev/null; then
    echo "no apt-get here: using what is installed of $*" >&2
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

# install_asked_for WORDS: installs the packages of these words, which are separated by spaces. Status 1 for an unknown
# word.
install_asked_for() {
  local words word more packages=()
  read -ra words <<<"$1"
  for word in "${words[@]}"; do
    if [[ ! -v packages_with[$word] ]]; then
      echo "WITH=$word is not valid: the words are ${!packages_with[*]}" >&2
      return 1
    fi
    read -ra more <<<"${packages_with[$word]}"
    packages+=("${more[@]}")
  done
  install_packages "${packages[@]}"
}

# make_environments BUILD_FOLDER: makes the virtual environments that WITH requests: BUILD_FOLDER/ray for
# examples/motion-scan, and BUILD_FOLDER/onvif for examples/motion-alarm-service and the clients of its test.
make_environments() {
  local root word list environment names made
  local -A lists=(
    [ray]=examples/motion-scan/requirements.txt
    [onvif]='examples/motion-alarm-service/requirements.txt tests/examples/motion_alarm_service/onvif_clients.txt'
  )
  if [[ ${INSTALL:-1} == 0 ]]; then return; fi
  root=$(dirname "${BASH_SOURCE[0]}")/..
  for word in "${!lists[@]}"; do
    if [[ " ${WITH:-} " != *" $word "* ]]; then continue; fi
    environment=$1/$word made=$1/$word/requirements.txt
    read -ra names <<<"${lists[$word]}"
    list=$(cd "$root" && cat "${names[@]}") || return
    if [[ -f $made && $list == "$(<"$made")" ]]; then continue; fi
    echo "installing $(grep -v '^#' <<<"$list" | tr '\n' ' ')into $environment"
    /usr/bin/python3 -m venv --system-site-packages "$environment" &&
      "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement <(echo "$list") &&
      echo "$list" >"$made" || return
  done
}

# install_for_build PACKAGE…: installs the packages of any build, the named ones, and those for CUDA if choose_backends
# chose it. Without choose_backends, it installs them if there is an nvcc.
install_for_build() {
  local cuda=${with_cuda:-}
  if [[ ! $cuda ]]; then if find_nvcc >/dev/null; then cuda=1; else cuda=0; fi; fi
  if ((cuda)); then set -- "${packages_cuda[@]}" "$@"; fi
  install_packages "${packages_build[@]}" "$@"
}

# build_project SOURCE_FOLDER BUILD_FOLDER [MESON_OPTION | TARGET]…: configures and builds. Always configures again,
# because packages may have been installed. A new folder gets no debug information unless requested (-Ddebug=true): C++
# then compiles in two thirds of the time.
build_project() {
  local source=$1 build=$2 argument options=() targets=()
  shift 2
  for argument in "$@"; do
    if [[ $argument == -* ]]; then options+=("$argument"); else targets+=("$argument"); fi
  done
  if [[ -f $build/build.ninja ]]; then
    options+=(--reconfigure)
  else
    options=(-Ddebug=false "${options[@]}")
  fi
  mkdir -p "$build"
  if ! meson setup "${options[@]}" "$build" "$source" >"$build/setup.log" 2>&1; then
    cat "$build/setup.log" >&2
    return 1
  fi
  sed -n '/^  Backends/,/^$/p' "$build/setup.log"
  ninja -C "$build" "${targets[@]}"
}
