#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the Debian package gstreamer1.0-cudavision for this machine's release, in one command:
#   gst/packaging/deb.sh [OUT_FOLDER]      (dist)
# It has the plugin in GStreamer's own folder, the library of metas with its headers, and the Python module. Installs missing Debian packages.
# With a CUDA toolkit (nvcc) it has code for all GPUs from Turing on; CUDA_ARCH=90 or so is quicker (the meson option cuda-arch), and
# CUDA=disabled builds the CPU backend alone. INSTALL=0 installs nothing. The build folder is BUILD_DIR (build-deb), and stays for the next time.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(realpath -m "${1:-$root/dist}")
build=$(realpath -m "${BUILD_DIR:-$root/build-deb}")
package=gstreamer1.0-cudavision
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build dpkg-dev

architecture=$(dpkg --print-architecture)
libdir=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# Only the plugin and the library of metas: these are what the package has.
build_project "$root" "$build" --prefix=/usr --libdir="$libdir" -Dpython.purelibdir=/usr/lib/python3/dist-packages -Dbuildtype=release \
  -Dtests=disabled -Dbenchmarks=disabled -Dcuda="${CUDA:-auto}" -Dcuda-arch="${CUDA_ARCH-all}" \
  gst/libgstcudavision.so
version=$(meson introspect --projectinfo "$build" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
version+=+deb$(. /etc/os-release && echo "${VERSION_ID:-$VERSION_CODENAME}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/debian/$package
meson install -C "$build" --destdir "$tree" --no-rebuild --quiet --tags=runtime,python-runtime,devel
find "$tree" -name __pycache__ -prune -exec rm -r {} +
find "$tree" -name '*.so*' -type f -exec strip --strip-unneeded {} +
install -D -m 644 "$root/README.md" "$root/CHANGELOG.md" -t "$tree/usr/share/doc/$package"
install -D -m 644 "$root/gst/packaging/copyright" -t "$tree/usr/share/doc/$package"

# The libraries that it links, with the versions that they need: dpkg-shlibdeps reads debian/control for the name of the package.
mkdir "$tree/DEBIAN"
printf 'Source: cudavision\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/debian/control"
echo "libgstcudavision-1.0 0 $package" >"$work/debian/shlibs.local"
mapfile -d '' binaries < <(find "$tree" -name '*.so*' -type f -print0)
depends=$(cd "$work" && dpkg-shlibdeps -O -x"$package" -l"$tree/usr/$libdir" "${binaries[@]/#/-e}" | sed -n 's/^shlibs:Depends=//p')

cat >"$tree/DEBIAN/control" <<END
Package: $package
Version: $version
Architecture: $architecture
Maintainer: cudavision developers <cudavision@localhost>
Section: video
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $depends, gstreamer1.0-plugins-base, python3
Recommends: gstreamer1.0-tools, gstreamer1.0-plugins-bad, python3-gst-1.0
Description: GStreamer elements that process raw video with CUDA kernels
 Blur, convolution, motion detection, histograms, summed-area tables and
 blending, on CUDA or on the CPU with the same results; the headers of their
 metas; and a Python module that gives frames to PyTorch, CuPy and NumPy.
 "python3 -m cudavision selftest" says whether all of it works.
END
# Python's compiled files are made at installation and removed before the package is.
cat >"$tree/DEBIAN/postinst" <<END
#!/bin/sh
set -e
if command -v py3compile >/dev/null; then py3compile -p $package; fi
if [ "\$1" = configure ]; then ldconfig; fi
END
cat >"$tree/DEBIAN/prerm" <<END
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then py3clean -p $package
else find /usr/lib/python3/dist-packages/cudavision -name __pycache__ -prune -exec rm -r {} +
fi
END
# shellcheck disable=SC2016
printf '#!/bin/sh\nset -e\nif [ "$1" = remove ]; then ldconfig; fi\n' >"$tree/DEBIAN/postrm"
chmod 755 "$tree"/DEBIAN/p*
(cd "$tree" && find usr -type f -exec md5sum {} +) >"$tree/DEBIAN/md5sums"
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$tree" "$out/${package}_${version}_$architecture.deb"
