#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The version of the project:
#   release/version.sh               prints it
#   release/version.sh NEW           writes it into all files that have it, and dates the newest section of CHANGELOG.md
#   release/version.sh --next NEW    opens a section for it in CHANGELOG.md, after a release
#   release/version.sh --check       fails if the files differ
# To release, run release/version.sh 0.2.0 && git commit -am 'Release 0.2.0' && git tag v0.2.0, and push the tag. ROOT
# is the source tree (this one), SOURCE_DATE_EPOCH the time of the release (now).
set -euo pipefail
cd "${ROOT:-$(dirname "${BASH_SOURCE[0]}")/..}"
fail() { echo "$*" >&2; exit 1; }
of_meson() { sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build; }
of_changes() { sed -n '0,/^## /s/^## \([^ ]*\) (.*)$/\1/p' CHANGELOG.md; }
of_debian() { sed -n '1s/^cudavision (\(.*\)-1) .*/\1/p' debian/changelog; }
of_conda() { sed -n 's/^{% set version = "\(.*\)" %}$/\1/p' release/conda/meta.yaml; }
check() {
  local version each
  version=$(of_meson)
  for each in of_changes of_debian of_conda; do
    [[ $($each) == "$version" ]] ||
      fail "meson.build has the version ${version:-(none)}, but ${each/of_/the file of } has $($each)"
  done
}
new_section() {  # a section of Debian's changelog, which dates the packages
  printf 'cudavision (%s-1) %s; urgency=medium\n\n  * New upstream release: see CHANGELOG.md.\n\n -- %s  %s\n' \
    "$1" "$2" 'cudavision developers <cudavision@localhost>' \
    "$(LC_ALL=C date --utc --rfc-email --date="@$now")" >debian/changelog
}

now=${SOURCE_DATE_EPOCH:-$(date +%s)}
case ${1:-} in
  '') of_meson ;;
  --check) check ;;
  --next | [0-9]*)
    version=${!#}
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "a version is 1.2.3, not $version"
    sed -i "s/^  version: '.*',$/  version: '$version',/" meson.build
    sed -i "s/^{% set version = .*/{% set version = \"$version\" %}/" release/conda/meta.yaml
    if [[ $1 == --next ]]; then
      sed -i "0,/^## /s/^## /## $version (unreleased)\n\n## /" CHANGELOG.md
      new_section "$version" UNRELEASED
    else
      grep -q '^## .* (unreleased)$' CHANGELOG.md || fail 'CHANGELOG.md has no unreleased section'
      sed -i "0,/^## .* (unreleased)$/s//## $version ($(date --utc --date="@$now" +%F))/" CHANGELOG.md
      new_section "$version" unstable
    fi
    check
    ;;
  *) fail 'usage: release/version.sh [[--next] NEW | --check]' ;;
esac
