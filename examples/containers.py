# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds incomplete containers: an MP4 without its index, which GStreamer cannot read, and a truncated file."""
import os
import struct

MP4 = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof", b"pnot")  # types of the first box
INDEXES = (b"moov", b"moof")  # the index of a whole file, and of each part of a fragmented one
NO_INDEX = "its index (moov) is missing: the file was cut off, is damaged, or is still being recorded"


def boxes(stream, size):
    """The types of the complete, consecutive boxes of an MP4 in order."""
    at = 0
    while at + 8 <= size:
        stream.seek(at)
        length, kind = struct.unpack(">I4s", stream.read(8))
        if length == 1:  # a longer number follows
            length, = struct.unpack(">Q", stream.read(8).rjust(8, b"\0"))
        at = at + length if length >= 8 else size  # 0: up to the end of the file
        if at <= size:
            yield kind


def fault_of(path):
    """A sentence about a file that cannot be read at all; otherwise an empty text. Raises OSError."""
    with open(path, "rb") as stream:
        head = stream.read(8)
        if head[4:] not in MP4 or any(kind in INDEXES for kind in boxes(stream, os.path.getsize(path))):
            return ""
    return NO_INDEX


def cut_of(path):
    """A sentence about an AVI that is smaller than its header says (avidemux reads the existing part); otherwise an
    empty text. Raises OSError."""
    with open(path, "rb") as stream:
        name, size, kind = struct.unpack("<4sI4s", stream.read(12).ljust(12, b"\0"))
    there = os.path.getsize(path)
    if (name, kind) != (b"RIFF", b"AVI ") or size + 8 <= there:
        return ""
    return f"it is cut off: {there} of {size + 8} bytes are there"
