# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the scenes of motion_quality.py. It measures nothing."""
import numpy as np

import motion_scenes
import motion_world
from motion_run import Failure, cv2
from motion_score import episodes, judge_crossings

SIZE = 160, 120


def main():
    """Checks that the same seed gives the same frames, and that the truth matches the pictures. Raises Failure."""
    check_lab()
    for name in motion_world.SCENES:
        check_world(name)
    print('the scenes are right')


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
