# SPDX-License-Identifier: LGPL-2.1-or-later
"""The changes that tests/mutants.py tries. universalmutator makes them with cpp.rules."""
import contextlib
import dataclasses
import hashlib
import importlib
import io
import subprocess
import sys
from pathlib import Path

PACKAGE = 'universalmutator==1.14.1'
RULES = Path(__file__).with_name('cpp.rules')


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One line of a file, and its replacement. `before` and `after` end without a newline."""
    file: str
    line: int
    before: str
    after: str

    @property
    def key(self):
        """Its name in the journal."""
        return f'{self.file}:{self.line}:' + hashlib.sha1(f'{self.before}\n{self.after}'.encode()).hexdigest()[:12]

    def text(self, source):
        """The whole file with the change."""
        lines = (source / self.file).read_text(encoding='utf-8').split('\n')
        assert lines[self.line - 1] == self.before, f'{self.file} changed meanwhile'
        lines[self.line - 1] = self.after
        return '\n'.join(lines)

    def __str__(self):
        return f'{self.file}:{self.line}\n  - {self.before.strip()}\n  + {self.after.strip() or "(nothing)"}'


def generator(folder):
    """universalmutator's module, which is installed from PyPI into this folder unless it is there; None if this is
    impossible. Its rules need only the standard library."""
    if not (folder / f'{PACKAGE.replace("==", "-")}.dist-info').exists():
        subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps',
                        '--upgrade', '--target', str(folder), PACKAGE])
    sys.path.append(str(folder))
    try:
        return importlib.import_module('universalmutator.mutator')
    except ImportError:
        return None


def mutants_of(mutator, source, file):
    """All changes of one file, each once."""
    lines = (source / file).read_text(encoding='utf-8').splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints the names of its rules for each file
        found = mutator.mutants_regexp(lines, [str(RULES)], ignorePatterns=[], ignoreStringOnly=True)
    if 'WARNING' in said.getvalue() or 'COULD NOT' in said.getvalue():
        raise RuntimeError(said.getvalue())
    return [Mutant(file, number, lines[number - 1].rstrip('\n'), after.rstrip('\n')) for number, after, *_ in found]


def in_order(mutants, seed):
    """Sorts by a seed. The order does not depend on the machine. A change of the code moves only the mutants of the
    changed lines."""
    return sorted(mutants, key=lambda mutant: hashlib.sha1(f'{seed} {mutant.key}'.encode()).digest())
