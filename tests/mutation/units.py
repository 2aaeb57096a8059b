# SPDX-License-Identifier: LGPL-2.1-or-later
"""Divides the tests of a build into units that tests/mutants.py can run one by one. Measures the lines that each unit
runs, and its time."""
import collections
import dataclasses
import hashlib
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path

LARGE = 4  # seconds of processor time: a gst-check program that needs more is divided into its cases
# Results of gst-check: FILE:LINE:RESULT:CASE:TEST:NUMBER: TEXT
GST_CHECK = re.compile(r'^\S+:\d+:[PFES]:([^:]+):\w+:\d+: ', re.MULTILINE)
GIB = 1 << 30
NO_COUNTERS = {'GCOV_PREFIX': '/dev/null', 'GCOV_ERROR_FILE': '/dev/null'}  # coverage is written nowhere


@dataclasses.dataclass
class Unit:
    name: str
    command: list
    environment: dict
    needs: list  # targets of meson
    seconds: float = 0  # of processor time
    passes: bool = True


@dataclasses.dataclass
class Result:
    status: int
    seconds: float  # of processor time
    output: str = ''
    late: bool = False


def execute(unit, cpu_limit=1800, wall_limit=3600, environment=None, keep_output=False):
    """Runs a unit. It ends after `cpu_limit` seconds of processor time, or `wall_limit` seconds if it waits."""
    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_limit) + 1, int(cpu_limit) + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (12 * GIB, 12 * GIB))  # tests with far rows reserve 7
        resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    full = {**os.environ, **NO_COUNTERS, 'CUDAVISION_TEST_ROUNDS': '1',
            'CK_TIMEOUT_MULTIPLIER': '10', **unit.environment, **(environment or {})}
    process = subprocess.Popen(unit.command, env=full, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE if keep_output else subprocess.DEVNULL,
                               stderr=subprocess.STDOUT, preexec_fn=limits, start_new_session=True)
    before, late, output = resource.getrusage(resource.RUSAGE_CHILDREN), False, b''
    try:
        output = process.communicate(timeout=wall_limit)[0]
    except subprocess.TimeoutExpired:
        late = True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(process.returncode, used, (output or b'').decode(errors='replace'), late or used >= cpu_limit)


def programs(build, suites, skip):
    """The tests of meson in these suites, each program once, except those whose name has a word of `skip`."""
    found = {}
    for test in build.tests:
        names = {suite.split(':')[-1] for suite in test['suite']}
        if not names & set(suites) or any(word in test['name'] for word in skip):
            continue
        command, environment = list(test['cmd']), dict(test['env'])
        for name in ('GTEST_TOTAL_SHARDS', 'GTEST_SHARD_INDEX'):
            environment.pop(name, None)
        unit = Unit(test['name'], command, environment, test['depends'])
        found.setdefault((tuple(command), test['protocol'] == 'gtest'), unit)
    return [(unit, gtest) for (_, gtest), unit in found.items()]


def suites_of(unit):
    """Splits a GoogleTest program into one unit per suite."""
    listed = subprocess.run([*unit.command, '--gtest_list_tests'],
                            env={**os.environ, **unit.environment, **NO_COUNTERS},
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    excluded = next((word.partition('=')[2].partition('-')[2]
                     for word in unit.command if word.startswith('--gtest_filter=')), '')
    for suite in re.findall(r'^(\S+)\.(?:\s|$)', listed, re.MULTILINE):
        command = [word for word in unit.command if not word.startswith('--gtest_filter=')]
        command += [f'--gtest_filter={suite}.*' + (f'-{excluded}' if excluded else ''), '--gtest_fail_fast',
                    '--gtest_brief=1']
        yield dataclasses.replace(unit, name=f'{Path(unit.command[0]).name} {suite}', command=command)


def cases_of(unit, said):
    """Splits a gst-check program into one unit for each case that it named; no units for other programs."""
    for case in dict.fromkeys(GST_CHECK.findall(said)):
        yield dataclasses.replace(unit, name=f'{unit.name} {case}',
                                  environment={**unit.environment, 'CK_RUN_CASE': case})


def load(path, default):
    return pickle.loads(path.read_bytes()) if path.exists() else default


def save(path, data):
    part = path.with_suffix('.part')
    part.write_bytes(pickle.dumps(data))
    os.replace(part, path)


def build_needs(build, units):
    failed = build.ninja(*sorted({output for unit in units for need in unit.needs for output in build.outputs[need]}))
    if failed:
        raise RuntimeError(failed)


class Coverage:
    """Which unit runs which line, kept in a file of the build folder. Measures only new or changed units."""

    def __init__(self, build, folders):
        self.build, self.folders = build, folders
        self.path = build.scratch / 'coverage.pickle'
        # The state of the sources of a program, or of a part of it; units by name; the executed lines of each unit
        # ({file: lines}); the lines of each file that have code.
        self.stamp, self.units, self.lines, self.known = load(self.path, ({}, {}, {}, {}))

    def save(self):
        save(self.path, (self.stamp, self.units, self.lines, self.known))

    def state(self, unit):
        """A state that changes with the sources of the code and of the unit's program."""
        names = sorted({name for need in unit.needs for name in self.build.sources.get(need, [])}
                       | {word for word in unit.command if word.endswith('.py')} |
                       {str(path) for folder in self.folders
                        for path in (self.build.source / folder).rglob('*.[ch]pp')})
        return hashlib.sha1(b''.join(Path(name).read_bytes() for name in names if Path(name).is_file())).hexdigest()

    def measure(self, suites, skip, say):
        wanted = programs(self.build, suites, skip)
        build_needs(self.build, [unit for unit, _ in wanted])
        self.forget_removed()
        for unit, gtest in wanted:
            state = self.state(unit)
            if self.stamp.get(unit.name) == state:
                continue
            for name in [name for name in self.units if name.split(' ')[0] in (unit.name, Path(unit.command[0]).name)]:
                if self.stamp.get(name) != state:
                    self.units.pop(name), self.lines.pop(name, None)
            parts = list(suites_of(unit)) if gtest else []
            if not gtest:
                said = self.measure_one(unit, say)
                parts = list(cases_of(unit, said)) if unit.seconds >= LARGE else []
            for part in parts:
                if self.stamp.get(part.name) != state:  # otherwise, an interrupted run has measured it
                    self.measure_one(part, say)
                    self.stamp[part.name] = state
                    self.save()
            if len(parts) > 1:
                self.units.pop(unit.name, None), self.lines.pop(unit.name, None)
            self.stamp[unit.name] = state
            self.save()

    def forget_removed(self):
        """Forgets the units of tests that the project no longer has."""
        for name, unit in list(self.units.items()):
            if not set(unit.needs) <= self.build.outputs.keys():
                self.units.pop(name), self.lines.pop(name, None), self.stamp.pop(name, None)
        self.save()

    def measure_one(self, unit, say):
        counters = self.build.scratch / 'counters'
        shutil.rmtree(counters, ignore_errors=True)
        result = execute(unit, environment={'GCOV_PREFIX': str(counters), 'CK_VERBOSITY': 'verbose'}, keep_output=True)
        unit.seconds, unit.passes = round(result.seconds, 2), result.status == 0
        lines = self.read(counters) if unit.passes else {}
        if lines or not unit.passes:
            self.units[unit.name], self.lines[unit.name] = unit, lines
        say(f'{unit.name}: {unit.seconds:.1f} s, '
            + (f'{sum(map(len, lines.values()))} lines' if unit.passes else f'exit status {result.status}, left out'))
        return result.output

    def read(self, counters):
        """{file: executed lines}, for files in the folders."""
        data = list(counters.rglob('*.gcda'))
        for file in data:
            notes = Path('/') / file.relative_to(counters).with_suffix('.gcno')
            if notes.exists():
                file.with_suffix('.gcno').symlink_to(notes)
        ran = collections.defaultdict(set)
        if not data:
            return {}
        said = subprocess.run(['gcov', '--json-format', '--stdout', *map(str, data)], cwd=self.build.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors='replace').stdout
        for text in said.splitlines():
            for file in json.loads(text)['files'] if text.startswith('{') else []:
                # With options such as -ffile-prefix-map, file names are relative to the source tree.
                below = self.build.source / file['file']
                name = os.path.relpath(below if below.is_file() else self.build.folder / file['file'],
                                       self.build.source)
                if not name.startswith(tuple(folder + '/' for folder in self.folders)):
                    continue
                self.known.setdefault(name, set()).update(line['line_number'] for line in file['lines'])
                ran[name].update(line['line_number'] for line in file['lines'] if line['count'])
        return {name: sorted(lines) for name, lines in ran.items() if lines}

    def covering(self, file, line, compiled):
        """The names of the units that run a line. A line without its own code (a constant, a table, the rest of a
        statement) counts as run by all units that run a line of its file, or of a file compiled with it."""
        own = line in self.known.get(file, ())
        return [name for name, files in self.lines.items() if self.units[name].passes and
                (line in files.get(file, ()) if own else not files.keys().isdisjoint({file, *compiled}))]

    def share(self, folder):
        """(lines that a unit runs, lines with code) below a folder."""
        run, all_of = 0, 0
        for file, known in self.known.items():
            if file.startswith(folder + '/'):
                all_of += len(known)
                run += len(known & set().union(*(files.get(file, ()) for files in self.lines.values())))
        return run, all_of


class Trials:
    """The units that pass in the build without counters, where changes are tried, and their times there. Kept in a file
    of the build folder. Units are measured again if their sources changed or they failed."""

    def __init__(self, build, coverage):
        self.build, self.coverage = build, coverage
        self.path = build.scratch / 'times.pickle'
        self.kept = load(self.path, {})  # unit: [state, seconds, passes]
        self.units = {}

    def measure(self, say):
        wanted = [self.moved(unit) for unit in self.coverage.units.values() if unit.passes]
        build_needs(self.build, wanted)
        for unit in wanted:
            state = self.coverage.stamp[unit.name]
            if self.kept.get(unit.name, [None])[0] != state or not self.kept[unit.name][2]:
                result = execute(unit)
                self.kept[unit.name] = [state, round(result.seconds, 2), result.status == 0]
                save(self.path, self.kept)
                say(f'{unit.name}: {result.seconds:.1f} s' + (', left out: it fails' if result.status else ''))
            _, unit.seconds, unit.passes = self.kept[unit.name]
            if unit.passes:
                self.units[unit.name] = unit

    def moved(self, unit):
        """Converts a unit of the build with counters to this build."""
        def here(text):
            return text.replace(str(self.coverage.build.folder), str(self.build.folder))
        return dataclasses.replace(unit, command=[here(word) for word in unit.command],
                                   environment={name: here(value) for name, value in unit.environment.items()})

    def covering(self, file, line, compiled):
        """The units that run a line: first the units of the file's operation, then the quickest."""
        words = [word for word in re.split(r'[/_.]', file.lower())
                 if len(word) > 3 and word not in ('kernels', 'elements', 'base', 'video')]

        def rank(unit):
            known = any(word in unit.name.lower() for word in words)
            return unit.seconds * (0.1 if known else 1)
        return sorted((self.units[name] for name in self.coverage.covering(file, line, compiled) if name in self.units),
                      key=rank)
