#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Prints the section of CHANGELOG.md for a version:   release/notes.sh [VERSION]      (this one)
# Status 1 if there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:-$(release/version.sh)}
awk -v heading="## $version (" '
  /^## / { inside = index($0, heading) == 1; next }
  inside { print; if (NF) found = 1 }
  END { exit !found }' CHANGELOG.md || { echo "CHANGELOG.md says nothing about $version" >&2; exit 1; }
