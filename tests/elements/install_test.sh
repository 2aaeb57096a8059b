#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs a build into an empty folder and checks that GStreamer finds the plugin there. Then compiles and runs the C
# program of docs/metas.md, which uses only the installed headers and library of the metas:
#   install_test.sh MESON BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
if [[ ${SANITIZE:-} ]]; then
  echo 'skipped: gst-inspect-1.0 does not load a plugin that is built with sanitizers'
  exit 77
fi
meson=$1 build=$2 source=$3
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
option() {
  "$meson" introspect "$build" --buildoptions |
    python3 -c 'import json, sys; print(*(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}
"$meson" install -C "$build" --destdir "$target" --no-rebuild --quiet

folder=$(option plugins-dir)
folder=${folder:-$(option libdir)/gstreamer-1.0}
if [[ $folder != /* ]]; then folder=$(option prefix)/$folder; fi
folder=$target$folder
[[ -f $folder/libgstcudavision.so ]] || { echo "not in $folder:"; find "$target" -type f; exit 1; }
# All files must be below the prefix, except where an option has an absolute path.
outside=$(find "$target" -type f -not -path "$target$(option prefix)/*" -not -path "$folder/*")
[[ -z $outside ]] || { echo "not below the prefix: $outside"; exit 1; }
export GST_PLUGIN_PATH='' GST_PLUGIN_PATH_1_0=$folder GST_REGISTRY=$target/registry.bin
gst-inspect-1.0 cudavision | tee "$target/inspect"
operations=$(sed -n "s/^operations = \[\(.*\)\]$/\1/p" "$source/meson.build" | tr -d "',")
for operation in $operations; do
  grep -q "cuda$operation:" "$target/inspect" || { echo "the installed plugin has no element cuda$operation"; exit 1; }
done
grep -q "$folder/libgstcudavision.so" "$target/inspect"
# Check the links to pages, which are installed with the plugin. The plugin finds them even after it is moved.
grep -q ' License *LGPL$' "$target/inspect"
# shellcheck disable=SC2086  # one word for each operation
for page in README.md $(printf 'docs/elements/cuda%s.md ' $operations); do
  element=$(basename "$page" .md)
  if [[ $page == README.md ]]; then element=cudavision; fi
  uri=$(gst-inspect-1.0 "$element" | sed -n 's/^ *\(Origin URL\|Doc-uri\) \+//p' | head -1)
  [[ $uri == "file://$target/"*"/$page" && -f ${uri#file://} ]] || { echo "the link of $element is $uri"; exit 1; }
done
module=$(find "$target" -path '*/cudavision/__init__.py')
expected=$(PYTHONPATH=${module%/cudavision/__init__.py} PYTHONDONTWRITEBYTECODE=1 python3 -m cudavision path)
[[ $expected == "$folder" ]] || { echo "the Python module finds the plugin in $expected"; exit 1; }
gst-inspect-1.0 --exists cudablend || { echo "gst-inspect-1.0 --exists does not accept the plugin's version"; exit 1; }
version=$("$meson" introspect "$build" --projectinfo |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
grep -q " Version .*-cudavision-$version$" "$target/inspect"

# The plugin folder follows any prefix and the option plugins-dir, wherever GStreamer itself is installed.
installed_in() {  # MESON_OPTION…: prints the plugin's install folder of a build that is configured but not compiled
  if [[ $(option cpu) != disabled ]]; then set -- -Dcuda=disabled "$@"; fi
  "$meson" setup -Dtests=disabled -Dbenchmarks=disabled "$@" "$target/configured" "$source" >"$target/log" ||
    { cat "$target/log" >&2; return 1; }
  "$meson" introspect "$target/configured" --installed |
    python3 -c 'import json, os, sys
print(*(os.path.dirname(p) for p in json.load(sys.stdin).values() if p.endswith("/libgstcudavision.so")))'
  rm -r "$target/configured"
}
expect() { [[ $1 == "$2" ]] || { echo "the plugin goes to $1, not to $2"; exit 1; }; }
expect "$(installed_in --prefix=/opt/p --libdir=lib/some)" /opt/p/lib/some/gstreamer-1.0
expect "$(installed_in --prefix=/opt/p -Dplugins-dir=share/gst)" /opt/p/share/gst

# The plugin finds the library in any prefix, by a path relative to $ORIGIN.
library=$(find "$target" -name libgstcudavision-1.0.so.0)
runpath=$(readelf -d "$folder/libgstcudavision.so" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
# shellcheck disable=SC2016
found=${runpath/'$ORIGIN'/"$folder"}/libgstcudavision-1.0.so.0
[[ -n $library && $found -ef $library ]] ||
  {
    echo "the plugin looks for ${library:-the library, which was not installed,} in ${runpath:-no private folder}"
    exit 1
  }

# The .pc file has paths without DESTDIR, so add it. PKG_CONFIG_SYSROOT_DIR would also change GStreamer's own paths.
cd "$target"
mkdir pkgconfig
sed "s|^prefix=|&$target|" "$(find "$target" -name gstreamer-cudavision-1.0.pc)" >pkgconfig/gstreamer-cudavision-1.0.pc
export PKG_CONFIG_PATH=$target/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
# Compile the headers as plain C with strict warnings, and as C++.
read -ra cflags <<<"$(pkg-config --cflags gstreamer-cudavision-1.0)"
for language in 'cc -std=c11 -Wstrict-prototypes -x c' 'c++ -std=c++17 -x c++'; do
  # shellcheck disable=SC2086  # a command and its options
  echo '#include <gst/cudavision/cudavision.h>' | $language -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" \
    -fsyntax-only -
done
export LD_LIBRARY_PATH=${library%/*}
# Compile and run the program of docs/metas.md with the command on that page.
page=$source/docs/metas.md
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$page" >program.c
command=$(grep '^cc program.c' "$page")
eval "$command"
[[ $(./program | grep -c '^median [0-9.]*, [0-9]* samples') == 3 && $(./program | grep -c '^mean [0-9.]*$') == 3 ]] ||
  { ./program; exit 1; }
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
if grep -E 'cuda|opencv' <<<"$needed"; then echo 'the library must not need these'; exit 1; fi
