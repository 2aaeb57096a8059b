#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Judges motion detection on scenes with known truth, compared with OpenCV's background subtractors and motioncells.

  motion_quality.py [MEDIA] [--group=lab|world] [--seeds=1,2] [--properties="…"]… [--backend=cpu|cuda] [--only=SCENE,…]
                    [--size=WxH] [--frames=N] [--json=FILE] [--markdown=FILE] [--no-peers]

MEDIA is a folder with photos/ and vtest.avi, such as Debian's opencv-doc; without it, the textures are synthetic.
GST_PLUGIN_PATH must point to the plugin. `--properties` sets properties of cudadiff for all scenes; each further
`--properties` adds a column. `lab` is motion_scenes.py: one difficulty per scene. `world` is motion_world.py: what real
cameras show; `--frames` does not apply to it.

Frames that models learn from are not judged. Pixels on the edge of an object, which show both it and its background,
are not judged either. F1 covers all judged pixels of a scene. A frame has objects if they cover at least 0.2 % of it;
if they cover less, it counts as neither with nor without objects. A frame without objects is flagged if more than 0.2 %
of the mask is white, or motion is reported.

The following figures exist only for `world`. An episode lasts while somebody is in the picture. It is found if it has
its own motion (from `began` to `last-motion`, with `gap=1`). Ghost: seconds of motion in the empty picture, from 1 s
after the last person left. Ids: objects that enter ÷ people and things. Crossings count at the line of the scene
`lane`. A detector without messages has motion while its mask is flagged. Needs NumPy, OpenCV and PyGObject.
Exit status: 0; 1 if a pipeline failed, with one sentence on stderr; 77 if something is missing.
"""
import argparse
import os
import statistics
import sys

from motion_run import (GAP, CudaDiff, Failure, Gst, MotionCells, Pipeline, Subtractor, cv2, need_plugin, shown,
                        to_i420, write_results)

import motion_scenes
import motion_world
from motion_score import FLAGGED, Score, episodes, figures, judge_crossings, judge_visits

# Visits of people in vtest.avi in seconds, counted by eye in stills of every second: 0–21, 0–52, 0–15, 2–37 (two
# people), 4–39, 8–17, 11–22, 13–28, 22–79, 23–41, 42–58, 46–79, 50–62, 51–79 (two people), 57–79, 61–79, 66–74, 69–79.
PEOPLE = 20
PROPERTIES = 'preset=outdoor'
FIGURES = {'lab': (     # key, title, must, aim, whether more is better (None: 1 is best), whether it is a share
    ('f1', 'F1 of the mask, mean over the scenes', 0.86, 0.92, True, False),
    ('flagged', 'frames without objects, flagged', 0.02, 0, False, True),
    ('events', 'the same by events', 0.02, 0, False, True),
    ('reported', 'frames with objects, motion reported', 0.98, 1, True, True),
    ('worst', 'worst single scene, F1', 0.5, 0.7, True, False),
    ('ids_per_person', 'vtest.avi: objects reported ÷ people', 3, 1.3, False, False),
    ('median_life', 'vtest.avi: median life of an object, s', 3, None, True, False),
), 'world': (
    ('f1', 'F1 of the mask, mean over the scenes', 0.93, 0.95, True, False),
    ('worst', 'worst single scene, F1', 0.5, 0.7, True, False),
    ('flagged', 'frames without objects, flagged', 0.02, 0, False, True),
    ('events', 'the same by events', 0.02, 0, False, True),
    ('found', 'episodes found', 1, 1, True, True),
    ('motions', 'motions ÷ episodes', 1, 1, None, False),
    ('ghost', 'ghosts, s for each episode', 0, 0, False, False),
    ('ids', 'ids ÷ objects', 1.5, 1, False, False),
    ('crossings', 'crossings ÷ true ones', 0.95, 1, None, False),
    ('crossed', 'true crossings that are reported', 0.95, 1, True, True),
    ('wrong', 'crossings against the direction of the lane', 0, 0, False, False),
)}


def verdict(value, must, aim, more):
    if value is None:
        return 'not available'
    if more is None:  # near 1
        value, must, aim, more = abs(value - 1), abs(must - 1) + 1e-9, abs(aim - 1) + 1e-9, False
    reached = (lambda limit: value >= limit) if more else (lambda limit: value <= limit)
    return 'aim reached' if aim is not None and reached(aim) else 'must reached' if reached(must) else 'missed'


def detectors(size, properties, backend, peers, step):
    """Name → a function that makes the detector. properties: name → properties of a cudadiff."""
    made = {name: lambda text=text: CudaDiff(size, text, backend, step) for name, text in properties.items()}
    if peers:
        for name, make in (('MOG2', cv2.createBackgroundSubtractorMOG2), ('KNN', cv2.createBackgroundSubtractorKNN)):
            made[name] = lambda make=make: Subtractor(make, False, step)
            made[name + ', opened'] = lambda make=make: Subtractor(make, True, step)
        if Gst.ElementFactory.find('motioncells'):
            made['motioncells'] = lambda: MotionCells(size, step)
    return made


def settings(args, first):
    """Name → properties of each cudadiff: `first`, then the given properties, which are also the name of every column
    after the first."""
    return {'cudadiff' if i == 0 else text: first + text for i, text in enumerate(args.properties)}


def run_scene(frames, learn, running):
    """Runs detectors (name → Detector) over frames. Returns name → Score, and number and ids of each frame."""
    scores, present, number = {name: Score() for name in running}, [], -1
    for frame in frames:
        number += 1 + frame.lost
        # all detectors get the picture after conversion to 4:2:0
        yuv, picture = to_i420(frame.picture)
        truth = (frame.ids > 0) & ~frame.mixed
        present.append((number, set(frame.ids[truth].tolist())))
        for name, detector in running.items():
            mask = detector.timed(yuv, picture, frame.lost)
            if number >= learn:
                scores[name].pixels(mask, truth, frame.mixed, frame.shadow)
                scores[name].frame(number, mask, truth.mean() > FLAGGED, not (truth.any() or frame.mixed.any()))
    for name, detector in running.items():
        detector.finish()
        scores[name].report(detector.moving())
    return scores, present


def judge(args):
    """Runs all detectors on the scenes of the lab. Returns name → figures."""
    width, height = args.size
    # without a gap, motion ends with its frame
    makers = detectors(args.size, settings(args, 'gap=0 '), args.backend, args.peers, Pipeline.STEP)
    scores, kinds = {name: {} for name in makers}, {}
    for seed in args.seeds:
        for scene in args.only:
            kinds = {name: make() for name, make in makers.items()}
            frames = motion_scenes.scene(scene, seed, args.media, width, height, args.frames)
            for name, score in run_scene(frames, round(motion_scenes.LEARN * args.frames), kinds)[0].items():
                scores[name][seed, scene] = score
            say(scene, seed, scores, kinds)
    return {name: figures(scores[name], kinds[name].has_mask, kinds[name].has_events) for name in makers}


def say(scene, seed, scores, kinds):
    f1 = [f'{name} {scores[name][seed, scene].f1():.2f}' for name in kinds if kinds[name].has_mask]
    print(f'{scene}, seed {seed}: ' + ', '.join(f1), file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------- world

def judge_world(args):
    """Runs all detectors on the scenes of the world. Returns name → figures."""
    width, height = args.size
    scores, visits, kinds = {}, {}, {}
    for seed in args.seeds:
        for scene in args.only:
            world = motion_world.scene(scene, seed, args.media, width, height)
            step = int(Gst.SECOND / world.rate)
            line = f'lines="{world.line}" ' if world.line else ''
            makers = detectors(args.size, settings(args, f'gap={GAP} {line}'), args.backend, args.peers, step)
            kinds = {name: make() for name, make in makers.items()}
            found, present = run_scene(world.frames(), world.learn, kinds)
            for name, detector in kinds.items():
                # motion ends with its last frame, not with the gap after it
                spans = [[round(second * world.rate) for second in motion] for motion in detector.motions()]
                found[name].report({number for first, last in spans for number in range(first, last + 1)})
                scores.setdefault(name, {})[seed, scene] = found[name]
                visits.setdefault(name, {})[seed, scene] = judge_run(world, detector, present)
            say(scene, seed, scores, kinds)
    return {name: {**figures(scores[name], kinds[name].has_mask, True), **sums(visits[name])} for name in kinds}


def judge_run(world, detector, present):
    """Episodes, ids and crossings of a detector on a scene. present: (number, visible ids) of each frame."""
    # A person who is present before and after lost frames was present in between.
    times = [((last if before else number) / world.rate, (number + 1) / world.rate)
             for (last, before), (number, ids) in zip([(0, set())] + present, present) if ids]
    truths = episodes(times, 2 / world.rate)
    result = {'people': len(set().union(*(ids for _, ids in present))), 'ids': None, 'crossings': None}
    # a road that is hardly ever empty has no episodes
    result.update(judge_visits([] if world.line else truths, [] if world.line else detector.motions(),
                               world.length / world.rate))
    if isinstance(detector, CudaDiff):
        result['ids'] = len(detector.ids())
        if world.line:
            after = world.learn / world.rate
            true = [crossing for crossing in world.crossings if crossing[0] >= after]
            reported = [(heard['timestamp'] / Gst.SECOND, heard['direction'], heard['y'] + heard['height'])
                        for heard in detector.heard('cross')]
            result['crossings'] = judge_crossings(true, [crossing for crossing in reported if crossing[0] >= after],
                                                  world.lanes)
    return result


def sums(visits):
    """Figures over all scenes, from the figures of judge_run() by seed and scene."""
    def total(key):
        return sum(visit[key] for visit in visits.values())

    crossings = [visit['crossings'] for visit in visits.values() if visit['crossings']]
    counted = {key: sum(crossing[key] for crossing in crossings) for key in ('true', 'reported', 'right', 'wrong')}
    many = max(1, total('episodes'))
    # the others are judged by crossings
    followed = [visit for visit in visits.values() if visit['ids'] is not None and not visit['crossings']]
    return {'found': total('found') / many, 'motions': total('motions') / many, 'ghost': total('ghost') / many,
            'ids': sum(visit['ids'] for visit in followed) / sum(visit['people'] for visit in followed) if followed
            else None,
            'crossings': counted['reported'] / max(1, counted['true']) if crossings else None,
            'crossed': counted['right'] / max(1, counted['true']) if crossings else None,
            'wrong': counted['wrong'] if crossings else None,
            'visits': {f'{scene}, seed {seed}': visit for (seed, scene), visit in visits.items()}}


def world_rows(results):
    """A row for each scene: F1, flagged frames, motions of episodes, ghosts, ids of objects."""
    names = list(results)
    for scene in results['cudadiff']['scenes']:
        row = [scene]
        for name in names:
            visits = [visit for key, visit in results[name]['visits'].items() if key.startswith(scene + ',')]
            text = f'{results[name]["scenes"][scene]:.2f}' if results[name]['scenes'] else '–'
            if any(visit['episodes'] for visit in visits):
                text += f'; {sum(v["motions"] for v in visits)}/{sum(v["episodes"] for v in visits)} motions'
                text += f', {sum(v["ghost"] for v in visits):.0f} s ghosts'
            if all(visit['ids'] is not None for visit in visits):
                text += f'; {sum(v["ids"] for v in visits)}/{sum(v["people"] for v in visits)} ids'
            row.append(text)
        yield row + ['', '', '']


def judge_clip(args):
    """Judges the objects that cudadiff reports on vtest.avi: objects per person and their median life; None if it
    cannot tell."""
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
            pipeline = Pipeline(picture.shape[1::-1],
                                f'cudadiff backend={args.backend} {args.properties[0]} output=passthrough '
                                'attach-roi=false', 'cudadiff', int(Gst.SECOND / rate))
        pipeline.apply(cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420).tobytes())
    pipeline.finish()
    for heard in pipeline.heard:
        if heard['event'] == 'enter':
            entered.add(heard['id'])
        elif heard['event'] == 'leave':
            lives.append(heard['seconds'])
    return ({'ids_per_person': len(entered) / PEOPLE, 'median_life': statistics.median(lives)}
            if entered and lives else {})


# --------------------------------------------------------------------------------------------------------------- tables

def table(results, group):
    """Rows of text: the figures of all detectors with limits and verdicts, and the figures of each scene."""
    names = list(results)
    rows = [['figure'] + names + ['must', 'aim', 'verdict']]
    for key, title, must, aim, more, share in FIGURES[group]:
        rows.append([title] + [shown(results[name].get(key), share) for name in names] +
                    [shown(must, share), shown(aim, share), verdict(results['cudadiff'].get(key), must, aim, more)])
    if group == 'world':
        return rows + [['F1; episodes; ids'] + [''] * (len(names) + 3)] + list(world_rows(results))
    for scene in results['cudadiff']['scenes']:
        rows.append([f'F1: {scene}'] + [shown((results[name]['scenes'] or {}).get(scene), False) for name in names]
                    + ['', '', ''])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', nargs='?')
    parser.add_argument('--group', default='lab', choices=('lab', 'world'))
    parser.add_argument('--seeds', default='1', type=lambda text: [int(part) for part in text.split(',')])
    parser.add_argument('--properties', action='append')
    parser.add_argument('--backend', default='cpu')
    parser.add_argument('--only', type=lambda text: text.split(','))
    parser.add_argument('--size', type=lambda text: tuple(int(part) for part in text.split('x')))
    parser.add_argument('--frames', default=360, type=int)
    parser.add_argument('--json')
    parser.add_argument('--markdown')
    parser.add_argument('--no-peers', dest='peers', action='store_false')
    args = parser.parse_args()
    cv2.setNumThreads(2)
    lab, args.properties = args.group == 'lab', args.properties or [PROPERTIES]
    args.only = args.only or list((motion_scenes if lab else motion_world).SCENES)
    args.size = args.size or ((384, 288) if lab else (320, 240))
    need_plugin()
    if args.media and not os.path.isdir(args.media):
        raise Failure(f'{args.media} is not a folder')
    results = judge(args) if lab else judge_world(args)
    if lab:
        results['cudadiff'].update(judge_clip(args))
    setting = {key: getattr(args, key) for key in ('group', 'seeds', 'properties', 'size', 'frames')}
    write_results(table(results, args.group), args, {**setting, 'results': results})


if __name__ == '__main__':
    try:
        main()
    except (Failure, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
