# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the scenes and the scores that motion_quality.py and motion_real.py use. It measures nothing."""
import numpy as np

import motion_scenes
import motion_world
from motion_run import Failure, cv2
from motion_score import Score, episodes, judge_crossings, judge_visits

SIZE = 160, 120


def main():
    """Checks that the same seed gives the same frames, that the truth matches the pictures, and the scores.
    Raises Failure."""
    check_lab()
    for name in motion_world.SCENES:
        check_world(name)
    check_scores()
    print('scenes and scores are right')


def check_seeds(name, made):
    """made: lists of frames, of the seeds 1, 1 and 2."""
    def equal(some, other):
        return len(some) == len(other) and all(np.array_equal(a.picture, b.picture) and np.array_equal(a.ids, b.ids)
                                               for a, b in zip(some, other))

    same = [equal(made[0], other) for other in made[1:]]
    if same != [True, False]:
        raise Failure(f'{name}: frames of one seed differ, or frames of two seeds are equal')


def check_lab():
    frames = 72
    for name in motion_scenes.SCENES:
        made = [list(motion_scenes.scene(name, seed, None, *SIZE, frames)) for seed in (1, 1, 2)]
        check_seeds(name, made)
        learn = round(motion_scenes.LEARN * frames)
        if any(frame.ids.any() or frame.mixed.any() for frame in made[0][:learn]):
            raise Failure(f'{name}: there are objects in the frames that models learn from')
        covered = [frame.ids.any() for frame in made[0][learn:]]
        if not any(covered) or all(covered):
            raise Failure(f'{name}: after the frames that models learn from, all frames or none have objects')
        if name == 'plain':
            check_truth(made[0], learn)


def check_truth(frames, learn):
    """Compares frames of the plain scene with their mean before objects came: only objects and their edges may
    differ from it."""
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


def check_world(name):
    """Checks a scene of the world, three times as fast as it is."""
    worlds = [motion_world.scene(name, seed, None, *SIZE, pace=0.3) for seed in (1, 1, 2)]
    made = [list(world.frames()) for world in worlds]
    check_seeds(name, made)
    world, frames = worlds[0], made[0]
    shown = [set(np.unique(frame.ids)) - {0} for frame in frames]
    people = set().union(*shown)
    if (sum(1 + frame.lost for frame in frames) > world.length
        or (max(frame.lost for frame in frames) > 0) != (name == 'lost')):
        raise Failure(f'{name}: {len(frames)} frames of {world.length} and those that are lost')
    if name not in ('occupied', 'lane') and any(shown[:world.learn]):
        raise Failure(f'{name}: there are objects in the frames that models learn from')
    if name == 'occupied' and not all(shown[:world.learn]):
        raise Failure('occupied: nobody is there from the start')
    if name != 'lane' and (shown[-1] or people != set(range(1, len(people) + 1))):
        raise Failure(f'{name}: the picture is not empty at the end, or a number is missing among {sorted(people)}')
    many = len(episodes([(i, i + 1) for i, ids in enumerate(shown) if ids], 1))
    wanted = {'stands': 3, 'occupied': 2, 'removed': 1, 'abandoned': 1, 'exposure': 2, 'codec': 5,
              'switched': 2}.get(name, many)
    if many != wanted:
        raise Failure(f'{name}: somebody is there {many} times, and not {wanted} times')
    if name == 'lane':
        check_lane(world, frames, shown)
    if name == 'soft-shadows':
        check_shadows(frames, world.learn)
    if name in ('stands', 'exposure', 'switched'):
        check_light(name, frames, shown)


def check_lane(world, frames, shown):
    """Counts crossings in the truth itself: a vehicle crosses where its middle passes the middle of the picture."""
    if not world.crossings or len([ids for ids in shown if not ids]) > 0.1 * len(shown):
        raise Failure('lane: nobody crosses the line, or the road is often empty')
    before, crossings = {}, []
    for number, frame in enumerate(frames):
        for vehicle in shown[number]:
            _, xs = np.nonzero(frame.ids == vehicle)
            if xs.min() > 0 and xs.max() < SIZE[0] - 1:  # seen whole
                side = (xs.min() + xs.max()) / 2 >= SIZE[0] / 2
                if before.get(vehicle, side) != side:
                    crossings.append((number / world.rate, 'left' if side else 'right'))
                before[vehicle] = side
    lanes = {direction: y for y, direction in world.lanes}
    reported = [(second, direction, lanes[direction]) for second, direction in crossings]
    judged = judge_crossings(world.crossings, reported, world.lanes)
    if judged['right'] < 0.9 * judged['true'] or judged['reported'] > judged['true']:
        raise Failure(f'lane: the pictures do not show the crossings that are true: {judged}')


def check_shadows(frames, learn):
    """A shadow must be darker than the ground, and bluer where the ground is gray."""
    still = np.mean([frame.picture for frame in frames[:learn]], axis=0) + 1
    left = np.concatenate([(frame.picture / still)[frame.shadow]
                           for frame in frames if frame.shadow.any()]).mean(axis=0)
    if not left.max() < 0.95 or not left[0] > left[2]:
        raise Failure(f'soft-shadows: shadows leave {left} of blue, green and red')


def check_light(name, frames, shown):
    """Whether the light of the empty picture changes as the scene says."""
    light = [frame.picture.mean() for frame, ids in zip(frames, shown) if not ids]
    steps = int(np.count_nonzero(np.abs(np.diff(light)) > 5))
    if (max(light) - min(light) > 10) == (name == 'stands') or (steps > 8) != (name == 'switched'):
        raise Failure(f'{name}: the light of the empty picture goes from {min(light):.0f} to {max(light):.0f}, '
                      f'with {steps} steps')


def expect(what, value, wanted):
    if value != wanted:
        raise Failure(f'{what} is {value}, and must be {wanted}')


def check_scores():
    truth = np.zeros((20, 20), bool)
    truth[5:15, 5:15] = True
    unjudged, shadow = np.zeros_like(truth), np.zeros_like(truth)
    unjudged[4] = shadow[15] = True
    mask = truth.copy()
    mask[4, 5:15], mask[15, 5:15], mask[16, 5:7] = True, True, True  # 10 unjudged, 10 of shadow, 2 others
    mask[5, 5], mask[10, 10] = False, False                          # one at the outline, one inside
    score = Score()
    score.pixels(mask, truth, unjudged, shadow)
    expect('the count of pixels', (score.hits, score.false, score.missed, score.shadow, score.outline),
           (98, 12, 2, 10, 1))
    expect('F1', round(score.f1(), 4), round(2 * 98 / (2 * 98 + 12 + 2), 4))
    for number, (full, empty) in enumerate(((True, False), (False, True), (False, True), (False, False))):
        score.frame(number, mask if number < 2 else truth & False, full, empty)
    score.report({0, 2, 3})
    expect('the count of frames', (score.empty, score.flagged, score.events, score.full, score.reported),
           (2, 1, 1, 1, 1))
    expect('episodes', episodes([(5, 6), (0, 2), (1, 3), (3.5, 4)], 0.5), [(0, 4), (5, 6)])
    judged = judge_visits([(10, 20), (30, 40)], [(10.5, 21), (22, 24), (29, 30.5), (33, 39)], 60)
    expect('visits', judged, {'episodes': 2, 'motions': 4, 'found': 2, 'extra': 2, 'begin_error': 1.75, 'end_error': 1,
                              'ghost': 3.0, 'missed': 4.0})
    judged = judge_visits([(10, 20), (30, 40)], [(10, 45)], 60)
    expect('one motion of two visits', (judged['found'], judged['extra'], judged['ghost']), (1, 0, 13.0))
    reported = [(1.2, 'left', 50), (1.3, 'right', 50), (3.2, 'right', 90)]
    judged = judge_crossings([(1, 'left'), (2, 'left'), (3, 'right')], reported, [(50, 'left'), (100, 'right')])
    expect('crossings', judged, {'true': 3, 'reported': 3, 'right': 2, 'wrong': 1})
