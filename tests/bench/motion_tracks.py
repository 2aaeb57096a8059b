# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tracks for motion_real.py: SORT from the package norfair on the boxes of a mask, and the figures of the package
motmetrics. `missing` lists the missing packages."""
import importlib.util

import numpy as np

from motion_run import cv2

missing = [name for name in ('norfair', 'motmetrics') if importlib.util.find_spec(name) is None]
AREA = 0.0005  # share of the frame: smaller parts of a mask are not objects
HOLD = 1.0     # seconds that SORT keeps an unseen track
LIMITS = (0.3, 0.5)


def boxes_of(mask):
    """The boxes (left, top, width, height) of the parts of a mask (bool), after an opening of 3×3 and a closing of a
    hundredth of its width."""
    side = max(3, mask.shape[1] // 100 | 1)
    parts = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    parts = cv2.morphologyEx(parts, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(parts)
    return [tuple(int(value) for value in stats[i, :4]) for i in range(1, count) if stats[i, 4] >= AREA * mask.size]


class Sort:
    """SORT: one Kalman filter per track, assignment by intersection over union of at least 0.3, confirmation in the
    third frame."""

    def __init__(self, rate):
        import norfair
        self.norfair, self.number, self.ids = norfair, 0, set()
        self.tracker = norfair.Tracker(distance_function='iou', distance_threshold=0.7,
                                       hit_counter_max=max(3, round(HOLD * rate)), initialization_delay=2)

    def update(self, boxes):
        """The visible tracks of a frame: list of (id, left, top, width, height)."""
        self.number += 1
        detections = [self.norfair.Detection(np.array([[x, y], [x + w, y + h]], float), data=self.number)
                      for x, y, w, h in boxes]
        found = []
        for track in self.tracker.update(detections):
            self.ids.add(track.id)
            if track.last_detection.data == self.number:
                (left, top), (right, bottom) = track.estimate
                found.append((track.id, left, top, right - left, bottom - top))
        return found


def track_figures(truth, tracks, frames):
    """truth, tracks: frame number → list of (id, left, top, width, height). frames: the number of frames. Returns mota,
    idf1 and switches for each of LIMITS, the smallest intersection over union at which a track matches a box."""
    if not hasattr(np, 'asfarray'):
        np.asfarray = lambda values: np.asarray(values, float)  # motmetrics 1.4 needs this with NumPy 2
    import motmetrics
    names = {'mota': 'mota', 'idf1': 'idf1', 'num_switches': 'switches'}
    figures = {}
    for limit in LIMITS:
        accumulator = motmetrics.MOTAccumulator(auto_id=True)
        for number in range(frames):
            true, found = truth.get(number, []), tracks.get(number, [])
            distances = motmetrics.distances.iou_matrix([box[1:] for box in true], [box[1:] for box in found],
                                                        max_iou=1 - limit)
            accumulator.update([box[0] for box in true], [box[0] for box in found], distances)
        row = motmetrics.metrics.create().compute(accumulator, metrics=list(names), name='all').iloc[0]
        figures.update({f'{name}_{limit}': int(row[key]) if name == 'switches' else float(row[key])
                        for key, name in names.items()})
    return figures
