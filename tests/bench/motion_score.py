# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scores motion against a known truth: pixels of masks, frames, visits, and crossings of a line. Nothing here needs
GStreamer."""
import statistics

import cv2
import numpy as np

# A frame is flagged above this white share, and has objects above this covered share.
FLAGGED = 0.002
SLACK = 1        # seconds after the last object left in which motion is not a ghost
NEAR = 0.7       # seconds between a crossing and its report


class Score:
    """Sums over the judged frames of a scene."""

    def __init__(self):
        self.hits = self.false = self.missed = 0                     # pixels
        # False pixels in a shadow, and missed pixels within 2 of the outline.
        self.shadow = self.outline = 0
        self.empty = self.flagged = self.events = self.full = self.reported = 0  # frames
        self.kinds = {}                                              # frame number → whether it has objects

    def pixels(self, mask, truth, unjudged, shadow=None):
        """Counts the pixels of a frame. All are bool, height × width. mask: None if the detector has none. truth:
        objects. unjudged: pixels that do not count. shadow: pixels in the shadow of an object."""
        if mask is not None:
            missed, false = ~mask & truth & ~unjudged, mask & ~truth & ~unjudged
            self.hits += int(np.count_nonzero(mask & truth & ~unjudged))
            self.false += int(np.count_nonzero(false))
            self.missed += int(np.count_nonzero(missed))
            if shadow is not None:
                self.shadow += int(np.count_nonzero(false & shadow))
            if missed.any():
                inner = cv2.erode(truth.astype(np.uint8), np.ones((5, 5), np.uint8), borderType=cv2.BORDER_CONSTANT,
                                  borderValue=1)
                self.outline += int(np.count_nonzero(missed & (inner == 0)))

    def frame(self, number, mask, full, empty):
        """Counts a frame. full, empty: whether it has objects, and whether it has none. A frame can be neither."""
        if empty:
            self.empty += 1
            self.flagged += mask is not None and bool(mask.mean() > FLAGGED)
            self.kinds[number] = False
        elif full:
            self.full += 1
            self.kinds[number] = True

    def report(self, moving):
        """moving: the numbers of frames with reported motion."""
        self.events = sum(number in moving for number, full in self.kinds.items() if not full)
        self.reported = sum(number in moving for number, full in self.kinds.items() if full)

    def f1(self):
        return 2 * self.hits / max(1, 2 * self.hits + self.false + self.missed)

    def precision(self):
        return self.hits / max(1, self.hits + self.false)

    def recall(self):
        return self.hits / max(1, self.hits + self.missed)


def figures(scores, has_mask=True, has_events=True):
    """The figures of a detector from its scores, by seed and scene. Figures that it does not have are None."""
    values = list(scores.values())
    empty, full = max(1, sum(s.empty for s in values)), max(1, sum(s.full for s in values))
    f1 = [s.f1() for s in values]
    return {
        'f1': statistics.mean(f1) if has_mask else None,
        'flagged': sum(s.flagged for s in values) / empty if has_mask else None,
        'events': sum(s.events for s in values) / empty if has_events else None,
        'reported': sum(s.reported for s in values) / full,
        'worst': min(f1) if has_mask else None,
        'scenes': {name: statistics.mean(s.f1() for (_, scene), s in scores.items() if scene == name)
                   for name in dict.fromkeys(scene for _, scene in scores)} if has_mask else None,
        'flagged_scenes': {name: sum(s.flagged for (_, scene), s in scores.items() if scene == name)
                           for name in dict.fromkeys(scene for _, scene in scores)} if has_mask else None,
    }


# --------------------------------------------------------------------------------------------------------------- visits

def episodes(visits, gap=0.0):
    """Intervals (from, to) with somebody present, from visits that can overlap. Intervals less than `gap` apart are
    joined."""
    joined = []
    for begin, end in sorted(visits):
        if joined and begin <= joined[-1][1] + gap:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return [tuple(episode) for episode in joined]


def overlap(a, b):
    """Seconds that two intervals share, or minus the distance between them."""
    return min(a[1], b[1]) - max(a[0], b[0])


def matched(truths, motions):
    """Pairs (episode, motion) that overlap, each in one pair only. Those that agree best come first (seconds shared ÷
    seconds covered)."""
    pairs = []
    for i, truth in enumerate(truths):
        for k, motion in enumerate(motions):
            common = overlap(truth, motion)
            if common >= 0:
                pairs.append((-(common + 1e-9) / (max(truth[1], motion[1]) - min(truth[0], motion[0]) + 1e-9), i, k))
    found = {}
    for _, i, k in sorted(pairs):
        if i not in found and k not in found.values():
            found[i] = k
    return sorted(found.items())


def judge_visits(truths, motions, end):
    """Compares episodes and motions, both intervals (first, last second). end: the end of the stream in seconds.

    Returns episodes, motions, found (episodes with their own motion), extra (motions without their own episode),
    begin_error and end_error (mean absolute difference of found episodes in seconds; None without any), ghost (seconds
    of motion while nobody is there, from SLACK after the last person left), missed (seconds of episodes without
    motion).
    """
    pairs = matched(truths, motions)
    errors = [statistics.mean(abs(motions[k][side] - truths[i][side]) for i, k in pairs) if pairs else None
              for side in (0, 1)]
    joined, free, last = episodes(motions), [], -SLACK
    for begin, finish in truths + [(end, end)]:
        free.append((last + SLACK, begin))
        last = finish
    ghost = sum(max(0.0, overlap(gap, motion)) for gap in free for motion in joined if gap[1] > gap[0])
    covered = sum(max(0.0, overlap(truth, motion)) for truth in truths for motion in joined)
    return {'episodes': len(truths), 'motions': len(motions), 'found': len(pairs), 'extra': len(motions) - len(pairs),
            'begin_error': errors[0], 'end_error': errors[1], 'ghost': ghost,
            'missed': sum(finish - begin for begin, finish in truths) - covered}


# ------------------------------------------------------------------------------------------------------------ crossings

def judge_crossings(true, reported, lanes):
    """Compares crossings of a line.

    true: (second, direction). reported: (second, direction, y of the lower edge of the object). lanes: (y, correct
    direction). Returns true, reported, right (reported crossings near a true one in the same direction, each of which
    counts once), and wrong (crossings against the direction of the object's lane).
    """
    left, right = list(true), 0
    for second, direction, _ in sorted(reported):
        near = [crossing for crossing in left if crossing[1] == direction and abs(crossing[0] - second) <= NEAR]
        if near:
            left.remove(min(near, key=lambda crossing: abs(crossing[0] - second)))
            right += 1
    wrong = sum(direction != min(lanes, key=lambda lane: abs(lane[0] - y))[1] for _, direction, y in reported)
    return {'true': len(true), 'reported': len(reported), 'right': right, 'wrong': wrong}
