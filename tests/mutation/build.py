# SPDX-License-Identifier: LGPL-2.1-or-later
"""A build folder of tests/mutants.py: compiles one changed file, and links what contains it."""
import collections
import contextlib
import json
import os
import shlex
import shutil
import subprocess

# Counters make the code up to six times slower, so changes are tried in a build without them.
OPTIONS = ['-Doptimization=2', '-Ddebug=false']
# The slow references of the tests do without counters, which nobody reads.
COUNTERS = ['-Db_coverage=true', '-Doptimization=1', '-Ddebug=false',
            '-Dcpp_args=-fprofile-exclude-files=.*/tests/.*;/usr/include/.*']


class Broken(Exception):
    """The changed file does not compile."""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, stdout=subprocess.PIPE,
                          **options).stdout


class Build:
    def __init__(self, source, folder, options=()):
        self.source, self.folder = source, folder
        if not (folder / 'build.ninja').exists():
            run('meson', 'setup', folder, source, *options)
        run('ninja', '-C', folder, 'build.ninja')  # configures again after a change of the build files
        self.scratch = folder / 'mutants'
        self.overlay = self.scratch / 'source'
        self.scratch.mkdir(exist_ok=True)
        self.restore()
        self.tests = json.loads(run('meson', 'introspect', folder, '--tests'))
        targets = json.loads(run('meson', 'introspect', folder, '--targets'))
        self.outputs = {target['id']: [self.relative(name) for name in target['filename']] for target in targets}
        self.sources = {target['id']: [name for group in target['target_sources'] for name in group.get('sources', [])]
                        for target in targets}
        self.commands = {entry['output']: entry for entry in json.loads((folder / 'compile_commands.json').read_text())}
        self.last = None  # the last object that was compiled without a change: (what it is made of, its bytes)

    def relative(self, path):
        return os.path.relpath(path, self.folder)

    def compiled(self, output):
        """The file that an object is made of, relative to the source tree."""
        return os.path.relpath(self.folder / self.commands[output]['file'], self.source)

    def ninja(self, *outputs):
        """Builds these outputs. Returns what was said if that fails, else None."""
        done = subprocess.run(['ninja', '-j1', '-C', str(self.folder), *outputs], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace')
        return done.stdout if done.returncode else None

    def objects(self):
        """The objects that each file of the source tree is compiled into, itself or as a header. What is not built yet
        is in no test, and left out."""
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

    def compile(self, mutant, text, output):
        """Compiles an object of a file with this text. Returns its bytes; raises Broken."""
        words = shlex.split(self.commands[output]['command'])
        while os.path.basename(words[0]) in ('ccache', 'sccache'):
            del words[0]
        place = self.overlay / mutant.file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding='utf-8')
        result = self.scratch / 'object.o'
        for option in ('-MQ', '-MF', '-o'):
            at = words.index(option)
            del words[at:at + 2]
        words = [word for word in words if word not in ('-MD', '-Werror')]
        # The same path for the file before and after the change, because names of files are in the object.
        if self.compiled(output) == mutant.file:
            words[words.index(self.commands[output]['file'])] = str(place)
        try:
            done = subprocess.run([words[0], '-w', f'-I{self.overlay}', *words[1:], '-o', str(result)], cwd=self.folder,
                                  capture_output=True)
            if done.returncode:
                raise Broken(done.stderr.decode(errors='replace'))
            return result.read_bytes()
        finally:
            shutil.rmtree(self.overlay)
            result.unlink(missing_ok=True)

    def pristine(self, mutant, output):
        """The object of the file as it is."""
        text = (self.source / mutant.file).read_text(encoding='utf-8')
        made_of = (output, mutant.file, text)
        if self.last is None or self.last[0] != made_of:
            self.last = made_of, self.compile(mutant, text, output)
        return self.last[1]

    def changed(self, mutant, outputs):
        """Compiles the objects with the change. Returns {object: bytes} of those that differ."""
        text = mutant.text(self.source)
        results = {output: self.compile(mutant, text, output) for output in outputs}
        return {output: data for output, data in results.items() if data != self.pristine(mutant, output)}

    def linked(self, output):
        """What is linked with an object, up to shared libraries and programs."""
        found, rest = [], [output]
        while rest:
            answer = run('ninja', '-C', self.folder, '-t', 'query', rest.pop())
            for name in (line.strip() for line in answer.split('outputs:')[1].splitlines()):
                if name in self.files() and name not in found:
                    found.append(name)
                    if name.endswith('.a'):
                        rest.append(name)
        return found

    def files(self):
        return {name for names in self.outputs.values() for name in names}

    @contextlib.contextmanager
    def with_objects(self, changed):
        """The build folder with other objects, while the block runs. What is linked with them has to be built again."""
        keep = self.scratch / 'kept'
        keep.mkdir(exist_ok=True)
        linked = sorted({name for output in changed for name in self.linked(output)})
        (keep / 'list.json').write_text(json.dumps([list(changed), linked]))
        for number, (output, data) in enumerate(changed.items()):
            place = self.folder / output
            shutil.copy2(place, keep / 'part')
            os.replace(keep / 'part', keep / str(number))
            # ninja compiles again what is newer than it remembers.
            (self.scratch / 'object.o').write_bytes(data)
            shutil.copystat(place, self.scratch / 'object.o')
            os.replace(self.scratch / 'object.o', place)
        for name in linked:
            (self.folder / name).unlink(missing_ok=True)
        try:
            yield linked
        finally:
            self.restore()

    def restore(self):
        """Undoes with_objects, also after a run that was killed."""
        keep = self.scratch / 'kept'
        if not (keep / 'list.json').exists():
            return
        changed, linked = json.loads((keep / 'list.json').read_text())
        for number, output in enumerate(changed):
            if (keep / str(number)).exists():
                shutil.copy2(keep / str(number), self.folder / output)
        for name in linked:
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(keep)
