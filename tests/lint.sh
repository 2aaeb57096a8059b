#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Checks the sources without running them:   tests/lint.sh format | cppcheck | shell | python | columns
#   format    .clang-format, with clang-format 14, because other versions break lines differently; also, files that test
#             a backend macro must include backends.h
#   cppcheck  cppcheck's warnings for kernels, gst and examples
#   shell     shellcheck's warnings for all scripts
#   python    flake8's errors for all Python: undefined names, unused imports and unused variables
#   columns   lines of more than 120 characters in programs, scripts, styles, pages and settings
# Exit status: 0; 1 if there are warnings; 77 if the tool is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
skip() { echo "skipped: $*"; exit 77; }
files() { git -c safe.directory="$PWD" ls-files -z "$@" 2>/dev/null; }
in_clone() { files >/dev/null || skip 'this is not a git clone'; }
# programs [NAME]: the files whose first line names an interpreter, such as python3.
programs() {
  files | xargs -0 awk "FNR == 1 && /^#!.*${1:-}/ "'{ printf "%s%c", FILENAME, 0 } { nextfile }'
}
sources() { find "$@" -regex '.*\.\(cpp\|hpp\|cu\|cuh\|h\)' -not -path './build*' -print0; }

case ${1:-} in
  format)
    # Without this header, #if treats the macro as 0.
    asks=$(grep -rlE --include='*.[ch]*' '^#if.*CUDAVISION_(CUDA|CPU)\b' gst kernels tests examples |
      xargs grep -LE '"(backends\.h|(kernels/core/backend|gst/base/compat|tests/bench/runner)\.hpp)"' || true)
    if [[ $asks ]]; then echo "these ask for a backend, and do not include backends.h: $asks" >&2; exit 1; fi
    tool=$(command -v clang-format-14 || command -v clang-format) || skip 'there is no clang-format 14'
    [[ $("$tool" --version) == *'version 14.'* ]] ||
      skip "this is $("$tool" --version), and the style needs version 14"
    sources gst kernels tests examples | xargs -0 "$tool" --dry-run --Werror
    ;;
  cppcheck)
    command -v cppcheck >/dev/null || skip 'there is no cppcheck'
    # The suppressed warnings are false: GStreamer's macros; status_of_exception(), which is only called in catch
    # blocks; a division by a number that cannot be 0; a pointer that is reset before the end of its target's lifetime.
    # Newer versions print normalCheckLevelMaxBranches about themselves.
    cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c++17 \
      --language=c++ -j2 -I. -DCUDAVISION_CUDA=1 -DCUDAVISION_CPU=1 --suppress=missingInclude --suppress=unknownMacro \
      --suppress=rethrowNoCurrentException:kernels/core/guard.hpp --suppress=CastIntegerToAddressAtReturn \
      --suppress=zerodivcond:kernels/convolve/convolve.cpp --suppress=danglingLifetime:gst/base/cuda/gpu.cpp \
      --suppress=normalCheckLevelMaxBranches gst kernels examples/motion-alarm
    ;;
  shell)
    command -v shellcheck >/dev/null || skip 'there is no shellcheck'
    shellcheck --external-sources .ci/run release/*.sh tests/*.sh tests/*/*.sh examples/*.sh examples/*/*.sh docs/*.sh \
      gst/packaging/*.sh
    ;;
  python)
    command -v flake8 >/dev/null || skip 'there is no flake8'
    in_clone
    { files -- '*.py'; programs python; } | sort -zu | xargs -0 flake8 --isolated --select=E9,F
    ;;
  columns)
    in_clone
    # Not checked: C++, whose lines clang-format breaks where possible; parts of pages that cannot be broken (tables,
    # commands, pictures, tags); files that are compared or read line by line (the corpora, cpp.rules,
    # filters.validatetest.in, Dockerfile).
    kinds=('*.py' '*.sh' '*.js' '*.css' '*.html' '*.yml' '*.yaml' '*.toml' '*meson.build' meson_options.txt)
    # shellcheck disable=SC2016  # $0 is awk's
    long=$({ files -- "${kinds[@]}"; programs; } | sort -zu | LC_ALL=C.UTF-8 xargs -0 grep -asHnE '.{121}' || true
      files -- '*.md' | xargs -0 awk 'FNR == 1 { code = 0 } /^ *\140\140\140/ { code = !code }
        !code && !/^ *([|<]|!\[)/ && !/^ *\140[^\140]*\140[.,]?$/ { print FILENAME ":" FNR ":" $0 }' |
        LC_ALL=C.UTF-8 grep -E '^[^:]+:[0-9]+:.{121}' || true)
    if [[ $long ]]; then
      echo "these lines have more than 120 characters:" >&2
      cut -c1-160 <<<"$long" >&2
      exit 1
    fi
    ;;
  *)
    echo "usage: tests/lint.sh format | cppcheck | shell | python | columns" >&2
    exit 1
    ;;
esac
