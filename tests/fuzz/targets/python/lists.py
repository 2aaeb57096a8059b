# SPDX-License-Identifier: LGPL-2.1-or-later
"""Target: user input of motion-scan: lists of clips, settings and shards, and the visible part of a URI."""
import os
import tempfile

import clips
import common
import uris
from reader import Reader

FILES = ("examples/motion-scan/clips.py", "examples/uris.py")
SECRET = "S3CR3Tpw"
EMPTY = tempfile.TemporaryDirectory()  # nothing that a list names exists there


def read_list(data):
    with open(os.memfd_create("list"), "w+b") as stream:
        stream.write(data)
        stream.flush()
        lines = clips.lines_of(f"/proc/self/fd/{stream.fileno()}")
        assert all(lines) and not any("\n" in line for line in lines)
        # discover() searches folders, so a line must not name an existing one.
        if not any(os.path.isdir(uris.path_of(line) or "") for line in lines):
            try:
                found = clips.discover([], [f"/proc/self/fd/{stream.fileno()}"])
            except common.Failure:
                found = []
            assert len(set(found)) == len(found)
            names = [clip.name for clip in clips.clips_of(found, {})]
            assert len(set(names)) == len(names), "two clips have one name"
    settings = {"preset": "outdoor"}
    for line in lines:
        clip = clips.clip_of(line, settings)
        assert len(clip.key) == 32
        assert sum(clips.in_shard(line, (index, 3)) for index in range(3)) == 1
        clip.name.encode("utf-8", "surrogateescape")


def hide_password(reader):
    """A password before an @ must not be shown, whatever surrounds it."""
    scheme = reader.pick(("rtsp", "http", "rtmp", "RTSP", "srt+x"))
    user, more, host, text = (reader.text() for _ in range(4))
    if any(mark in user + more for mark in "/?#@:") or SECRET in host + text:
        return
    location = f"{scheme}://{user}:{SECRET}{more}@{host}"
    for shown in (uris.shown(location), uris.name_of(location), uris.hide(f"cannot open {location}: {text}", location),
                  uris.hide(f"{text} {uris.opened(location)}", location), clips.clip_of(location, {}).name):
        assert SECRET not in shown, f"{location!r} is shown as {shown!r}"


def read_words(reader):
    text = reader.text()
    try:
        settings = clips.settings_of([text, reader.text()])
        assert "output" not in settings and all(isinstance(value, str) for value in settings.values())
    except ValueError as error:
        assert str(error)
    try:
        index, count = clips.shard_of(text)
        assert 0 <= index < count
    except ValueError as error:
        assert str(error)


def one_input(data):
    os.chdir(EMPTY.name)
    reader = Reader(data)
    kind = reader.below(4)
    if kind == 0:
        hide_password(reader)
    elif kind == 1:
        read_words(reader)
    else:
        read_list(reader.rest())
