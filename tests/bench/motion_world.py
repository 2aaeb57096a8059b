# SPDX-License-Identifier: LGPL-2.1-or-later
"""Seeded scenes with known truth that imitate real cameras: people who stand, things that are left or taken away, soft
shadows, auto-exposure, a busy road, an encoder, lost frames, a light that is switched repeatedly, and cameras that
change (motion_camera.py).

`scene(name, seed, …)` gives a World. The same arguments give the same frames, except that `codec` also depends on the
encoder.
"""
import dataclasses
import math

import cv2
import numpy as np

import motion_camera
from motion_actors import Person, Sun, bag, car, paint, shade
from motion_scenes import VIEWS, Frame, Pictures, smooth_field

SCENES = ('stands', 'occupied', 'removed', 'abandoned', 'soft-shadows', 'exposure', 'lane', 'codec', 'lost', 'switched',
          'nudge', 'pan', 'infrared', 'dusk')
GROUNDS = ('vtest', 'home', 'butterfly', 'squirrel_cls', 'building', 'left05')
APART = 30  # pixels from the middle of a person to the middle of a bag


@dataclasses.dataclass
class World:
    """A scene.

    rate: frames per second, including lost ones. length: number of frames, including lost ones. learn: the first
    frames, which are not judged. line: a value of cudadiff's `lines`, or None. lanes: for each lane of the line, the
    lower edge of its vehicles (pixels) and their `direction`. crossings: (second, direction) of each vehicle that
    crosses the line. frames: a function without arguments that generates the frames (`Frame`).
    """
    rate: float
    length: int
    learn: int
    line: str
    lanes: list
    crossings: list
    frames: object


class Stage:
    """The parts of a scene. Times are in seconds, and `pace` scales all of them."""

    def __init__(self, name, seed, folder, width, height, pace):
        self.rng = np.random.default_rng([seed, 1000 + SCENES.index(name)])
        self.pictures, self.size, self.pace = Pictures(folder), (width, height), pace
        self.rate, self.seconds, self.learn = 10, 0, 8
        self.background = 20 + self.pictures.crop(self.rng, VIEWS, width, height) * np.float32(0.82)
        self.actors, self.sun, self.exposure, self.lamp = [], None, None, None
        self.grain, self.lost = 2.0, set()
        self.line, self.lanes, self.crossings = None, [], []
        self.margin, self.pointing = 0, None  # the shift of the picture at a second: pixels right, down; degrees

    def extend(self, margin):
        """Makes the stage larger than the picture, by `margin` pixels on each side."""
        self.size = tuple(side + 2 * margin for side in self.size)
        self.background = 20 + self.pictures.crop(self.rng, VIEWS, *self.size) * np.float32(0.82)

    def frame(self, second):
        return second * self.pace * self.rate

    def visit(self, number, begin, stand, tall=None, camouflaged=False, there=False, place=None):
        """Adds a person who enters across an edge of the picture, stands for a while and leaves. Returns the person and
        the second of leaving. stand: the duration of standing. tall: the person's share of the height of the picture.
        there: the person already stands there at the start. place: the place in pixels."""
        rng, (width, height) = self.rng, self.size
        tall = int((tall or rng.uniform(0.36, 0.52)) * height)
        place, ground = place or (rng.uniform(0.3, 0.7) * width, rng.uniform(0.82, 0.96) * height)
        step = rng.uniform(0.06, 0.085) * tall / self.pace  # pixels per frame: 1.1 to 1.5 m/s
        sides = [rng.choice((-1, 1)) for _ in range(2)]
        out = [(-0.35 * tall - 1 if side < 0 else width + 0.35 * tall) for side in sides]
        start = self.frame(begin)
        stands = start if there else start + abs(place - out[0]) / step
        goes = stands + self.frame(stand)
        gone = goes + abs(out[1] - place) / step
        path = [] if there else [(start, out[0], ground)]
        path += [(stands, place, ground), (goes, place, ground)]
        colour = None
        if camouflaged:
            rows, columns = ((int(ground - 0.6 * tall), int(ground - 0.2 * tall)),
                             (int(place - 0.1 * tall), int(place + 0.1 * tall)))
            part = self.background[slice(*rows), slice(*columns)]
            colour = np.median(part.reshape(-1, 3), axis=0) + rng.normal(0, 5)
        person = Person(number, path + [(gone, out[1], ground)], rng, self.pictures, tall, colour)
        self.actors.append(person)
        return person, gone / self.rate / self.pace

    def frames(self):
        rng, (width, height) = self.rng, self.size
        lost = 0
        for time in range(round(self.frame(self.seconds))):
            picture = self.background.copy()
            ids, mixed, shadow = (np.zeros((height, width), kind) for kind in (np.uint8, bool, bool))
            present = sorted((actor for actor in self.actors if actor.at(time)), key=lambda actor: actor.at(time)[1])
            if self.sun:
                shade(picture, shadow, present, time, self.sun)
            for actor in present:
                paint(picture, ids, mixed, actor, time)
            shadow &= (ids == 0) & ~mixed
            if self.lamp:
                picture *= self.lamp(time)
            if self.exposure:
                picture = self.exposure(picture, time)
            if self.pointing:
                shift = self.pointing(time / self.rate / self.pace)
                picture, ids, mixed, shadow = (motion_camera.seen(layer, shift, self.margin)
                                               for layer in (picture, ids, mixed, shadow))
            picture += grain(rng, picture, self.grain)
            if time in self.lost:
                lost += 1
                continue
            yield Frame(np.clip(picture + 0.5, 0, 255).astype(np.uint8), ids, mixed, shadow, lost)
            lost = 0


def grain(rng, picture, strength):
    """Sensor noise: it grows with the light, and the camera's denoising has smoothed it slightly. strength: in the
    dark, in 8-bit steps."""
    noise = cv2.GaussianBlur(rng.standard_normal(picture.shape, dtype=np.float32), (3, 3), 0.6) * 1.6
    return noise * strength * np.sqrt(0.6 + np.maximum(picture, 0) * np.float32(1 / 160))


# --------------------------------------------------------------------------------------------------------------- scenes

def stands(stage):
    """Three visits to a room that is empty between them. Everybody stands for 10 to 20 s. Two wear something in the
    colour of the wall."""
    rng, now = stage.rng, 8
    for number in (1, 2, 3):
        _, gone = stage.visit(number, now, rng.uniform(10, 20), camouflaged=number != 2)
        now = gone + rng.uniform(6, 8)
    stage.seconds = now + 2


def occupied(stage):
    """A person who is there in the first frame leaves. Another person comes later."""
    stage.learn = 5
    _, gone = stage.visit(1, 0, stage.rng.uniform(15, 20), there=True)
    _, gone = stage.visit(2, gone + 12, stage.rng.uniform(4, 6))
    stage.seconds = gone + 10


def removed(stage):
    """A person takes away a thing that was there from the start."""
    person, gone = stage.visit(1, 10, 4)
    thing = bag(stage.rng, stage.pictures, int(0.3 * person.height))
    taken, x, y = beside(person)
    stage.actors += [thing.on(0, [(0, x, y), (taken, x, y)]), thing.on(1, carried(person, taken, person.path[-1][0]))]
    stage.seconds = gone + 20


def abandoned(stage):
    """A person leaves a bag, and another one takes it away later."""
    first, gone = stage.visit(1, 8, 4)
    put, x, y = beside(first)
    second, end = stage.visit(3, gone + stage.rng.uniform(15, 20), 4, place=first.path[1][1:])
    taken, _, _ = beside(second)
    thing = bag(stage.rng, stage.pictures, int(0.3 * first.height))
    stage.actors += [thing.on(1, carried(first, first.path[0][0], put)), thing.on(2, [(put, x, y), (taken, x, y)]),
                     thing.on(3, carried(second, taken, second.path[-1][0]))]
    stage.seconds = end + 12


def beside(person):
    """The frame in the middle of a person's stay, and the place of a bag then: frame, x, y."""
    (start, x, y), (end, _, _) = person.path[1:3]
    return round((start + end) / 2), x + APART, y


def carried(person, first, last):
    """The path of a thing that a person carries from one frame to another."""
    times = [first + 0.5] + [time for time, _, _ in person.path if first < time < last] + [last]
    return [(time, person.at(time)[0] + APART, person.at(time)[1]) for time in times]


def soft_shadows(stage):
    """People in low sun, on ground that is plain in one half and detailed in the other. Shadows are bluish and soft,
    not exactly scaled."""
    rng, (width, height) = stage.rng, stage.size
    top = int(0.35 * height)
    detail = stage.pictures.crop(rng, GROUNDS, width, height - top, 0.3)
    detail = ((detail - detail.mean()) * (22 / max(float(detail.std()), 1))
              * (np.arange(width) > width // 2)[None, :, None])
    tone = np.float32(rng.uniform((120, 125, 128), (150, 158, 165)))
    slope = np.linspace(-10, 10, height - top, dtype=np.float32)[:, None, None]
    stage.background[top:] = np.clip(tone + detail + slope + 2 * smooth_field(rng, width, height - top, 4)[..., None],
                                     20, 235)
    blue = rng.uniform(0.03, 0.1)
    dark = rng.uniform(0.45, 0.62)
    slant, reach = rng.choice((-1, 1)) * rng.uniform(0.6, 1.1), rng.choice((-0.3, 0.25, 0.4))
    glow = rng.uniform(0, 1) * np.float32((8, 6, 5))
    stage.sun = Sun(slant, reach, (dark + blue, dark, dark - 0.6 * blue), glow, rng.uniform(0.03, 0.08))
    now = 8
    for number in range(1, 6):
        _, gone = stage.visit(number, now, 4 if number == 2 else 0, tall=rng.uniform(0.24, 0.4))
        now = gone + 1 if number != 3 else (now + gone) / 2  # the third and the fourth are there together
    stage.seconds = now + 5


def auto_exposure(changes):
    """The camera's curve. changes: (frame, gain of the light, gamma, factors of blue and red) in order of time, with
    linear interpolation between them."""
    times, *values = zip(*changes)

    def apply(picture, time):
        gain, gamma, blue, red = (np.interp(time, times, value) for value in values)
        levels = np.linspace(0, 1, 512)
        out = np.empty_like(picture)
        for channel, factor in enumerate((blue, 1, red)):
            curve = (255 * np.minimum(1, levels ** 2.2 * gain * factor) ** (gamma / 2.2)).astype(np.float32)
            place = np.clip(picture[..., channel] * (511 / 255), 0, 510.99)
            low = place.astype(np.int32)
            out[..., channel] = curve[low] + (curve[low + 1] - curve[low]) * (place - low)
        return out
    return apply


def exposure(stage):
    """Steps and drifts of the exposure, the contrast and the white balance, in the empty room and while a person stands
    there."""
    rng = stage.rng
    first = stage.visit(1, 34, 16, camouflaged=True)
    second = stage.visit(2, first[1] + 10, 6)
    stage.seconds = second[1] + 12
    changes, state = [(0, 1.0, 1.0, 1.0, 1.0)], (1.0, 1.0, 1.0, 1.0)
    # The seconds at which changes begin: three in the empty room, three while the first person stands, one as the
    # person leaves, and three later.
    stood = first[0].path[1][0] / stage.rate / stage.pace
    starts = [11, 16, 22, stood + 1, stood + 5, stood + 9, first[1] - 1, first[1] + 4, second[1] - 4, second[1] + 3]
    for i, start in enumerate(starts):
        length = rng.uniform(0.1, 1.0) if i % 3 < 2 else rng.uniform(3, 4)  # two steps, then a drift
        gain = math.log(state[0]) + rng.choice((-1, 1)) * rng.uniform(0.2, 0.55)
        target = (math.exp(np.clip(gain, -0.6, 0.5)), rng.uniform(0.85, 1.18), *rng.uniform(0.95, 1.05, 2))
        changes.append((stage.frame(start), *state))
        if i % 3 == 0:  # it overshoots first
            over = [2 * new - old if k == 0 else new for k, (old, new) in enumerate(zip(state, target))]
            over[0] = state[0] + 1.25 * (target[0] - state[0])
            changes.append((stage.frame(start + 0.7 * length), *over))
        changes.append((stage.frame(start + length), *target))
        state = target
    stage.exposure = auto_exposure(changes)


def lane(stage):
    """A road with two lanes. Cars follow each other closely in both directions, from the first frame on."""
    rng, (width, height) = stage.rng, stage.size
    stage.rate, stage.seconds, stage.learn = 12, 60, 10
    top = int(0.4 * height)
    road = np.float32(rng.uniform(85, 125) + rng.normal(0, 3, 3))
    stage.background[top:] = road + 3 * smooth_field(rng, width, height - top, 8)[..., None]
    stage.background[top:] += 4 * rng.standard_normal((height - top, width, 1)).astype(np.float32)
    for x in range(0, width, 40):
        cv2.line(stage.background, (x, int(0.68 * height)), (x + 18, int(0.68 * height)), (190, 195, 195), 2)
    stage.line = 'gate: 0.5,0.35 0.5,0.99'
    way, number = rng.choice((-1, 1)), 1
    for sign, low, tall in ((way, 0.64 * height, 0.14 * height), (-way, 0.94 * height, 0.17 * height)):
        step = rng.uniform(0.12, 0.16) * tall / stage.pace  # pixels per frame
        begin, end = (-3 * tall, width + 3 * tall)[::sign]
        lasts, frames = (width + 6 * tall) / step, stage.frame(stage.seconds)
        direction = 'left' if sign > 0 else 'right'  # as seen along the line, which goes down
        stage.lanes.append((low, direction))
        start, before = -rng.uniform(0.6, 0.8) * lasts, 0  # the first cars are there already
        while start < frames:
            made = car(number, [(0, begin, low), (lasts, end, low)], rng, stage.pictures, tall, road)
            gap = rng.uniform(0.3, 0.9) * tall if rng.random() < 0.93 else rng.uniform(2, 4) * tall
            start += ((before + made.width) / 2 + gap) / step
            made.later(start)
            stage.actors.append(made)
            if 0 <= start + lasts / 2 < frames:
                stage.crossings.append(((start + lasts / 2) / stage.rate, direction))
            before, number = made.width, number + 1
    stage.crossings.sort()


def codec(stage):
    """People in a yard, seen through a noisy sensor and an encoder with few bits."""
    stage.rate, stage.grain = 12, 4.0
    now = 8
    for number in range(1, 6):
        _, gone = stage.visit(number, now, 5 if number == 3 else 0, tall=stage.rng.uniform(0.2, 0.45))
        now = gone + 2.5
    stage.seconds = now + 4


def lost(stage):
    """Single frames and stretches of up to 2.5 s are missing."""
    rng, now = stage.rng, 8
    for number in (1, 2, 3):
        _, gone = stage.visit(number, now, (0, 10, 5)[number - 1])
        now = gone + 5
    stage.seconds = now + 2
    frames, start = round(stage.frame(stage.seconds)), round(stage.frame(stage.learn))
    stage.lost = set(rng.choice(np.arange(start, frames), (frames - start) // 40, replace=False).tolist())
    for burst in rng.choice(np.arange(start, frames), 5, replace=False):
        stage.lost.update(range(burst, min(frames - 1, burst + 1 + int(stage.frame(rng.uniform(0.3, 2.5))))))


def switched(stage):
    """A light is switched every two seconds, without people and with them."""
    rng, (width, height) = stage.rng, stage.size
    off = np.clip(0.5 + 0.08 * smooth_field(rng, width, height, 2), 0.35, 0.7)[..., None]
    off = off * rng.uniform(0.92, 1.08, 3).astype(np.float32)
    _, gone = stage.visit(1, 26, 3)
    stage.visit(2, gone + 6, 0)
    stage.seconds = gone + 20

    def lamp(time):
        second = time / stage.rate / stage.pace
        return off if second >= 8 and int(second / 2) % 2 else np.float32(1)
    stage.lamp = lamp


def scene(name, seed, folder=None, width=320, height=240, pace=1.0):
    """Makes a scene (`World`). pace: factor for all times, at most 1. Raises ValueError if the name is not one of
    SCENES."""
    if name not in SCENES:
        raise ValueError(f'{name} is not a scene: it must be one of {", ".join(SCENES)}')
    stage = Stage(name, seed, folder, width, height, pace)
    made = name.replace('-', '_')
    (globals().get(made) or getattr(motion_camera, made))(stage)
    frames = stage.frames
    if name == 'codec':
        frames = lambda: encoded(stage)  # noqa: E731
    length, learn = (round(stage.frame(second)) for second in (stage.seconds, stage.learn))
    return World(stage.rate, length, learn, stage.line, stage.lanes, stage.crossings, frames)


def encoded(stage):
    """The frames of a stage after an encoder with about 0.1 bits per pixel."""
    from motion_run import through_encoder
    frames = list(stage.frames())
    for frame, picture in zip(frames, through_encoder([frame.picture for frame in frames], stage.rate)):
        frame.picture = picture
        yield frame
