#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Judges motion detection on real footage with truth, compared with OpenCV's background subtractors.

  motion_real.py FOLDER… [--preset=outdoor,indoor,…] [--properties="…"]… [--backend=cpu|cuda] [--only=NAME,…]
                 [--peers=NAME,…] [--rate=25] [--starts=FRAME,… --frames=250] [--markdown=FILE] [--json=FILE]

The program finds footage in the folders and their subfolders:
  CDnet       input/, groundtruth/, ROI.bmp or ROI.jpg, temporalROI.txt
  Wallflower  frames and one hand_segmented_NUMBER.bmp
  MOT         NAME.gt.txt for the clip NAME.avi, in any of the folders; gt.txt beside a clip; gt/gt.txt beside img1/
  visits.csv  columns clip, from, to: when somebody is in the picture, in seconds; no times: the clip is empty

Each preset, and each `--properties`, is a column; the default of `gap` is 1 here. Peers are OpenCV's subtractors with
their defaults, without shadows in the foreground; peers of contrib need PyPI's opencv-contrib-python-headless.
`--starts` judges footage with boxes once from each of these start frames, `--frames` frames each time, and shows the
means, because a single run in a crowd depends on chance. `--only` takes names of footage; `--rate` applies to pictures
in folders. Pixels outside the region of interest or with unknown labels are not judged.

F, precision and recall cover all judged pixels. False in shadow: false pixels labelled shadow. Missed at outlines:
missed pixels within 2 of an outline. Flagged: frames without people with more than 0.2 % white. Found: intervals with
people that have their own motion; extra: motions without an interval; begin and end: mean error; false: motion while
nobody is there, from a second after the last person left. A peer has motion while its mask is flagged; SORT (PyPI
norfair) follows its boxes after opening and closing. MOTA, IDF1 and switches come from PyPI motmetrics, with the
smallest intersection over union of a box that counts. CPU: time of all threads per frame, without decoding and scoring;
the figure of cudadiff includes its pipeline, mask and metas. Exit status: 0; 1 with a sentence; 77 if something is
missing.
"""
import argparse
import sys

from motion_run import GAP, CudaDiff, Failure, Gst, Subtractor, cv2, need_plugin, shown, to_i420, write_results

import motion_footage
import motion_tracks
from motion_score import Score, episodes, judge_visits

PEERS = {name: (module, f'createBackgroundSubtractor{name}') for name, module in
         (('MOG2', 'cv2'), ('KNN', 'cv2'), ('GSOC', 'bgsegm'), ('LSBP', 'bgsegm'), ('CNT', 'bgsegm'))}
FIGURES = (  # key, title, whether it is a share
    ('f', 'F', False), ('precision', 'precision', False), ('recall', 'recall', False),
           ('shadow', 'false in shadow', True),
    ('outline', 'missed at outlines', True), ('false', 'false pixels', False),
    *((f'{key}_{limit}', f'{title}, IoU {limit}', False) for limit in motion_tracks.LIMITS
      for key, title in (('mota', 'MOTA'), ('idf1', 'IDF1'), ('switches', 'switches'))),
    ('found', 'found', False), ('extra', 'extra motions', False), ('begin_error', 'begin, s', False),
    ('end_error', 'end, s', False), ('ghost', 'false, s', False), ('missed', 'missed, s', False), ('ids', 'ids', False),
    ('flagged', 'flagged', False), ('cpu', 'CPU, ms a frame', False))


def peer_maker(name):
    """A function that makes a peer, or None if OpenCV lacks it."""
    module, function = PEERS[name]
    return getattr(cv2 if module == 'cv2' else getattr(cv2, module, None), function, None)


class Method:
    """A detector on one footage, with its tracks and scores."""

    def __init__(self, detector, rate, tracks):
        self.detector, self.score, self.tracks = detector, Score(), {}
        sorts = tracks and not isinstance(detector, CudaDiff) and 'norfair' not in motion_tracks.missing
        self.sort = motion_tracks.Sort(rate) if sorts else None

    def apply(self, number, yuv, picture, labels, is_empty):
        mask = self.detector.timed(yuv, picture)
        if self.sort:
            self.tracks[number] = self.sort.update(motion_tracks.boxes_of(mask))
        if labels:
            self.score.pixels(mask, labels.truth, labels.unjudged, labels.shadow)
            mask = mask & ~labels.unjudged
        self.score.frame(number, mask, is_empty is False, is_empty is True)

    def figures(self, footage, frames):
        """Key of FIGURES → value, for those with truth in the footage."""
        detector, score = self.detector, self.score
        detector.finish()
        result = {'cpu': 1000 * detector.cpu / frames}
        if footage.masks:
            result.update(f=score.f1() if score.hits + score.missed else None, precision=score.precision(),
                          recall=score.recall(), outline=score.outline / score.missed if score.missed else None)
            if not score.hits + score.missed:
                result.update(precision=None, recall=None, false=score.false)
            elif any(footage.masks[number].shadow is not None for number in list(footage.masks)[:1]):
                result['shadow'] = score.shadow / score.false if score.false else None
        if score.empty:
            result['flagged'] = f'{score.flagged} of {score.empty}'
        followed = isinstance(detector, CudaDiff) or self.sort
        if followed and (footage.boxes or footage.visits is not None):
            result['ids'] = len(detector.ids() if isinstance(detector, CudaDiff) else self.sort.ids)
        if footage.boxes and followed and 'motmetrics' not in motion_tracks.missing:
            tracks = dict(enumerate(detector.boxes)) if isinstance(detector, CudaDiff) else self.tracks
            result.update(motion_tracks.track_figures(footage.boxes, tracks, frames))
        if footage.visits is not None:
            judged = judge_visits(episodes(footage.visits, GAP), detector.motions(), frames / footage.rate)
            result.update({key: judged[key] for key in ('extra', 'begin_error', 'end_error', 'ghost', 'missed')},
                          found=f'{judged["found"]} of {judged["episodes"]}', motions=detector.motions())
        return result


def judge(footage, settings, peers, backend):
    """Runs all methods on a footage. settings: name → properties. Returns name → figures."""
    methods, frames = {}, 0
    try:
        for number, picture in enumerate(footage.frames()):
            yuv, picture = to_i420(picture)
            if not methods:
                methods = make_methods(footage, picture.shape[1::-1], settings, peers, backend)
            labels = footage.masks[number] if footage.masks and number in footage.masks else None
            empty = is_empty(footage, number, labels)
            for method in methods.values():
                method.apply(number, yuv, picture, labels, empty)
            frames += 1
        last = max([*(footage.masks or ()), *(footage.boxes or ())], default=0)
        if frames <= last:
            raise Failure(f'{footage.name} has {frames} frames, and the truth is of frame {last + 1} too')
    except Failure:
        for method in methods.values():
            method.detector.close()
        raise
    return {name: method.figures(footage, frames) for name, method in methods.items()}


def means(results):
    """The means of numbers over the results of judge() for several pieces."""
    return {name: {key: sum(result[name][key] for result in results) / len(results)
                   for key, value in figures.items() if not isinstance(value, str)}
            for name, figures in results[0].items()}


def make_methods(footage, size, settings, peers, backend):
    step, tracks = int(Gst.SECOND / footage.rate), bool(footage.boxes) or footage.visits is not None
    detectors = {name: CudaDiff(size, f'gap={GAP} {properties}', backend, step, tracks)
                 for name, properties in settings.items()}
    detectors.update({name: Subtractor(peer_maker(name), False, step) for name in peers})
    return {name: Method(detector, footage.rate, tracks) for name, detector in detectors.items()}


def is_empty(footage, number, labels):
    """Whether nobody is in a frame; None if unknown."""
    if labels:
        here = (labels.truth & ~labels.unjudged).any()
        return None if labels.unclear.any() and not here else not here
    if footage.visits is not None:  # visits are accurate to half a second; shadows come earlier
        return not any(begin - 1 <= number / footage.rate <= end + 1 for begin, end in footage.visits)
    return None  # boxes label only people


def table(results):
    """Rows of text, from footage → method → figures."""
    names = list(dict.fromkeys(name for methods in results.values() for name in methods))
    rows = [['footage', 'figure'] + names]
    for footage, methods in results.items():
        for key, title, share in FIGURES:
            if any(key in figures for figures in methods.values()):
                cells = [methods[name].get(key) for name in names]
                rows.append([footage, title]
                            + [cell if isinstance(cell, str) else shown(cell, share) for cell in cells])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='+', metavar='FOLDER')
    parser.add_argument('--preset', default=None, type=lambda text: text.split(','))
    parser.add_argument('--properties', action='append', default=[])
    parser.add_argument('--backend', default='cpu')
    parser.add_argument('--only', type=lambda text: text.split(','))
    parser.add_argument('--peers', default=list(PEERS), type=lambda text: [name for name in text.split(',') if name])
    parser.add_argument('--rate', default=25, type=float)
    parser.add_argument('--starts', type=lambda text: [int(start) for start in text.split(',')])
    parser.add_argument('--frames', default=250, type=int)
    parser.add_argument('--markdown')
    parser.add_argument('--json')
    args = parser.parse_args()
    cv2.setNumThreads(1)
    need_plugin()
    if unknown := [name for name in args.peers if name not in PEERS]:
        raise Failure(f'{unknown[0]} is not a peer: they are {", ".join(PEERS)}')
    if args.preset is None:
        args.preset = [] if args.properties else ['outdoor']
    settings = {name: f'preset={name}' for name in args.preset}
    settings.update({text: text for text in args.properties})
    found = motion_footage.find(args.folders, args.rate)
    if args.only:
        known = [footage.name for footage in found]
        if unknown := [name for name in args.only if name not in known]:
            raise Failure(f'{unknown[0]} is not there: there are {", ".join(known)}')
        found = [footage for footage in found if footage.name in args.only]
    if args.starts:
        found = [footage for footage in found if footage.boxes]
    peers = [name for name in args.peers if peer_maker(name)]
    for name in args.peers:
        if name not in peers:
            print(f'skipped: this OpenCV has no {name}; PyPI: opencv-contrib-python-headless', file=sys.stderr)
    if any(footage.boxes or footage.visits is not None for footage in found):
        for name in motion_tracks.missing:
            what = 'tracks of peers' if name == 'norfair' else 'MOTA and IDF1'
            print(f'skipped: no {what} without PyPI: {name}', file=sys.stderr)
    results = {}
    for footage in found:
        key = footage.name
        while key in results:
            key += '′'
        if args.starts:
            results[key] = means([judge(footage.piece(start, args.frames), settings, peers, args.backend)
                                  for start in args.starts])
        else:
            results[key] = judge(footage, settings, peers, args.backend)
        print(f'{key}: done', file=sys.stderr)
    write_results(table(results), args, {'settings': settings, 'backend': args.backend, 'results': results})


if __name__ == '__main__':
    try:
        main()
    except (Failure, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
