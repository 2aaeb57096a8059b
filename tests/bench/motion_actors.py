# SPDX-License-Identifier: LGPL-2.1-or-later
"""Actors of the scenes of motion_world.py (people who walk and stand, cars, and things that are carried), and their
shadows.

An actor has a `number` (its id in the truth), `at(time)` and `look(time)`. at() returns the middle of its lower edge in
pixels, or None while it is not in the scene. look() returns its picture (float32, height × width × 3) and cover
(float32, height × width, 0–1). Times are frames.
"""
import math

import cv2
import numpy as np

from motion_scenes import put

FINE = 3  # figures are drawn at this many times their size, so that their edges are smooth
CLOTHES = ((45, 40, 38), (60, 60, 150), (140, 90, 50), (90, 130, 160), (200, 200, 205), (60, 110, 70), (120, 120, 125),
           (35, 30, 90))
PAINTS = ((215, 215, 218), (165, 165, 168), (60, 58, 56), (30, 30, 32), (45, 45, 160), (140, 80, 40),
          None)  # None: the colour of the road


class Actor:
    """An actor on a path of straight segments. `path` has (frame, x, y) in pixels, where y is the ground below the
    actor."""

    def __init__(self, number, path):
        self.number, self.path = number, path
        self.times, self.xs, self.ys = zip(*path)

    def later(self, frames):
        """Delays the whole path."""
        Actor.__init__(self, self.number, [(time + frames, x, y) for time, x, y in self.path])

    def at(self, time):
        if not self.times[0] <= time <= self.times[-1]:
            return None
        return float(np.interp(time, self.times, self.xs)), float(np.interp(time, self.times, self.ys))


def cloth(rng, pictures, colour, height, width, depth=16):
    """A colour with the detail of a photo (whose standard deviation is `depth`), darker at one side."""
    detail = pictures.crop(rng, None, width, height, 0.3)
    detail -= detail.mean(axis=(0, 1))
    side = 1.1 - 0.3 * np.linspace(0, 1, width, dtype=np.float32)[None, :, None]
    return np.clip((np.float32(colour) + detail * (depth / max(detail.std(), 1))) * side, 5, 245)


def covers_of(labels, count, width, height):
    """The share of each pixel that the labels 1 to `count` cover. The labels have FINE times the size."""
    drawn = [np.where(labels == label, 255, 0).astype(np.uint8) for label in range(1, count + 1)]
    return [cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32) / 255 for part in drawn]


class Person(Actor):
    """A person who walks where the path moves, and stands with small movements where it does not.

    camouflage: a colour (blue, green, red) for the trousers or the pullover, or None.
    """

    def __init__(self, number, path, rng, pictures, height, camouflage=None):
        super().__init__(number, path)
        self.height, self.width = int(height), int(0.66 * height)
        colours = [np.float32(CLOTHES[i]) for i in rng.permutation(len(CLOTHES))[:2]]
        hidden = int(rng.integers(2)) if camouflage is not None else None
        if hidden is not None:
            colours[hidden] = np.float32(camouflage)
        size = self.height, self.width
        self.looks = [cloth(rng, pictures, rng.uniform(20, 70, 3) * (0.8, 0.9, 1), *size, 8),         # hair
                      cloth(rng, pictures, np.float32((120, 145, 190)) * rng.uniform(0.6, 1.1), *size, 6),  # skin
                      *(cloth(rng, pictures, colour, *size, 6 if i == hidden else 16)
                        for i, colour in enumerate(colours))]
        self.waves = rng.uniform(0.02, 0.25, 6), rng.uniform(0, 6.3, 6)
        self.stride = rng.uniform(0.5, 0.65) * self.height

    def fidget(self, time):
        """The lean and the angles of both arms, −1 to 1: slow, with pauses."""
        speed, phase = self.waves
        pause = np.clip(2 * np.sin(time * 0.05 + phase[:3]), 0, 1)
        return pause * np.sin(time * speed[3:] + phase[3:])

    def look(self, time):
        x, _ = self.at(time)
        before = self.at(max(self.times[0], time - 1))[0]
        after = self.at(min(self.times[-1], time + 1))[0]
        walks = abs(after - before) > 0.5
        swing = math.sin(2 * math.pi * x / self.stride) if walks else 0.0
        lean, *arms = (0.1, -swing, swing) if walks else self.fidget(time)
        arms = [0.55 * arm if walks else 0.1 + 0.5 * abs(arm) for arm in arms]
        covers = covers_of(self.draw(swing if walks else 0.25, lean * 0.02, arms, walks), 4, self.width, self.height)
        cover = sum(covers)
        picture = (sum(look * part[..., None] for look, part in zip(self.looks, covers))
                   / np.maximum(cover, 1e-3)[..., None])
        picture[cover < 0.02] = self.looks[2][cover < 0.02]
        if after < before:
            picture, cover = picture[:, ::-1], cover[:, ::-1]
        return np.ascontiguousarray(picture), np.ascontiguousarray(np.minimum(cover, 1))

    def draw(self, swing, lean, arms, walks):
        """The labels 1 to 4 for hair, skin, pullover and trousers, at FINE times the size."""
        s, middle = FINE * self.height, FINE * self.width / 2
        labels = np.zeros((FINE * self.height, FINE * self.width), np.uint8)

        def spot(x, y):
            return int(middle + x * s), int(y * s)

        def limb(x, y, angle, length, thick, label):
            end = spot(x + math.sin(angle) * length, y + math.cos(angle) * length)
            cv2.line(labels, spot(x, y), end, label, max(1, int(thick * s)))
            return end

        wide = 0.1 if walks else 0.13
        for side in (-1, 1):
            foot = limb(0.4 * side * wide, 0.5, 0.42 * swing * side if walks else 0.08 * side, 0.45, 0.085, 4)
            cv2.circle(labels, foot, int(0.035 * s), 1, -1)
        corners = [spot(lean - wide, 0.17), spot(lean + wide, 0.17), spot(0.8 * wide, 0.53), spot(-0.8 * wide, 0.53)]
        cv2.fillConvexPoly(labels, np.int32(corners), 3)
        for side, arm in zip((-1, 1), arms):
            hand = limb(lean + side * wide * (0.2 if walks else 1), 0.2, arm if walks else side * arm, 0.31, 0.055, 3)
            cv2.circle(labels, hand, int(0.026 * s), 2, -1)
        cv2.ellipse(labels, spot(1.5 * lean, 0.085), (int(0.058 * s), int(0.075 * s)), 0, 0, 360, 2, -1)
        cv2.ellipse(labels, spot(1.5 * lean, 0.065), (int(0.062 * s), int(0.06 * s)), 0, 180, 360, 1, -1)
        return labels


class Still(Actor):
    """An actor whose look does not change."""

    def __init__(self, number, path, picture, cover):
        super().__init__(number, path)
        self.picture, self.cover = picture, cover
        self.height, self.width = cover.shape

    def look(self, _):
        return self.picture, self.cover

    def on(self, number, path):
        """A copy with another number and another path."""
        return Still(number, path, self.picture, self.cover)


def bag(rng, pictures, height):
    """A suitcase of this height in pixels, without a path."""
    width = int(height * rng.uniform(0.7, 1.4))
    drawn = np.zeros((FINE * height, FINE * width), np.uint8)
    cv2.rectangle(drawn, (2, int(0.15 * FINE * height)), (FINE * width - 3, FINE * height - 2), 255, -1)
    cv2.rectangle(drawn, (int(0.35 * FINE * width), 2), (int(0.65 * FINE * width), FINE * height // 5), 255, 3)
    cover = cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    return Still(0, [(0, 0, 0)], cloth(rng, pictures, CLOTHES[rng.integers(len(CLOTHES))], height, width), cover)


def car(number, path, rng, pictures, height, road):
    """A car, van or lorry of this height in pixels, seen from its side. road: the colour of the road, which some cars
    have."""
    kind = rng.choice(3, p=(0.7, 0.2, 0.1))
    height = int(height * (1, 1.25, 1.5)[kind])
    width = int(height * (2.4, 1.9, 2.2)[kind] * rng.uniform(0.9, 1.15))
    w, h = FINE * width, FINE * height
    labels = np.zeros((h, w), np.uint8)
    points = {0: ((0, .5), (.2, .42), (.33, .06), (.72, .06), (.86, .42), (1, .5), (1, .85), (0, .85)),
              1: ((0, .5), (.12, .1), (.95, .05), (1, .2), (1, .88), (0, .88)),
              2: ((0, .2), (.2, .18), (.22, .02), (1, .02), (1, .9), (0, .9))}[kind]
    cv2.fillPoly(labels, [np.int32([(x * (w - 1), y * (h - 1)) for x, y in points])], 1)
    window = {0: ((.27, .42), (.36, .13), (.7, .13), (.78, .42)), 1: ((.06, .45), (.14, .18), (.55, .18), (.55, .45)),
              2: ((.03, .45), (.06, .25), (.17, .25), (.17, .45))}[kind]
    cv2.fillPoly(labels, [np.int32([(x * w, y * h) for x, y in window])], 2)
    for x in (0.2, 0.8):
        cv2.circle(labels, (int(x * w), int(0.83 * h)), int(0.16 * h), 3, -1)
    paint = PAINTS[rng.integers(len(PAINTS))]
    colours = (road if paint is None else paint, (80, 70, 60), (28, 28, 28))
    covers = covers_of(labels, 3, width, height)
    cover = sum(covers)
    light = 1.12 - 0.3 * np.linspace(0, 1, height, dtype=np.float32)[:, None, None]  # from above
    picture = (sum(cloth(rng, pictures, colour, height, width, depth) * part[..., None]
                   for colour, part, depth in zip(colours, covers, (5, 14, 5)))
               / np.maximum(cover, 1e-3)[..., None] * light)
    picture[cover < 0.02] = colours[0]
    if path[-1][1] < path[0][1]:
        picture, cover = picture[:, ::-1], cover[:, ::-1]
    return Still(number, path, np.ascontiguousarray(picture), np.ascontiguousarray(np.minimum(cover, 1)))


class Sun:
    """Where shadows fall, and how much light remains in them.

    slant, reach: the shadow of a point at height h lies `slant`·h to the right of its foot and `reach`·h below. factor:
    the remaining share of blue, green and red. glow: light added to the shadow (8-bit steps), which makes it differ
    from exact scaling. soft: standard deviation of the blur of its far end, in heights of the object.
    """

    def __init__(self, slant, reach, factor, glow, soft):
        self.slant, self.reach, self.factor, self.glow, self.soft = (slant, reach, np.float32(factor),
                                                                     np.float32(glow), soft)

    def cast(self, cover, x, y, size):
        """The share of the light that an object removes, 0–1 (1: only the light of the shadow remains). The middle of
        its lower edge is at (x, y)."""
        h, w = cover.shape
        move = np.float32([[1, -self.slant, x - (w - 1) / 2 + self.slant * (h - 1)],
                           [0, -self.reach, y + self.reach * (h - 1)]])
        drawn = cv2.warpAffine(cover, move, size)
        near, far = cv2.GaussianBlur(drawn, (0, 0), 0.7), cv2.GaussianBlur(drawn, (0, 0), max(0.8, self.soft * h))
        below = (np.arange(size[1], dtype=np.float32)[:, None] - y) * np.sign(self.reach)
        return near + (far - near) * np.clip(below / max(1.0, abs(self.reach) * h), 0, 1)


def paint(picture, ids, mixed, actor, time):
    """Draws an actor into the picture (float32) and the truth."""
    place = actor.at(time)
    if place is None:
        return
    look, cover = actor.look(time)
    h, w = cover.shape
    put(picture, ids, mixed, look, cover, place[0] - (w - 1) / 2, place[1] - (h - 1), actor.number)


def shade(picture, shadow, actors, time, sun):
    """Darkens the ground with the shadows of all actors, and marks them in `shadow` (bool, height × width)."""
    height, width = shadow.shape
    taken = np.zeros((height, width), np.float32)
    for actor in actors:
        place = actor.at(time)
        if place is not None:
            np.maximum(taken, sun.cast(actor.look(time)[1], *place, (width, height)), out=taken)
    if taken.any():
        dark = picture * sun.factor + sun.glow
        picture += (dark - picture) * taken[..., None]
        shadow |= taken > 0.1
