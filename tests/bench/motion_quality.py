#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Judges motion detection on scenes of known truth (motion_scenes.py), beside OpenCV's background subtractors and motioncells.

  motion_quality.py [MEDIA] [--seeds=1,2] [--properties="…"] [--backend=cpu|cuda] [--only=SCENE,…] [--size=WxH] [--frames=N] [--json=FILE]
                    [--markdown=FILE] [--no-peers] [--quick]

MEDIA is a folder with photos/ and vtest.avi, such as Debian's opencv-doc has them; without it the textures are synthetic. The plugin is
found with GST_PLUGIN_PATH. `--properties` are those of cudadiff; one setting serves all scenes. `--quick` checks the scenes and the scores
and measures nothing.

Frames that models learn from are not judged. Pixels on the edge of an object, which show both it and its background, are not judged
either. F1 is that of all judged pixels of a scene. A frame has objects if they cover 0.2 % of it; one that they cover less is neither with
nor without objects. A frame is flagged if there is none, and more than 0.2 % of the mask is white, or motion is reported.
Needs NumPy, OpenCV and PyGObject. Exit status: 0; 1 if a pipeline or a check failed, with one sentence on stderr; 77 if something is missing.
"""
import argparse
import json
import os
import statistics
import sys

try:
    import cv2
    import gi
    import numpy as np
    gi.require_version('Gst', '1.0')
    from gi.repository import Gst
except (ImportError, ValueError) as error:
    print(f'skipped: {error}', file=sys.stderr)
    sys.exit(77)

import motion_scenes

FLAGGED = 0.002         # share of the frame
PEOPLE = 20             # visits of people in vtest.avi, counted by eye in stills of every second: docs/motion.md lists them
PROPERTIES = 'preset=outdoor'
FIGURES = (             # key, title, must, aim, whether more is better, whether it is a share
    ('f1', 'F1 of the mask, mean over the scenes', 0.86, 0.92, True, False),
    ('flagged', 'frames without objects, flagged', 0.02, 0, False, True),
    ('events', 'the same by events', 0.02, 0, False, True),
    ('reported', 'frames with objects, motion reported', 0.98, 1, True, True),
    ('worst', 'worst single scene, F1', 0.5, 0.7, True, False),
    ('ids_per_person', 'vtest.avi: objects reported ÷ people', 3, 1.3, False, False),
    ('median_life', 'vtest.avi: median life of an object, s', 3, None, True, False),
)


class Failure(Exception):
    """A sentence for the user."""


# ------------------------------------------------------------------------------------------------------------------------- scores

class Score:
    """Sums over the judged frames of a scene."""

    def __init__(self):
        self.hits = self.false = self.missed = 0                     # pixels
        self.empty = self.flagged = self.events = self.full = self.reported = 0  # frames

    def add(self, frame, mask, motion):
        """mask: bool, height × width, or None if the detector has none. motion: whether it reports motion, or None."""
        truth = (frame.ids > 0) & ~frame.mixed
        if mask is not None:
            self.hits += int(np.count_nonzero(mask & truth))
            self.false += int(np.count_nonzero(mask & ~truth & ~frame.mixed))
            self.missed += int(np.count_nonzero(~mask & truth))
        if not (truth.any() or frame.mixed.any()):
            self.empty += 1
            self.flagged += mask is not None and bool(mask.mean() > FLAGGED)
            self.events += bool(motion)
        elif truth.mean() > FLAGGED:
            self.full += 1
            self.reported += bool(motion)

    def f1(self):
        return 2 * self.hits / max(1, 2 * self.hits + self.false + self.missed)


def figures(scores, has_mask=True, has_events=True):
    """The figures of a detector from its scores, by seed and scene. A figure that it does not have is None."""
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


def verdict(value, must, aim, more):
    if value is None:
        return 'not available'
    reached = (lambda limit: value >= limit) if more else (lambda limit: value <= limit)
    return 'aim reached' if aim is not None and reached(aim) else 'must reached' if reached(must) else 'missed'


# ---------------------------------------------------------------------------------------------------------------------- detectors

class Pipeline:
    """An element between an appsrc and an appsink. Frames go through one after the other. Times of frames are their numbers × `step`."""
    STEP = 40 * Gst.MSECOND

    def __init__(self, size, element, message, step=STEP):
        """size: width, height of I420 frames. message: name of the element messages to keep. step: ns from frame to frame."""
        width, height = size
        caps = f'video/x-raw,format=I420,width={width},height={height},framerate={Gst.SECOND}/{step}'
        self.message, self.heard, self.step = message, [], step
        try:
            self.pipeline = Gst.parse_launch(f'appsrc name=in format=time block=true caps={caps} ! {element} ! '
                                             'appsink name=out sync=false max-buffers=2')
        except gi.repository.GLib.Error as error:
            raise Failure(f'{element}: {error.message}') from None
        self.source, self.sink, self.count = self.pipeline.get_by_name('in'), self.pipeline.get_by_name('out'), 0
        self.pipeline.set_state(Gst.State.PLAYING)

    def apply(self, data):
        """Pushes the bytes of a frame. Returns the frame that comes out, as bytes."""
        buffer = Gst.Buffer.new_wrapped(data)
        buffer.pts, buffer.duration = self.count * self.step, self.step
        self.count += 1
        self.source.emit('push-buffer', buffer)
        sample = self.sink.emit('try-pull-sample', 20 * Gst.SECOND)
        self.listen()
        if not sample:
            self.close()
            raise Failure('no frame came out within 20 seconds')
        buffer = sample.get_buffer()
        return buffer.extract_dup(0, buffer.get_size())

    def listen(self):
        bus = self.pipeline.get_bus()
        while message := bus.pop_filtered(Gst.MessageType.ELEMENT | Gst.MessageType.ERROR):
            if message.type == Gst.MessageType.ERROR:
                self.close()
                error, details = message.parse_error()
                raise Failure(f'{error.message} ({details})')
            if message.get_structure().get_name() == self.message:
                self.heard.append(message.get_structure())

    def finish(self):
        """Ends the stream, so that all messages are heard."""
        self.source.emit('end-of-stream')
        self.sink.emit('try-pull-sample', 20 * Gst.SECOND)
        self.listen()
        self.close()

    def close(self):
        self.pipeline.set_state(Gst.State.NULL)


class CudaDiff:
    """The element of the project: its mask, and the frames in which its messages report motion."""
    has_mask = has_events = True

    def __init__(self, size, properties, backend):
        self.size, self.masks = size, []
        # Without a gap, so that the end of motion is that of the frame.
        self.pipeline = Pipeline(size, f'cudadiff backend={backend} gap=0 {properties} output=mask attach-roi=false', 'cudadiff')

    def apply(self, yuv, _):
        width, height = self.size
        mask = np.frombuffer(self.pipeline.apply(yuv.tobytes()), np.uint8)
        stride = (width + 3) & ~3
        self.masks.append(mask[:stride * height].reshape(height, stride)[:, :width] > 127)

    def results(self):
        self.pipeline.finish()
        moving = {s['timestamp'] // Pipeline.STEP for s in self.pipeline.heard if s['event'] in ('begin', 'motion')}
        return [(mask, number in moving) for number, mask in enumerate(self.masks)]


class Subtractor:
    """One of OpenCV's background subtractors, with its default parameters. Shadows are no foreground."""
    has_mask, has_events = True, False

    def __init__(self, make, opening):
        self.subtractor, self.opening, self.masks = make(), opening, []

    def apply(self, _, picture):
        mask = (self.subtractor.apply(picture) == 255).astype(np.uint8)
        self.masks.append((cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) if self.opening else mask) > 0)

    def results(self):
        return [(mask, bool(mask.mean() > FLAGGED)) for mask in self.masks]


class MotionCells:
    """GStreamer's motioncells: it reports when motion begins and ends, and has no mask."""
    has_mask, has_events = False, True

    def __init__(self, size):
        self.pipeline = Pipeline(size, 'videoconvert ! motioncells display=false gap=1', 'motion')

    def apply(self, yuv, _):
        self.pipeline.apply(yuv.tobytes())

    def results(self):
        self.pipeline.finish()
        moving, began = set(), None
        for heard in self.pipeline.heard:
            if heard.has_field('motion_begin'):
                began = heard['motion_begin'] // Pipeline.STEP
            elif heard.has_field('motion_finished') and began is not None:  # the last frame with motion
                moving.update(range(began, heard['motion_finished'] // Pipeline.STEP + 1))
                began = None
        if began is not None:
            moving.update(range(began, self.pipeline.count))
        return [(None, number in moving) for number in range(self.pipeline.count)]


def detectors(size, properties, backend, peers):
    """Name → a function that makes the detector."""
    made = {'cudadiff': lambda: CudaDiff(size, properties, backend)}
    if peers:
        for name, make in (('MOG2', cv2.createBackgroundSubtractorMOG2), ('KNN', cv2.createBackgroundSubtractorKNN)):
            made[name] = lambda make=make: Subtractor(make, False)
            made[name + ', opened'] = lambda make=make: Subtractor(make, True)
        if Gst.ElementFactory.find('motioncells'):
            made['motioncells'] = lambda: MotionCells(size)
    return made


def judge(args):
    """Runs all detectors on all scenes. Returns name → figures."""
    width, height = args.size
    makers = detectors(args.size, args.properties, args.backend, args.peers)
    scores, kinds = {name: {} for name in makers}, {}
    for seed in args.seeds:
        for scene in args.only:
            running, truths = {name: make() for name, make in makers.items()}, []
            for frame in motion_scenes.scene(scene, seed, args.media, width, height, args.frames):
                # All see the same frames: those that 4:2:0 leaves.
                yuv = cv2.cvtColor(frame.picture, cv2.COLOR_BGR2YUV_I420)
                picture = cv2.cvtColor(yuv, cv2.COLOR_YUV2BGR_I420)
                for detector in running.values():
                    detector.apply(yuv, picture)
                frame.picture = None
                truths.append(frame)
            for name, detector in running.items():
                score = scores[name][seed, scene] = Score()
                kinds[name] = detector
                for number, (frame, (mask, motion)) in enumerate(zip(truths, detector.results())):
                    if number >= round(motion_scenes.LEARN * args.frames):
                        score.add(frame, mask, motion)
            print(f'{scene}, seed {seed}: ' + ', '.join(f'{name} {scores[name][seed, scene].f1():.2f}' for name in makers if kinds[name].has_mask),
                  file=sys.stderr)
    return {name: figures(scores[name], kinds[name].has_mask, kinds[name].has_events) for name in makers}


def judge_clip(args):
    """The objects that cudadiff reports on vtest.avi: objects per person and their median life; None if it cannot tell."""
    clip = motion_scenes.Pictures(args.media).clip
    found = Gst.ElementFactory.find('cudadiff')
    if not clip or found is None or not found.create(None).find_property('track'):
        return {}
    frames, lives, entered = cv2.VideoCapture(clip), [], set()
    rate, pipeline = frames.get(cv2.CAP_PROP_FPS) or 10, None
    while True:
        good, picture = frames.read()
        if not good:
            break
        if pipeline is None:
            pipeline = Pipeline(picture.shape[1::-1], f'cudadiff backend={args.backend} {args.properties} output=passthrough '
                                'attach-roi=false', 'cudadiff', int(Gst.SECOND / rate))
        pipeline.apply(cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420).tobytes())
    pipeline.finish()
    for heard in pipeline.heard:
        if heard['event'] == 'enter':
            entered.add(heard['id'])
        elif heard['event'] == 'leave':
            lives.append(heard['seconds'])
    return {'ids_per_person': len(entered) / PEOPLE, 'median_life': statistics.median(lives)} if entered and lives else {}


# -------------------------------------------------------------------------------------------------------------------------- tables

def shown(value, share):
    return '–' if value is None else f'{100 * value:.1f} %' if share else f'{value:.2f}'


def table(results):
    """Rows of text: the figures of all detectors with the marks and verdicts, and F1 for each scene."""
    names = list(results)
    rows = [['figure'] + names + ['must', 'aim', 'verdict']]
    for key, title, must, aim, more, share in FIGURES:
        rows.append([title] + [shown(results[name].get(key), share) for name in names] +
                    [shown(must, share), shown(aim, share), verdict(results['cudadiff'].get(key), must, aim, more)])
    for scene in results['cudadiff']['scenes']:
        rows.append([f'F1: {scene}'] + [shown((results[name]['scenes'] or {}).get(scene), False) for name in names] + ['', '', ''])
    return rows


def as_markdown(rows):
    lines = ['| ' + ' | '.join(row) + ' |' for row in rows]
    return '\n'.join([lines[0], '| ' + ' | '.join(['---'] * len(rows[0])) + ' |'] + lines[1:]) + '\n'


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


# --------------------------------------------------------------------------------------------------------------------------- quick

def quick():
    """Checks that the same seed gives the same frames, that the truth matches the pictures, and the scores. Raises Failure."""
    size, frames = (160, 120), 72
    for name in motion_scenes.SCENES:
        made = [list(motion_scenes.scene(name, seed, None, *size, frames)) for seed in (1, 1, 2)]
        same = [all(np.array_equal(a.picture, b.picture) and np.array_equal(a.ids, b.ids) for a, b in zip(made[0], other)) for other in made[1:]]
        if same != [True, False]:
            raise Failure(f'{name}: frames of the same seed differ, or those of two seeds are equal')
        learn = round(motion_scenes.LEARN * frames)
        if any(frame.ids.any() or frame.mixed.any() for frame in made[0][:learn]):
            raise Failure(f'{name}: there are objects in the frames that models learn from')
        covered = [frame.ids.any() for frame in made[0][learn:]]
        if not any(covered) or all(covered):
            raise Failure(f'{name}: after the frames that models learn from, all frames or none have objects')
        if name == 'plain':
            check_truth(made[0], learn)
    frame = next(f for f in made[0] if f.ids.any())
    for mask, f1 in ((frame.ids > 0, 1), (frame.ids == 0, 0)):
        score = Score()
        score.add(frame, mask, True)
        if score.f1() != f1:
            raise Failure(f'a mask whose F1 is {f1} scores {score.f1()}')
    print('scenes and scores are right')


def check_truth(frames, learn):
    """Compares frames of the plain scene with their mean before objects came: only objects and their edges may differ from it."""
    still = np.mean([frame.picture for frame in frames[:learn]], axis=0)
    inside, outside = [], []
    for frame in frames[learn:]:
        away = np.abs(frame.picture - still).max(axis=2)
        edge = cv2.dilate(frame.mixed.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        inside.extend(away[(frame.ids > 0) & ~edge])
        outside.append(np.quantile(away[(frame.ids == 0) & ~edge], 0.9999))
    if max(outside) > 8 * motion_scenes.NOISE:
        raise Failure(f'plain: pixels without objects differ from the background by {max(outside):.0f} steps')
    if np.mean(inside) < 5 * motion_scenes.NOISE:
        raise Failure(f'plain: pixels with objects differ from the background by only {np.mean(inside):.0f} steps')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', nargs='?')
    parser.add_argument('--seeds', default='1', type=lambda text: [int(part) for part in text.split(',')])
    parser.add_argument('--properties', default=PROPERTIES)
    parser.add_argument('--backend', default='cpu')
    parser.add_argument('--only', default=list(motion_scenes.SCENES), type=lambda text: text.split(','))
    parser.add_argument('--size', default=(384, 288), type=lambda text: tuple(int(part) for part in text.split('x')))
    parser.add_argument('--frames', default=360, type=int)
    parser.add_argument('--json')
    parser.add_argument('--markdown')
    parser.add_argument('--no-peers', dest='peers', action='store_false')
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    cv2.setNumThreads(2)
    if args.quick:
        return quick()
    Gst.init(None)
    if not Gst.ElementFactory.find('cudadiff'):
        print('skipped: the element cudadiff is not there; set GST_PLUGIN_PATH', file=sys.stderr)
        sys.exit(77)
    if args.media and not os.path.isdir(args.media):
        raise Failure(f'{args.media} is not a folder')
    results = judge(args)
    results['cudadiff'].update(judge_clip(args))
    rows = table(results)
    print(as_text(rows))
    if args.markdown:
        with open(args.markdown, 'w', encoding='utf-8') as file:
            file.write(as_markdown(rows))
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump({'seeds': args.seeds, 'properties': args.properties, 'size': args.size, 'frames': args.frames, 'results': results}, file, indent=1)


if __name__ == '__main__':
    try:
        main()
    except (Failure, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
