# SPDX-License-Identifier: LGPL-2.1-or-later
"""The build folders of tests/mutants.py, and the copy of the source tree that it changes."""
import collections
import contextlib
import filecmp
import json
import os
import shutil
import subprocess

# Counters make the code up to six times slower, so changes are tried in a build without them.
OPTIONS = ['-Doptimization=2', '-Ddebug=false']
# The slow references of the tests have no counters, because nobody reads them.
COUNTERS = ['-Db_coverage=true', '-Doptimization=1', '-Ddebug=false',
            '-Dcpp_args=-fprofile-exclude-files=.*/tests/.*;/usr/include/.*']


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, text=True, stdout=subprocess.PIPE).stdout


def copy_of(source, folder):
    """A copy of a source tree in a folder, without builds. Equal files keep their times, so that they are not compiled
    again. A change left by a killed run is undone."""
    for place, folders, files in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith(('.git', 'build'))]
        copy = folder / os.path.relpath(place, source)
        copy.mkdir(parents=True, exist_ok=True)
        for name in files:
            if not (copy / name).exists() or not filecmp.cmp(os.path.join(place, name), copy / name, shallow=False):
                shutil.copy(os.path.join(place, name), copy / name)
    return folder


class Build:
    def __init__(self, source, folder, options=()):
        self.source, self.folder = source, folder
        if not (folder / 'build.ninja').exists():
            run('meson', 'setup', folder, source, *options)
        run('ninja', '-C', folder, 'build.ninja')  # configures again after a change of the build files
        self.scratch = folder / 'mutants'
        self.scratch.mkdir(exist_ok=True)
        self.tests = json.loads(run('meson', 'introspect', folder, '--tests'))
        targets = json.loads(run('meson', 'introspect', folder, '--targets'))
        self.outputs = {target['id']: [os.path.relpath(name, folder) for name in target['filename']]
                        for target in targets}
        self.sources = {target['id']: [name for group in target['target_sources'] for name in group.get('sources', [])]
                        for target in targets}
        self.commands = {entry['output']: entry for entry in json.loads((folder / 'compile_commands.json').read_text())}
        self.unchanged = {}  # object: its bytes without a change

    def compiled(self, output):
        """The file that an object is compiled from, relative to the source tree."""
        return os.path.relpath(self.folder / self.commands[output]['file'], self.source)

    def ninja(self, *outputs):
        """Builds these outputs. Returns the output if this fails, otherwise None."""
        done = subprocess.run(['ninja', '-j1', '-C', str(self.folder), *outputs], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace')
        return done.stdout if done.returncode else None

    def objects(self):
        """The objects that each file of the source tree is compiled into, itself or as a header. Objects that are not
        built are in no test, and are omitted."""
        found, output = collections.defaultdict(list), None
        built = {each for each in self.commands if (self.folder / each).exists()}
        for each in sorted(built):
            found[self.compiled(each)].append(each)
        for line in run('ninja', '-C', self.folder, '-t', 'deps').splitlines():
            if not line.startswith(' '):
                output = line.split(': ')[0]
            elif output in built and line.strip().startswith('..'):
                name = os.path.relpath(self.folder / line.strip(), self.source)
                if output not in found[name]:
                    found[name].append(output)
        return found

    def bytes_of(self, output):
        return (self.folder / output).read_bytes()

    @contextlib.contextmanager
    def with_change(self, mutant, outputs):
        """Changes the source tree while the block runs. Yields the compiler's output if it fails, otherwise None, and
        whether a change affects one of these objects."""
        for output in outputs:
            if output not in self.unchanged:
                self.ninja(output)
                self.unchanged[output] = self.bytes_of(output)
        place = self.source / mutant.file
        kept = place.read_bytes()
        place.write_text(mutant.text(self.source), encoding='utf-8')
        try:
            broken = self.ninja(*outputs)
            yield broken, not broken and any(self.bytes_of(output) != self.unchanged[output] for output in outputs)
        finally:
            place.write_bytes(kept)
