# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arranges files of a recorder on a timeline: finds which files are parts of one recording, their order, and where
each one begins.

A timeline begins at 0. A file begins where the previous one ends if their clock times agree with that within TOLERANCE
seconds, because names contain whole seconds. A larger difference is a hole: nothing was recorded, or a file could not
be read. If a file begins before the previous file ends, the clock was set back; the timeline continues. Files without
clock times follow each other without holes."""
import datetime
import os
import statistics
from dataclasses import dataclass, field
from typing import Optional

import clip_facts
import clock_names
import common

TOLERANCE = 2.0  # seconds between two files that are one recording without a hole
PAUSE = 2 * 3600.0  # seconds of a hole that ends a recording, unless all files are joined
UNKNOWN = 10.0  # assumed length in seconds of an unreadable file, if no file can be read
JOINS = "auto", "all", "none"
LISTED = 5  # files or holes that a sentence names


@dataclass
class Segment:
    """A file. `clock` is the clock time of its beginning with a zone, or None; `named` is the information in its name.
    Without facts, `fault` says why it cannot be read. `length` is the length in seconds that its container declares, or
    None."""
    path: str
    facts: Optional[clip_facts.Facts] = None
    fault: str = ""
    named: Optional[clock_names.Named] = None
    clock: Optional[datetime.datetime] = None

    @property
    def name(self):
        return os.fsencode(os.path.basename(self.path)).decode(errors="replace")

    @property
    def length(self):
        return self.facts.length if self.facts else None


@dataclass
class Hole:
    """A time without video, in seconds of the timeline. `files` are the unreadable files that should fill it."""
    begin: float
    end: float
    files: list = field(default_factory=list)


def segment_of(path):
    """The Segment of a file. Opens the file, which takes a few hundredths of a second."""
    fault = common.fault_of(path)
    facts = None if fault else clip_facts.facts_of(path)
    return Segment(path, facts, fault or ("" if facts else "there is no video in it, or it cannot be read"),
                   clock_names.named(path))


def usual(segments):
    """The usual length of a file in seconds."""
    lengths = [each.length for each in segments if each.length]
    return statistics.median(lengths) if lengths else UNKNOWN


def length_of(segments):
    """The approximate length of a recording in seconds, including its holes."""
    readable, other = [each for each in segments if each.facts], usual(segments)
    total = sum(each.length or other for each in segments)
    if readable and readable[0].clock and readable[-1].clock:
        total = max(total, (readable[-1].clock - readable[0].clock).total_seconds() + (readable[-1].length or other))
    return total


def gap(before, after, length):
    """The seconds between the end of a file that lasts `length` seconds and the beginning of the next one."""
    return (after.clock - before.clock).total_seconds() - length


def set_clocks(segments):
    """Gives files their clock times. They come from the names if all readable names have one, otherwise from the
    containers if all have one and these are not the times at which a program copied or split the files. Returns whether
    files have clock times."""
    readable = [each for each in segments if each.facts]
    if readable and all(each.named for each in readable):
        for each in segments:
            each.clock = each.named and clock_names.zoned(each.named.clock)
    else:
        known = readable and all(each.facts.began for each in readable) and not are_copies(readable)
        for each in segments:
            each.clock = each.facts.began if known and each.facts else None
    return bool(readable) and bool(readable[0].clock)


def are_copies(segments):
    """Whether the containers' clocks of several files are all closer together than the files are long."""
    ordered_by_clock = sorted(segments, key=lambda each: each.facts.began)
    spaces = [(after.facts.began - before.facts.began).total_seconds() - (before.length or 0)
              for before, after in zip(ordered_by_clock, ordered_by_clock[1:])]
    return bool(spaces) and max(spaces) < -TOLERANCE


def clocks_of(segments):
    """The clock times of files in this order. Where the clock was set back at the end of summer time, the second of two
    equal hours is used if a file then begins where the previous one ends."""
    clocks, before = [], None
    for each in segments:
        clock = each.clock
        if before and clock and before.length and each.named and not each.named.clock.tzinfo:
            end = clocks[-1] + datetime.timedelta(seconds=before.length - TOLERANCE)
            later = clock_names.zoned(each.named.clock, fold=1)
            clock = later if clock < end <= later else clock
        clocks.append(clock)
        before = each
    return clocks


def cost(segments):
    """The cost of an order of files with clock times: how many begin before the previous one ends, and how many seconds
    are missing between them."""
    clocks = clocks_of(segments)
    spaces = [(after - before).total_seconds() - (each.length or 0)
              for each, before, after in zip(segments, clocks, clocks[1:])]
    return sum(space < -TOLERANCE for space in spaces), sum(space for space in spaces if space > TOLERANCE)


def changed(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0


def ordered(segments):
    """The files in chronological order. They are ordered by their clock times, unless these overlap because the clock
    was set back. Then the order of the names, of the containers' clocks, or of writing is used, for all files or only
    for those that overlap, if this order has fewer overlaps. Files without clock times are in the natural order of
    their names."""
    by_name = sorted(segments, key=lambda each: clock_names.natural(each.path))
    if not set_clocks(by_name):
        return by_name
    readable = [each for each in by_name if each.facts]
    keys = [by_name.index, lambda each: changed(each.path)]
    if all(each.facts.began for each in readable):
        keys.append(lambda each: each.facts.began)
    by_clock = sorted(readable, key=lambda each: each.clock)
    orders = [by_clock, *([each for group in crowds(by_clock, least) for each in sorted(group, key=key)]
                          for key in keys for least in (TOLERANCE, 0)), *(sorted(readable, key=key) for key in keys)]
    best = min(orders, key=cost)
    for each, clock in zip(best, clocks_of(best)):
        each.clock = clock
    return inserted(best, [each for each in by_name if not each.facts], by_name)


def crowds(segments, least):
    """Files in the order of their clock times, in lists that overlap by more than `least` seconds."""
    groups, end = [], None
    for each in segments:
        if not groups or (each.clock - end).total_seconds() >= -least:
            groups.append([])
        groups[-1].append(each)
        own = each.clock + datetime.timedelta(seconds=each.length or 0)
        end = own if len(groups[-1]) == 1 else max(end, own)
    return groups


def inserted(segments, broken, by_name):
    """Files with the unreadable files inserted: by their clock times, or after the file whose name precedes theirs."""
    segments = list(segments)
    for each in broken:
        if each.clock:
            place = max((i + 1 for i, other in enumerate(segments) if other.clock and other.clock <= each.clock),
                        default=0)
        else:
            names = [id(other) for other in by_name[:by_name.index(each)]]
            place = max((i + 1 for i, other in enumerate(segments) if id(other) in names), default=0)
        segments.insert(place, each)
    return segments


def recordings(segments, join="auto"):
    """Lists of files that are one recording, each in chronological order. With `auto`, files are one recording if they
    have clock times, the rest of their names is equal, no hole exceeds PAUSE, and at least two of them touch. Every
    other file is a separate list. `all`: all files are one recording; `none`: each file is one."""
    if join == "all":
        return [ordered(segments)] if segments else []
    series = {}
    for each in segments:
        key = each.named.series if each.named and join == "auto" else (os.path.dirname(each.path),)
        series.setdefault(key, []).append(each)
    found = []
    for files in series.values():
        runs = runs_of(ordered(files)) if join == "auto" else []
        joined = {id(each) for run in runs for each in run}
        found += runs + [[each] for each in files if id(each) not in joined]
    place = {id(each): i for i, each in enumerate(segments)}
    return sorted(found, key=lambda run: min(place[id(each)] for each in run))


def runs_of(segments):
    """The recordings of several files, from files in chronological order."""
    if not any(each.clock for each in segments if each.facts):
        return []
    runs, before, length = [], None, usual(segments)
    for each in segments:
        if before and each.clock and abs(gap(before, each, before.length or length)) > PAUSE:
            runs.append([])
        if not runs:
            runs.append([])
        runs[-1].append(each)
        before = each if each.clock else before
    return [run for run in runs if is_one(run)]


def is_one(run):
    """Whether files are one recording: more of them touch than overlap. An unreadable file has the usual length."""
    readable, known = [each for each in run if each.facts], [each for each in run if each.clock]
    length = usual(readable)
    pairs = [(before, gap(before, after, before.length or length)) for before, after in zip(known, known[1:])]
    touching = sum(abs(space) <= min(TOLERANCE, (before.length or length) / 4) for before, space in pairs)
    named = all(each.named for each in readable)  # otherwise they may be files that were made at the same time
    same = named or len({(each.facts.codec, each.facts.width, each.facts.height) for each in readable}) == 1
    return same and touching > sum(space < -TOLERANCE for _, space in pairs)


class TimeLine:
    """Places the files of a recording one after the other while they are read, because the end of each file is known
    only then. `clocks` are pairs of a time on the timeline in seconds and the clock time there, for each jump of the
    clock. `set_back` are pairs of the name of a file and the seconds by which the clock was set back before it."""

    def __init__(self, segments):
        self.usual, self.end = usual(segments), 0.0
        self.holes, self.clocks, self.set_back = [], [], []
        self.before, self.began, self.waiting = None, 0.0, []  # the last placed file, and the files to be named

    def place(self, segment):
        """The time at which the next file begins, after the files so far. miss() notes an unreadable file."""
        begin = self.begin_of(segment)
        if self.before and begin == self.end and (space := self.space_before(segment)) < -TOLERANCE:
            self.set_back.append((segment.name, -space))
        if begin > self.end or self.waiting:
            self.holes.append(Hole(self.end, max(begin, self.end), self.waiting))
        self.waiting, self.before, self.began, self.end = [], segment, begin, begin
        if segment.clock and (clock := self.clock_at(begin)) != segment.clock:
            if clock is None or abs((segment.clock - clock).total_seconds()) > TOLERANCE:
                self.clocks.append((begin, segment.clock))
        return begin

    def space_before(self, segment):
        """The seconds between the last placed file and another one, by their clock times; 0 without these."""
        if not (self.before and self.before.clock and segment.clock):
            return 0
        return gap(self.before, segment, self.end - self.began)

    def begin_of(self, segment):
        """The time at which another file would begin."""
        space = self.space_before(segment)
        return self.end + space if space > TOLERANCE else self.end

    def reach(self, end):
        """Notes that the last placed file has pictures until `end`."""
        self.end = max(self.end, end)

    def miss(self, segment):
        if not self.before and not self.waiting and segment.clock:
            self.before = segment  # the timeline begins with it
        if not segment.clock:  # it is assumed to be as long as others
            self.holes.append(Hole(self.end, self.end + self.usual, [segment.name]))
            self.end += self.usual
        else:
            self.waiting.append(segment.name)
            self.last_missing = segment

    def finish(self):
        """Notes the unreadable files at the end."""
        if self.waiting:
            begin = self.begin_of(self.last_missing) if self.before is not self.last_missing else self.end
            self.holes.append(Hole(self.end, begin + self.usual, self.waiting))
            self.waiting = []

    def clock_at(self, time):
        return clock_at(self.clocks, time)

    def sentence(self, holes):
        """A readable sentence about holes and about a clock that was set back; empty if there are none."""
        return "; ".join(filter(None, [
            about_holes([hole for hole in holes if not hole.files], self.clocks, "nothing was recorded"),
            about_holes([hole for hole in holes if hole.files], self.clocks, "files could not be read"),
            *(f"the clock was set back by {words_of(seconds)} before {name}" for name, seconds in self.set_back)]))


def clock_at(clocks, time):
    """The clock time for a time on the timeline in seconds, from TimeLine.clocks; None if there is none."""
    known = [each for each in clocks if each[0] <= time][-1:] or clocks[:1]
    return known[0][1] + datetime.timedelta(seconds=time - known[0][0]) if known else None


def clock_of_text(text):
    """The clock time of an ISO 8601 text; None if the text is not a clock time or has no zone."""
    try:
        clock = datetime.datetime.fromisoformat(text or "")
    except (TypeError, ValueError):
        return None
    return clock if clock.tzinfo else None


def words_of(seconds):
    """A readable length of time: 95 → 1 min 35 s."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (hours, "h"), (minutes, "min"), (rest, "s")
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def place_of(time, clocks):
    """A time on the timeline as a readable text: its clock time, if it has one."""
    clock = clock_at(clocks, time)
    return f"{clock:%Y-%m-%d %H:%M:%S}" if clock else words_of(time)


def about_holes(holes, clocks, what):
    """A sentence about holes, or an empty text."""
    if not holes:
        return ""
    places = [f"{place_of(hole.begin, clocks)}, {words_of(hole.end - hole.begin)}" for hole in holes[:LISTED]]
    more = f" and {len(holes) - LISTED} more" if len(holes) > LISTED else ""
    count = "1 hole" if len(holes) == 1 else f"{len(holes)} holes"
    return f"{count}, where {what} (from {'; '.join(places)}{more})"
