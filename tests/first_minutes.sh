#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tries examples/quickstart.sh of the last commit as a new user would, in fresh Debians, and measures it:
#   tests/first_minutes.sh [SUITE…]      (bookworm trixie)
# Rows; MACHINES selects some of them ('none toolkit gpu'):
#   none      no CUDA toolkit and no GPU
#   toolkit   this machine's toolkit, and no GPU: only the CPU backend is built
#   gpu       a GPU that a program nvidia-smi claims, and no toolkit: the compiler comes from PyPI, and the code is for
#             this GPU only
#   tests     tests/run.sh after `toolkit`, in the same folder, without running the tests: only CUDA code may be
#             compiled twice. TESTS=1 runs all tests
# Prints the seconds, the seconds of processor time, and the number of programs that wanted a processor before and after
# (the load): figures are valid only on an idle machine. Fails if a row does something else. Exit status 77 (skipped) as
# in tests/roots.sh.
set -euo pipefail
if (($# == 0)); then set -- bookworm trixie; fi
# shellcheck source=tests/roots.sh
. "$(dirname "${BASH_SOURCE[0]}")/roots.sh"
((EUID == 0)) || skip 'only root can copy a Debian'
needs_roots debootstrap
mkdir -p "$cache"
work=$(mktemp -d "$cache/minutes-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
status=0 table=()
load() { cut -d' ' -f1 /proc/loadavg; }
wrong() { echo "$suite, $machine: $*" >&2; status=1; }

# Makes the program that claims a GPU of an architecture, such as 9.0.
claim_gpu() {  # ROOT ARCHITECTURE
  cat >"$1/usr/bin/nvidia-smi" <<END
#!/bin/sh
case "\$*" in
  -L) echo 'GPU 0: a GPU that is not there' ;;
  *compute_cap*) echo $2 ;;
  *) echo '| CUDA Version: 13.0 |' ;;
esac
END
  chmod 755 "$1/usr/bin/nvidia-smi"
}

# measure COMMAND: runs it in /src of the root, and adds a row. Its output is in $log.
measure() {
  local before times TIMEFORMAT='%0R %0U %0S' code=0
  before=$(load)
  times=$( { time in_root "$place" "cd /src; $1" >"$log" 2>&1; } 2>&1) || code=$?
  read -r wall user system <<<"${times##*$'\n'}"
  table+=("$(printf '%-10s%-9s%6s s%8s s   %s → %s' \
    "$suite" "$machine" "$wall" $((user + system)) "$before" "$(load)")")
  if ((code)); then
    tail -40 "$log" >&2
    wrong "exit status $code"
  fi
}
backends_are() {  # CUDA CPU
  [[ $(sed -n 's/.*\(CUDA\|CPU\) backend.*: *\(YES\|NO\)$/\2/p' "$log" | tail -2 | xargs) == "$1 $2" ]] ||
    wrong "the backends are not $1 $2"
}

try() {
  case $machine in
    toolkit | tests)
      MOUNT=$(toolkit_folder)
      if [[ ! $MOUNT ]]; then
        echo "$suite, $machine: skipped, because there is no toolkit here"
        return
      fi
      MOUNT+=:/usr/local/cuda
      ;;
    *) MOUNT= ;;
  esac
  if [[ $machine != tests ]]; then
    rm -rf "${place:-}"
    place=$work/$suite-$machine
    cp -a "$cache/$suite-minimal" "$place"
    source_into "$place"
  fi
  log=$work/$suite-$machine.log
  case $machine in
    none | toolkit)
      measure examples/quickstart.sh
      backends_are NO YES
      ;;
    gpu)
      claim_gpu "$place" 9.0
      measure "examples/quickstart.sh
        GST_PLUGIN_PATH=/src/build/gst PYTHONPATH=/src/gst/python /usr/bin/python3 -m cudavision selftest"
      backends_are YES YES
      grep -q "installing NVIDIA's from PyPI" "$log" || wrong 'it does not say where the compiler comes from'
      grep -q 'CUDA architectures *: 90$' "$log" || wrong 'it does not build for this GPU alone'
      sed -n '/backend/Ip' "$log"
      ;;
    tests)
      if [[ ! -d ${place:-}/src/build ]]; then machine=toolkit try; machine=tests; fi
      touch "$work/built"
      objects=$(cd "$place/src/build" && find . -name '*.o' | sort)
      measure "INSTALL=1 tests/run.sh $([[ ${TESTS:-} ]] || echo --list)"
      backends_are YES YES
      twice_compiled
      return
      ;;
  esac
  [[ -s $place/src/out/report.html ]] || wrong 'there is no report'
}

# Objects of quickstart that run.sh compiled again. Only objects that depend on the backend may be among them.
twice_compiled() {
  local again allowed
  again=$(cd "$place/src/build" && find . -name '*.o' -newer "$work/built" | sort | comm -12 - <(echo "$objects"))
  allowed=$(in_root "$place" "cd /src/build; ninja -t deps" |
    awk '/^[^ ]/ { name = "./" substr($1, 1, length($1) - 1) } / backends\.h$/ { print name }' | sort)
  echo "of $(wc -l <<<"$objects") objects, $(grep -c . <<<"$again") were compiled again," \
    'because they contain which backends there are'
  again=$(comm -23 <(echo "$again") <(echo "$allowed"))
  [[ ! $again ]] || wrong "compiled twice: $again"
}

for suite in "$@"; do
  place=
  make_root "$suite" "$cache/$suite-minimal"
  for machine in ${MACHINES:-none gpu toolkit tests}; do try; done
  rm -rf "$place"
done
echo "Debian    machine    time  processor   load before → after"
printf '%s\n' "${table[@]}"
exit "$status"
