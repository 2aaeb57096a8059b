# SPDX-License-Identifier: LGPL-2.1-or-later
"""Joins visits and motions that span two files of a recorder into one row of the tables.

Each file is analysed separately, in any order, so the rows are joined afterwards. Two motions are joined if the first
one lasts until the end of its file and the second one starts at the beginning of the next file. Two visits are joined
if, in addition, the last box of the first one is close to the first box of the second one. The order of files is known
from the clock times in their names or containers, see time_line.py."""
import os
from dataclasses import dataclass, field
from typing import Optional

import clock_names
import time_line
import uris

EDGE = 1.0  # a continuing visit may be invisible for this many seconds at the end of a file
LEARNING = 3.0  # seconds at the beginning of a file in which the background still contains moving objects
FRAMES = 3  # the same as a number of frames, if these last longer
NEAR = 0.5  # the largest distance between two boxes of one object, in lengths of a box, plus as much for each second
KINDS = "events", "objects"
BOX = "x", "y", "width", "height"


@dataclass
class Facts:
    length: float
    began: Optional[object]
    codec: str
    width: Optional[int]
    height: Optional[int]


@dataclass
class File(time_line.Segment):
    """A clip as a part of a recording."""
    edges: Optional[object] = None


@dataclass
class Seams:
    """The changes to the rows of results. `changes` are new values of a row, by (clip, kind, number of the row). `gone`
    has such keys for the rows that were joined to an earlier row. A clip is identified by its key."""
    changes: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)

    def apply(self, clip, kind, rows):
        """The rows of a clip for the table."""
        return [{**row, **self.changes.get((clip.key, kind, i), {})} for i, row in enumerate(rows)
                if (clip.key, kind, i) not in self.gone]

    def count(self, clip, kind, rows):
        return len(rows) - sum((clip.key, kind, i) in self.gone for i in range(len(rows)))


@dataclass
class Chain:
    """Rows of consecutive files that become one row. `row` is the last of them, `unit` the height of its pictures,
    `begin` the start of its file, `place` the start of the file of the first one, both in seconds of the recording.
    `values` are the changed values of the first row. `key` is the key in Seams.changes."""
    key: tuple
    row: dict
    unit: int
    begin: float
    place: float
    values: dict = field(default_factory=dict)


def times_of(kind, row):
    return (row["begin"], row["end"]) if kind == "events" else (row["entered"], row["left"])


def distance(a, b):
    """The distance between two boxes (x, y, width, height)."""
    across = max(a[0] - b[0] - b[2], b[0] - a[0] - a[2], 0)
    down = max(a[1] - b[1] - b[3], b[1] - a[1] - a[3], 0)
    return max(across, down)


def apart(kind, before, after, passed):
    """The distance between a row and another one that may continue it `passed` seconds later; None if it is too far.
    Both are pairs of a row and the height of its pictures."""
    (one, one_height), (other, other_height) = before, after
    if kind == "events":
        return 0 if one["event"] == other["event"] == "motion" else None
    first = other.get("first_box")
    if one.get("zone") != other.get("zone") or not first or one.get("width") is None:
        return None
    last, first = [one[name] / one_height for name in BOX], [value / other_height for value in first]
    found = distance(last, first)
    return found if found <= max(*last[2:], *first[2:]) * NEAR * (1 + max(passed, 0)) else None


class Edges:
    """The rows of a result that may continue across the seams. The rest of the result is not kept."""

    def __init__(self, clip, result):
        self.clip, self.length = clip, result.get("duration") or 0.0
        step = self.length / result["frames"] if result.get("frames") else 0.0
        self.edge, self.learning = (max(length, FRAMES * step) for length in (EDGE, LEARNING))
        self.unit = result.get("height") or 1
        self.rows = {kind: {} for kind in KINDS}
        for kind in KINDS:
            for i, row in enumerate(result.get(kind, ())):
                begin, end = times_of(kind, row)
                if (kind == "objects" or row["event"] == "motion") and (self.opens(begin) or self.lasts(end)):
                    self.rows[kind][i] = row

    def opens(self, begin):
        return begin <= self.learning

    def lasts(self, end):
        return end >= self.length - self.edge


def segment_of(clip, result):
    """The File of a clip on a disk; None for other clips."""
    path = uris.path_of(clip.uri)
    if path is None:
        return None
    good = (result or {}).get("status") == "ok" and result.get("duration")
    began = time_line.clock_of_text((result or {}).get("began"))
    facts = Facts(result["duration"], began, "", result.get("width"), result.get("height")) if good else None
    return File(os.path.abspath(path), facts, "" if good else "no result", clock_names.named(path),
                edges=Edges(clip, result) if good else None)


def began_of(clip, result):
    """The clock time of the beginning of a clip as ISO 8601: the time in its name, otherwise the time in its container;
    None without both."""
    path = uris.path_of(clip.uri)
    named = clock_names.named(path) if path is not None else None
    return clock_names.zoned(named.clock).isoformat() if named else (result or {}).get("began")


def find(clips, read):
    """The Seams of clips. `read(clip)` returns the result of a clip, or None."""
    segments = list(filter(None, (segment_of(clip, read(clip)) for clip in clips)))
    seams = Seams()
    for run in time_line.recordings(segments):
        if len(run) > 1:
            join(run, seams)
    return seams


def join(run, seams):
    line, chains, last = time_line.TimeLine(run), {kind: [] for kind in KINDS}, 0.0
    for segment in run:
        if not segment.facts:
            line.miss(segment)
            continue
        begin = line.place(segment)
        touches = begin == last and segment.edges
        for kind in KINDS:
            chains[kind] = follow(kind, chains[kind] if touches else [], segment.edges, begin, seams)
        line.reach(begin + segment.facts.length)
        last = line.end


def matched(kind, chains, edges, place):
    """The rows of a file that continue chains, by the key of the chain. Each chain gets the row that fits best. Other
    fitting rows then also belong to the chain, because a restarted background splits objects."""
    pairs = []
    for i, row in edges.rows[kind].items():
        begin, _ = times_of(kind, row)
        for chain in chains if edges.opens(begin) else ():
            passed = place + begin - chain.begin - times_of(kind, chain.row)[1]
            far = apart(kind, (chain.row, chain.unit), (row, edges.unit), passed)
            if far is not None:
                pairs.append((far, abs(passed), chain.key, i))
    found, taken = {}, set()
    for again in False, True:
        for *_, key, i in sorted(pairs):
            if i not in taken and (again or key not in found):
                taken.add(i)
                found.setdefault(key, []).append(i)
    return found


def follow(kind, chains, edges, place, seams):
    """Gives each chain the rows of the next file, which begins at `place`, in seconds of the recording. Returns the
    chains that may continue after that file."""
    rows, found = edges.rows[kind], matched(kind, chains, edges, place)
    left, taken = [], {i for numbers in found.values() for i in numbers}
    for chain in chains:
        if numbers := found.get(chain.key):
            extend(kind, chain, [rows[i] for i in numbers], place, edges)
            seams.gone.update((edges.clip.key, kind, i) for i in numbers)
            seams.changes[chain.key] = chain.values
            left.append(chain)
    left += [Chain((edges.clip.key, kind, i), row, edges.unit, place, place) for i, row in rows.items()
             if i not in taken]
    return [chain for chain in left if edges.lasts(times_of(kind, chain.row)[1])]


def extend(kind, chain, rows, place, edges):
    """Adds rows of the next file, which begins at `place`, to a chain."""
    before, values = {**chain.row, **chain.values}, chain.values
    last = max(rows, key=lambda row: times_of(kind, row)[1])
    end = round(times_of(kind, last)[1] + place - chain.place, 6)
    if kind == "events":
        values.update(begin=before["begin"], end=end, duration=end - before["begin"],
                      objects=max(row.get("objects") or 0 for row in [before, *rows]),
                      picture=before.get("picture") or rows[0].get("picture"),
                      changed_ratio=before.get("changed_ratio"))
    else:
        values.update(entered=before["entered"], left=end, seconds=round(end - before["entered"], 6),
                      path_length=before["path_length"] + max(row["path_length"] for row in rows),
                      **{name: last[name] for name in BOX})
    values["until_clip"] = edges.clip.name
    chain.row, chain.unit, chain.begin = last, edges.unit, place
