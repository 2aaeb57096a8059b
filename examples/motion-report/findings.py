# SPDX-License-Identifier: LGPL-2.1-or-later
"""The findings of the analysis of a clip. Only the memory for events grows with the length of the clip."""
from dataclasses import dataclass, field

import time_line

COLUMNS = 2000  # maximum number of places on the timeline; several frames share one


@dataclass
class Frame:
    """Brightness is the mean of the luma; dark and bright are its 1st and 99th percentiles, in percent of the range.
    `changed` is in percent of the picture."""
    time: float
    brightness: float = 0
    dark: float = 0
    bright: float = 0
    changed: float = 0
    regions: int = 0
    moving: bool = False


class Columns:
    """Frames in at most COLUMNS columns: the time of the first frame, the largest change, the sum of the brightness and
    its widest band. When all columns are full, neighbours are joined."""

    def __init__(self):
        self.rows, self.step = [], 1  # [time, changed, sum, dark, bright, frames]

    def add(self, frame):
        row = [frame.time, frame.changed, frame.brightness, frame.dark, frame.bright, 1]
        if self.rows and self.rows[-1][5] < self.step:
            self.rows[-1] = self.joined(self.rows[-1], row)
            return
        if len(self.rows) == COLUMNS:
            self.rows = [self.joined(*self.rows[i:i + 2]) for i in range(0, COLUMNS, 2)]
            self.step *= 2
        self.rows.append(row)

    @staticmethod
    def joined(a, b):
        return [a[0], max(a[1], b[1]), a[2] + b[2], min(a[3], b[3]), max(a[4], b[4]), a[5] + b[5]]

    def lists(self):
        """The columns as lists, rounded for the page."""
        return {"time": [round(row[0], 3) for row in self.rows], "changed": [round(row[1], 3) for row in self.rows],
                "mean": [round(row[2] / row[5], 1) for row in self.rows],
                "dark": [round(row[3], 1) for row in self.rows], "bright": [round(row[4], 1) for row in self.rows]}


@dataclass
class Findings:
    """`visits`, `crossings` and `notes` (stopped, moving, removed) are events as in motion.jsonl. `lights` are times.
    `runs` are pairs of times of the first and the last frame of a motion. `pictures` come from pictures.Pictures,
    `recording` is a recording.Recorder. `poster` is a JPEG of the frame with the most motion. `incomplete` says why the
    clip was not analysed to its end or events were not cut out, or is empty."""
    count: int = 0
    moving: int = 0
    start: float = 0
    end: float = 0
    light: float = 0  # sum of the brightness of all frames
    most: Frame = field(default_factory=lambda: Frame(0, changed=-1))
    columns: Columns = field(default_factory=Columns)
    runs: list = field(default_factory=list)
    visits: list = field(default_factory=list)
    crossings: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    lights: list = field(default_factory=list)
    pictures: object = None
    recording: object = None
    poster: bytes = b""
    heat_map: bytes = b""  # a JPEG; none without motion
    size: tuple = (0, 0)
    backend: str = ""
    settings: str = ""  # all properties of cudadiff that differ from their defaults
    incomplete: str = ""
    track: str = ""  # the analysed track, if there are several
    lost: list = field(default_factory=list)  # unreadable times, as losses.Span
    holes: list = field(default_factory=list)  # between the files of a recording, as time_line.Hole
    clocks: list = field(default_factory=list)  # pairs of a time and the clock time there, where the clock jumps
    parts: list = field(default_factory=list)  # the files of a recording, as clips_over_files.Part
    remark: str = ""  # a sentence about holes and the clock of a recording
    stopped: bool = False  # whether Ctrl-C stopped the analysis
    declared: float = 0  # length of the clip in seconds, as far as the pipeline knows it
    # How long the last frame is shown, in seconds; if unknown, the step between the last two frames.
    frame_time: float = 0
    # Files of events, by their start and the number of the object (None: a motion).
    clips: dict = field(default_factory=dict)
    cut: str = ""  # the number of clips of events, and their folder
    seconds: float = 0  # duration of the analysis
    reached: float = 0  # the time up to which frames arrived, including those outside the analysed part
    at_end: bool = False  # whether the clip continues after the analysed part
    was_moving: bool = False

    def add(self, frame):
        """Adds a frame. Frames must arrive in chronological order."""
        if not self.count:
            self.start = frame.time
        if frame.moving and self.was_moving:
            self.runs[-1][1] = frame.time
        elif frame.moving:
            self.runs.append([frame.time, frame.time])
        if frame.changed > self.most.changed:
            self.most = frame
        self.was_moving = frame.moving
        self.count += 1
        self.moving += frame.moving
        self.light += frame.brightness
        self.end = max(self.end, frame.time)
        self.columns.add(frame)

    def lose(self, spans):
        """Notes the unreadable times. No motion continues across them."""
        self.lost = spans
        self.split(spans)

    def split(self, spans):
        """Ends motion before times without frames, and restarts it after them."""
        for span in spans:
            self.runs = [part for begin, end in self.runs for part in (
                [[begin, min(end, span.begin)], [span.end, end]] if begin < span.begin and span.end <= end else
                [[begin, end]])]

    def set_line(self, line, begin=0, over=None):
        """Notes the holes and clock times of a time_line.TimeLine, from the start to the end of the analysed part."""
        self.holes = [hole for hole in line.holes if hole.end > begin and (over is None or hole.begin < over)]
        self.split(self.holes)
        self.clocks, self.remark = line.clocks, line.sentence(self.holes)

    def clock_at(self, time):
        """The clock time for a time in seconds, or None."""
        return time_line.clock_at(self.clocks, time)

    @property
    def length(self):
        return self.end - self.start
