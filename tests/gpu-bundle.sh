#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packs all tests and benchmarks for a GPU host that has only the driver (no GStreamer, no OpenCV, no meson):
#   tests/gpu-bundle.sh [-b BUILD_FOLDER] [-o TARBALL] [MEDIA_FILE …]
# On the host (tests/gpu/run.sh explains its other modes):
#   tar xf cudavision-gpu.tar.xz && cudavision-gpu/run.sh all
# On a host without xz: python3 -m tarfile -e cudavision-gpu.tar.xz. The suffix of TARBALL (.xz, .gz, .zst) selects the
# compression. The host's glibc must not be older than this machine's. Omits programs that are not built, and prints
# their names.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build=$root/build
tarball=$root/dist/cudavision-gpu.tar.xz
while getopts b:o: option; do
  case $option in
    b) build=$(cd "$OPTARG" && pwd) ;;
    o) tarball=$(realpath -m "$OPTARG") ;;
    *) sed -n '3,9p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

if grep -qs -- --Ofast-compile "$build/build.ninja"; then
  echo "the kernels in $build are not optimized; first:" >&2
  echo "  meson configure $build -Dcuda-optimize=true && ninja -C $build" >&2
  exit 1
fi
# shellcheck source=tests/prepare.sh
. "$here/prepare.sh"
install_packages xz-utils

# The GStreamer plugins that tests, examples and benchmarks use. libav and opencv are omitted because of their size
# (opencv: 50 MB).
gst_plugins=(coreelements coretracers app videotestsrc videoconvertscale videorate videocrop videobox videofilter
  imagefreeze compositor typefindfunctions playback isomp4 matroska avi videoparsersbad jpeg jpegformat png rawparse
  y4mdec multifile nvcodec autodetect deinterlace alpha)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
bundle=$stage/cudavision-gpu
mkdir -p "$bundle"/{bin,lib,gst,plugin,media,python,tests/{kernels,elements,fuzz,soak,bench,gpu}} \
  "$(dirname "$tarball")"
missing=()

is_program() { [[ -f $1 && -x $1 && $(head -c 4 "$1") == $'\x7fELF' ]]; }
taken=()
take() {  # file folder: copies without debug information, which is most of a test's size; keeps the line numbers of
          # kernels
  taken+=("$(readlink -f "$1")")
  install -m 755 "$(readlink -f "$1")" "$2/$(basename "$1")"
  strip --strip-debug "$2/$(basename "$1")" 2>/dev/null || true
}

# The plugin and the test programs of the build.
if [[ -f $build/gst/libgstcudavision.so ]]; then
  take "$build/gst/libgstcudavision.so" "$bundle/plugin"
else
  missing+=(libgstcudavision.so)
fi
for folder in kernels elements fuzz soak bench; do
  found=0
  for file in "$build/tests/$folder"/*; do
    is_program "$file" || continue
    take "$file" "$bundle/tests/$folder"
    found=1
  done
  ((found)) || missing+=("tests/$folder")
done

# The host compiles the peers, if it has their toolkit.
cp "$here"/bench/{peers.cu,peer.h,bench_pipelines.py,machine.py,cvcuda_peers.py,report.py,plot.py} \
  "$bundle/tests/bench/"
cp "$here"/gpu/*.py "$bundle/tests/gpu/"
cp -r "$root/gst/python/cudavision" "$bundle/python/"
install -m 755 "$here/gpu/run.sh" "$bundle/run.sh"
for file in "$@"; do cp "$file" "$bundle/media/"; done
echo "${VERSION:-$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)}" >"$bundle/VERSION"

# GStreamer.
for tool in gst-launch-1.0 gst-inspect-1.0; do take "$(command -v "$tool")" "$bundle/bin"; done
take "$(pkg-config --variable=pluginscannerdir gstreamer-1.0)/gst-plugin-scanner" "$bundle/bin"
plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
for plugin in "${gst_plugins[@]}"; do
  if [[ -f $plugins/libgst$plugin.so ]]; then
    take "$plugins/libgst$plugin.so" "$bundle/gst"
  else
    missing+=("GStreamer plugin $plugin")
  fi
done

# All libraries that these programs need, except glibc, which must match the host's loader, and the driver's libraries.
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|nsl|anl|mvec|BrokenLocale|thread_db|nss_.*))\.so'
ldd "${taken[@]}" |  # the original files, because libraries of the build find each other by relative paths
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    if [[ ! $name =~ $glibc && ! $name =~ ^lib(cuda|nvcuvid|nvidia-[a-z-]+)\.so ]]; then
      install -m 644 "$(readlink -f "$path")" "$bundle/lib/$name"
      strip --strip-debug "$bundle/lib/$name" 2>/dev/null || true
    fi
  done
unresolved=$(find "$bundle" -type f \( -name '*.so*' -o -perm -u+x ! -name '*.sh' \) \
  -exec env LD_LIBRARY_PATH="$bundle/lib" ldd {} + 2>/dev/null |
  awk '/not found/ { print $1 }' | sort -u | tr '\n' ' ' || true)
[[ -z $unresolved ]] || missing+=("libraries $unresolved")

# The plugin and the tests' library contain the same kernels. A dictionary larger than both stores them only once.
XZ_OPT=--lzma2=preset=6,dict=128MiB tar -C "$stage" -caf "$tarball" cudavision-gpu
printf '%s: %s, %s unpacked\n' "$tarball" "$(du -h "$tarball" | cut -f1)" "$(du -sh "$bundle" | cut -f1)"
if ((${#missing[@]})); then printf 'omitted, since it is missing: %s\n' "${missing[@]}"; fi
