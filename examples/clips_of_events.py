# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cuts events out of a video file at its key frames, without encoding. Each event becomes a separate file, with the
sound that its container supports.

A clip begins at the last key frame before the requested time, so it may begin earlier. The list of clips, clips.csv and
clips.json, has the actual beginning and end of each clip."""
import contextlib
import csv
import datetime
import io
import json
import os
import re
from dataclasses import dataclass, field
from typing import Optional

import common
import edl
from clip_formats import FORMATS, made, sounds_of  # noqa: F401: other modules import FORMATS
from clip_streams import Reader, write
from common import Gst

KINDS = "motions", "visits", "joined"  # values of --clips; joined: motions, also as one file (joined_clips.py)
ALL = "all-motions"  # the name of this file, without suffix
LISTS = "clips.csv", "clips.json"
EDL = "clips.edl"  # list for video editors
COLUMNS = "file", "begin_s", "end_s", "event_begin_s", "event_end_s", "begin_clock", "object"
SUFFIXES = "mp4", "webm", "avi", "mkv"
NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d|\d+h\d\dm\d\d\.\ds)_\d{4,}(_object-\d+)?\."
                  rf"({'|'.join(SUFFIXES)})")


def with_kinds(texts):
    """The command line, with a value for each --clips. Without one, argparse would use the next clip as the value."""
    return [f"{text}=motions" if text == "--clips" and after not in KINDS else text
            for text, after in zip(texts, [*texts[1:], None])]


@dataclass
class Event:
    """A motion, or a visit of an object if it has a number. Times are stream times in seconds."""
    begin: float
    end: float
    number: Optional[int] = None
    row: dict = field(default_factory=dict)  # the row of its clip
    # Its clip does not reach beyond these times, for example into a hole between the files of a recording.
    earliest: float = 0
    latest: float = float("inf")

    def limit(self, holes):
        """Keeps the clip out of times without frames, which have `begin` and `end`."""
        self.earliest = max((hole.end for hole in holes if hole.end <= self.begin), default=self.earliest)
        self.latest = min((hole.begin for hole in holes if hole.begin >= self.end), default=self.latest)

    def around(self, before, after):
        """The requested begin and end of its clip."""
        return max(self.begin - before, self.earliest), min(self.end + after, self.latest)


def name_of(index, event, begin, clock, suffix):
    """The name of a clip that begins at `begin` seconds. `clock` is the clock time of this moment, or None."""
    if clock:
        when = clock.strftime("%Y-%m-%dT%H-%M-%S")
    else:
        tenths = int(begin * 10)
        when = f"{tenths // 36000:02}h{tenths // 600 % 60:02}m{tenths // 10 % 60:02}.{tenths % 10}s"
    return f"{when}_{index:04}{'' if event.number is None else f'_object-{event.number}'}.{suffix}"


def real(paths):
    """The real paths of one path, several paths, or none."""
    return {os.path.realpath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths or [])}


def joined_in(folder):
    """The names of files of joined motions in a folder."""
    return [name for name in (f"{ALL}.{suffix}" for suffix in SUFFIXES) if os.path.isfile(os.path.join(folder, name))]


def forget(folder, paths):
    """Removes the clips of an earlier run, except `paths` (one or several), which may be among them."""
    kept = real(paths)
    for name in [*filter(NAME.fullmatch, os.listdir(folder)), *joined_in(folder)]:
        if os.path.realpath(os.path.join(folder, name)) not in kept:
            os.unlink(os.path.join(folder, name))


def forget_listed(folder, paths):
    """Removes the lists of an earlier run, and the clips that they name, except `paths` (one, several or none), which
    may be among them. Keeps files that do not look like files of an earlier run."""
    kept = real(paths)
    lists = [os.path.join(folder, name) for name in (*LISTS, EDL)]
    try:
        with open(lists[0], encoding="utf-8", newline="") as table, open(lists[1], encoding="utf-8") as rows:
            ours, names = table.readline() == ",".join(COLUMNS) + "\r\n", [row["file"] for row in json.load(rows)]
    except (OSError, ValueError, TypeError, KeyError):  # they are missing, or belong to somebody else
        return
    names = [name for name in names if isinstance(name, str) and NAME.fullmatch(name)] + joined_in(folder)
    files = [os.path.join(folder, name) for name in names]
    for file in files + lists if ours else ():
        if os.path.realpath(file) not in kept:
            with contextlib.suppress(OSError):
                os.unlink(file)
    with contextlib.suppress(OSError):  # it has other files
        os.rmdir(folder)


def cut(path, facts, events, folder, before=2, after=2, began=None, offset=0, until=None, name=None, reader=Reader):
    """Writes a clip of each event into a folder, with `before` and `after` seconds around it, and the lists. Events
    whose clips would overlap share one clip, unless they are visits of different objects. Returns the rows of the
    lists. `began` is the clock time of the beginning, or a function that converts a stream time in seconds to a clock
    time. `offset` is the time at which the file begins on the clock of the events, `until` the value of
    time.monotonic() at which it gives up, `name` the name of the clip in the list for editors. `reader(path, facts,
    until)` returns a reader for the file, or for the files if `path` is a list. Raises a Failure; the lists then have
    the clips so far, and their events have their rows."""
    rows = []
    clock = began if callable(began) else lambda when: began and began + datetime.timedelta(seconds=when)

    def opened():
        return reader(path, facts, until)

    try:
        os.makedirs(folder, exist_ok=True)
        forget(folder, path)
        try:
            cut_each(path, facts, events, folder, before, after, clock, offset, opened, rows)
        finally:
            write_lists(rows, folder, name or os.path.basename(path), facts.rate)
    except OSError as error:
        raise common.Failure(f"cannot write to {folder}: {error.strerror}") from error
    return rows


def cut_each(path, facts, events, folder, before, after, clock, offset, opened, rows):
    """Does the same as cut(), but adds the rows to `rows` instead of writing the lists. If this fails with sound, it is
    repeated without sound."""
    if sounds_of(facts):
        try:
            cut_all(events, folder, before, after, clock, offset, opened, rows)
            return
        except common.Failure as failure:
            facts.sounds, facts.unheard = (), str(failure)
            rows.clear()
            forget(folder, path)
            for event in events:
                event.row = {}
    cut_all(events, folder, before, after, clock, offset, opened, rows)


def cut_all(events, folder, before, after, clock, offset, opened, rows):
    """Does the same as cut_each(), in one attempt."""
    with opened() as reader:
        for group in together(events, before, after, lambda when: reader.key_before(when - offset) + offset):
            event = Event(group[0].begin, max(each.end for each in group), group[0].number)
            begin, end = group[0].around(before, after)[0], max(each.around(before, after)[1] for each in group)
            wanted = max(begin - offset, 0), end - offset
            facts = reader.facts_for(*wanted)
            with common.Unfinished(folder) as file:
                found = write(reader.samples(*(int(time * Gst.SECOND) for time in wanted)), facts, file.stream,
                              latest=(max(each.latest for each in group) - offset) * Gst.SECOND)
                if not found:
                    continue
                begin, end = (time / Gst.SECOND + offset for time in found)
                shown = clock(begin)
                name = name_of(len(rows) + 1, event, begin, shown, made(facts)[2])
                file.become(os.path.join(folder, name))
            row = dict(zip(COLUMNS, (name, round(begin, 3), round(end, 3), round(event.begin, 3), round(event.end, 3),
                                     shown.isoformat(timespec="milliseconds") if shown else "",
                                     "" if event.number is None else event.number)))
            for each in group:
                each.row = row
            rows.append(row)


def together(events, before, after, key_before):
    """Lists of events that share one clip, in the order of their first events. Events share a clip if their clips would
    overlap. A clip begins at the last key frame before the requested time. Visits of different objects stay apart."""
    groups, last = [], {}
    for event in sorted(events, key=lambda each: each.begin):
        group, begin = last.get(event.number), event.around(before, after)[0]
        end = max(each.around(before, after)[1] for each in group) if group else None
        if group and (begin <= end or key_before(begin) <= end):
            group.append(event)
        else:
            last[event.number] = [event]
            groups.append(last[event.number])
    places = {id(event): place for place, event in enumerate(events)}
    return sorted(groups, key=lambda group: min(places[id(event)] for event in group))


def write_lists(rows, folder, name, rate):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    parts = [(row["begin_s"], row["end_s"]) for row in rows]
    contents = text.getvalue(), json.dumps(rows, indent=1) + "\n", edl.text_of(name, parts, rate)
    for file, content in zip((*LISTS, EDL), contents):
        with common.whole(os.path.join(folder, file)) as stream:
            stream.write(content.encode())
