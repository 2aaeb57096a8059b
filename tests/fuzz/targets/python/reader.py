# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bytes of a fuzzing engine as numbers and texts, like the class Bytes of tests/streams/random.hpp."""


class Reader:
    """Reads values one after the other. After the last byte all values are 0."""

    def __init__(self, data):
        self.data, self.at = data, 0

    @property
    def left(self):
        return len(self.data) - self.at

    def raw(self, count):
        taken = self.data[self.at : self.at + count]
        self.at += len(taken)
        return taken

    def number(self, count):
        """An unsigned number of this many bytes."""
        return int.from_bytes(self.raw(count), "little")

    def signed(self, count):
        return int.from_bytes(self.raw(count).ljust(count, b"\0"), "little", signed=True)

    def below(self, count):
        return self.number(1 if count <= 256 else 2) % count

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def around(self, valid):
        """A number that is likely to be `valid` or close to it, but may be any 64-bit number."""
        kind = self.below(8)
        if kind < 5:
            return (valid, valid, valid, valid + self.signed(1) if kind == 3 else valid, self.number(1))[kind]
        return self.signed(8) if kind == 5 else valid + (1 << self.below(64)) if kind == 6 else self.signed(4)

    def text(self):
        """A text up to a zero byte. Bytes that are not UTF-8 become lone surrogates, as in names of files."""
        end = self.data.find(b"\0", self.at)
        taken = self.raw((end if end >= 0 else len(self.data)) - self.at)
        self.at += end >= 0
        return taken.decode(errors="surrogateescape")

    def rest(self):
        return self.raw(self.left)
