#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the tests: changes the code in one place, builds, and runs the tests that execute the changed line. A change
survives if none of them fails.

    tests/mutants.py --seed 1 --count 300            # a sample of changes in gst/base, gst/elements and kernels
    tests/mutants.py --seed 1 --count 300 --again    # retries survivors without a reason, after tests were added
    tests/mutants.py --coverage                      # the share of lines that the tests run

universalmutator makes the changes with the rules in tests/mutation/cpp.rules. Changes that do not compile, or that give
the same object, do not count. Each result is written to a journal in the build folder, so that an interrupted run can
continue.
Exit status: 0; 77 if universalmutator is missing and cannot be installed.
"""
import argparse
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutation import sample, units  # noqa: E402
from mutation.build import COUNTERS, OPTIONS, Build, copy_of  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
REASONS = Path(__file__).with_name('mutation') / 'reasons.txt'
# Tests that need a GPU, measure the tests themselves, or run the same code for minutes under a tool.
SKIP = ['cuda', 'valgrind', 'neighbours', 'install', 'motion_', 'bench_']


class Journal:
    """A line for each change that was tried. The last one counts."""

    def __init__(self, path):
        self.path, self.entries = path, {}
        if path.exists():
            for line in path.read_text(encoding='utf-8').splitlines():
                try:
                    entry = json.loads(line)
                    self.entries[entry['key']] = entry
                except (ValueError, KeyError):  # the run was killed while it wrote
                    continue

    def add(self, mutant, **fields):
        entry = {'key': mutant.key, 'file': mutant.file, 'line': mutant.line, 'before': mutant.before,
                 'after': mutant.after, **fields}
        self.entries[mutant.key] = entry
        with self.path.open('a', encoding='utf-8') as file:
            file.write('\n' + json.dumps(entry) if self.path.stat().st_size else json.dumps(entry))
        return entry


def code(line):
    """A line of C++ without indentation and comment, so that rewording a comment does not make another change."""
    return re.sub(r'(^|\s+)//.*', '', line).strip()


def reasons(path):
    """{(file, before, after): reason}. A block has a line with the file, "- BEFORE", "+ AFTER", and the reason. Its
    lines are in the form that code() returns."""
    found = {}
    for block in path.read_text(encoding='utf-8').split('\n\n') if path.exists() else []:
        lines = [line for line in block.splitlines() if not line.startswith('#')]
        if len(lines) >= 4:
            found[lines[0], lines[1][2:], lines[2][2:]] = ' '.join(lines[3:])
    return found


def reason_of(mutant, known):
    """Why no test can notice a change, or None."""
    return known.get((mutant.file, code(mutant.before), code(mutant.after)))


def judge(mutant, outputs, trials, patience):
    """Tries one change. Returns the fields for the journal."""
    build = trials.build
    tests = trials.covering(mutant.file, mutant.line, map(build.compiled, outputs))
    built, spent = set(), 0
    with build.with_change(mutant, outputs) as (broken, differs):
        if broken or not differs:
            return {'result': 'invalid' if broken else 'same'}
        for number, unit in enumerate(tests):
            needed = {output for need in unit.needs for output in build.outputs.get(need, [])} - built
            if needed and build.ninja(*needed):
                return {'result': 'invalid'}
            built |= needed
            result = units.execute(unit, cpu_limit=10 + 10 * unit.seconds, wall_limit=120 + 60 * unit.seconds)
            spent += result.seconds
            if result.status or result.late:
                return {'result': 'noticed', 'by': unit.name, 'late': result.late, 'tests': number + 1,
                        'seconds': round(spent, 1)}
            if spent > patience:
                return {'result': 'survived', 'tests': number + 1, 'left': len(tests) - number - 1,
                        'seconds': round(spent, 1)}
    return {'result': 'survived', 'tests': len(tests), 'left': 0, 'seconds': round(spent, 1)}


def eligible(build, folders, most):
    """{file: objects} for code that may be changed, which is the code of the CPU backend. Headers that more than `most`
    objects include are excluded, because they take too long."""
    objects = build.objects()
    found, left_out = {}, []
    for file in sorted(path for folder in folders for path in (build.source / folder).rglob('*.[ch]pp')):
        name = str(file.relative_to(build.source))
        if 'cuda' in name or not objects[name]:
            continue
        if name.endswith('.hpp') and len(objects[name]) > most:
            left_out.append(name)
        else:
            found[name] = objects[name]
    return found, left_out


def stale(changes, known):
    """The reasons whose change is gone."""
    there = {(mutant.file, code(mutant.before), code(mutant.after)) for mutant in changes}
    files = {file for file, _, _ in there}
    return [f'{file}: {before}' for file, before, after in known
            if file in files and (file, before, after) not in there]


def print_result(entries, known):
    counted = [entry for entry in entries if entry['result'] in ('noticed', 'survived')]
    survivors = sorted((entry for entry in counted if entry['result'] == 'survived'),
                       key=lambda entry: (entry['file'], entry['line']))
    without = 0
    for entry in survivors:
        mutant = sample.Mutant(entry['file'], entry['line'], entry['before'], entry['after'])
        reason = reason_of(mutant, known)
        without += reason is None
        print(f'survived: {mutant}')
        print(f'  {reason or "no test runs this line" if not entry["tests"] else reason or "no reason is known"}' +
              (f' (after {entry["seconds"]:.0f} s; {entry["left"]} units of tests were left)'
               if entry.get('left') else ''))
    noticed = len(counted) - len(survivors)
    share = 100 * noticed / len(counted) if counted else 0
    others = {kind: sum(entry['result'] == kind for entry in entries) for kind in ('invalid', 'same')}
    print(f'{len(counted)} changes: {noticed} noticed ({share:.1f} %), {len(survivors)} survived, '
          f'{len(survivors) - without} of them with a '
          f'reason. Not counted: {others["invalid"]} do not compile, {others["same"]} give the same object.')


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=300, help='number of changes that count')
    parser.add_argument('--folder', action='append', help='gst/base, gst/elements and kernels; may be repeated')
    parser.add_argument('--build', type=Path, default=ROOT / 'build-mutants',
                        help='folder for a copy of the source tree, two builds, and the journal')
    parser.add_argument('--again', action='store_true', help='try the survivors without a reason again')
    parser.add_argument('--coverage', action='store_true', help='only print the line coverage')
    parser.add_argument('--patience', type=float, default=120,
                        help='seconds of processor time for the tests of one change; then it counts as survived')
    parser.add_argument('--objects', type=int, default=3, help='headers that more objects include are skipped')
    parser.add_argument('--minutes', type=float, help='stop after this many minutes')
    parser.add_argument('--reasons', type=Path, default=REASONS, help='file of changes that no test can notice')
    parser.add_argument('--source', type=Path, default=ROOT, help='the source tree')
    options = parser.parse_args()
    source, folder = options.source.resolve(), options.build.resolve()
    mutator = sample.generator(folder / 'universalmutator')
    if not mutator:
        print(f'skipped: {sample.PACKAGE} is not installed, and cannot be installed from PyPI')
        return 77

    own = source == ROOT
    folders = options.folder or ['gst/base', 'gst/elements', 'kernels']
    backend = ['-Dcuda=disabled', '-Dbenchmarks=disabled'] if own else []
    coverage = units.Coverage(Build(source, folder / 'counters', COUNTERS + backend), folders)
    coverage.measure(['kernels', 'elements'], SKIP, say)
    for each in folders:
        run, known = coverage.share(each)
        print(f'{each}: {run} of {known} lines run ({100 * run / max(known, 1):.1f} %)')
    if options.coverage:
        return 0

    build = Build(copy_of(source, folder / 'source'), folder / 'trials', OPTIONS + backend)
    trials = units.Trials(build, coverage)
    trials.measure(say)
    files, left_out = eligible(build, folders, options.objects)
    changes = sample.in_order([mutant for file in files for mutant in sample.mutants_of(mutator, source, file)],
                              options.seed)
    print(f'{len(changes)} changes in {len(files)} files; {len(left_out)} headers with more than {options.objects} '
          'objects are skipped', flush=True)
    known = reasons(options.reasons)
    for each in stale(changes, known):
        print(f'its line is gone: {each}', flush=True)
    journal, end = Journal(folder / 'journal.jsonl'), time.monotonic() + 60 * (options.minutes or 1e9)
    entries, counted = [], 0
    for mutant in changes:
        if counted >= options.count:
            break
        entry = journal.entries.get(mutant.key)
        if entry is None or (options.again and entry['result'] == 'survived' and not reason_of(mutant, known)):
            if time.monotonic() > end:
                if entry is None:
                    break
            else:
                entry = journal.add(mutant, **judge(mutant, files[mutant.file], trials, options.patience))
                say(f'{counted + 1}: {entry["result"]} {mutant.file}:{mutant.line} {entry.get("by", "")}')
        entries.append(entry)
        counted += entry['result'] in ('noticed', 'survived')
    print_result(entries, known)
    return 0


if __name__ == '__main__':
    sys.exit(main())
