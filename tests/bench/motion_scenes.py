# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ten seeded scenes with known truth: textured objects cross the still picture of a fixed camera. Each scene has one
difficulty.

`scene(name, seed, …)` gives the frames of one of SCENES. Backgrounds and the textures of objects are crops of real
pictures if a folder of pictures is given, and synthetic textures otherwise. The same arguments give the same frames.

All scenes have the same acts: the first `LEARN` share of the frames is empty, so that models learn. Two acts with
objects follow, and after each act the scene is empty again. Objects have sides of 8 to 100 pixels and various speeds.
They enter and leave across an edge of the picture, and every second one pauses on its way.
"""
import dataclasses
import glob
import math
import os

import cv2
import numpy as np

SCENES = ('plain', 'flicker', 'light', 'cloud', 'dark', 'shake', 'rain', 'compression', 'shadows', 'trees')
LEARN = 100 / 360                                      # share of the frames
ACTS = ((102 / 360, 192 / 360), (232 / 360, 322 / 360))
NOISE = 3.0                                            # standard deviation of the sensor noise, in 8-bit steps
VIEWS = ('building', 'home', 'leuvenA', 'leuvenB', 'aero1', 'aero3', 'rubberwhale1', 'basketball1', 'messi5', 'stuff',
         'left05', 'vtest')
FOLIAGE = ('squirrel_cls', 'aloeL', 'butterfly', 'messi5', 'aero1')


@dataclasses.dataclass
class Frame:
    """One frame and its truth.

    picture: uint8, height × width × 3, blue, green, red. ids: uint8, height × width, the object that a pixel shows, or
    0. mixed: bool, height × width, pixels on the edge of an object, which show both the object and its background.
    shadow: bool, height × width, pixels in the shadow of an object, if the scene knows them. lost: frames that are
    missing before this one.
    """
    picture: np.ndarray
    ids: np.ndarray
    mixed: np.ndarray
    shadow: np.ndarray = None
    lost: int = 0


class Pictures:
    """Crops of the pictures in a folder, or synthetic textures if it is None or has none."""

    def __init__(self, folder):
        self.paths = {}
        for path in sorted(glob.glob(os.path.join(folder or '', 'photos', '*')) if folder else []):
            self.paths[os.path.splitext(os.path.basename(path))[0]] = path
        clips = [os.path.join(folder or '', name) for name in ('vtest.avi', 'vtest-h264.mp4')]
        self.clip = next((path for path in clips if folder and os.path.exists(path)), None)
        self.loaded = {}

    def names(self, wanted=None):
        """The names of all pictures, or those in `wanted` that exist."""
        names = list(self.paths) + (['vtest'] if self.clip else [])
        return [name for name in wanted if name in names] if wanted else sorted(self.paths)

    def load(self, name):
        if name not in self.loaded:
            self.loaded[name] = (middle_of_clip(self.clip) if name == 'vtest'
                                 else cv2.imread(self.paths[name], cv2.IMREAD_COLOR))
        return self.loaded[name]

    def crop(self, rng, wanted, width, height, least=0.6):
        """A crop with this aspect ratio, scaled to width × height: float32. `least`: smallest share of the picture,
        0–1."""
        names = self.names(wanted)
        if not names:
            return synthetic(rng, width, height)
        picture = self.load(names[rng.integers(len(names))])
        scale = min(picture.shape[1] / width, picture.shape[0] / height) * rng.uniform(least, 1)
        w, h = max(1, int(width * scale)), max(1, int(height * scale))
        x, y = rng.integers(picture.shape[1] - w + 1), rng.integers(picture.shape[0] - h + 1)
        inter = cv2.INTER_AREA if scale > 1 else cv2.INTER_LINEAR
        return cv2.resize(picture[y:y + h, x:x + w], (width, height), interpolation=inter).astype(np.float32)


def middle_of_clip(path):
    """The median of frames over a clip: its still background."""
    clip, frames = cv2.VideoCapture(path), []
    while True:
        good, frame = clip.read()
        if not good:
            break
        frames.append(frame)
    return np.median(np.stack(frames[::max(1, len(frames) // 25)]), axis=0).astype(np.uint8)


def synthetic(rng, width, height):
    """A texture with the falling spectrum of photographs: coloured noise of several scales, float32 from about 20 to
    235."""
    sums = np.zeros((height, width, 3), np.float32)
    cells = 2
    while cells < max(width, height):
        grid = rng.standard_normal((cells + 1, cells + 1, 3)).astype(np.float32)
        grid = 0.6 * grid.mean(axis=2, keepdims=True) * 1.7 + 0.4 * grid
        sums += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) / cells ** 0.6
        cells *= 2
    sums -= sums.mean()
    return np.clip(rng.uniform(90, 150) + sums * (45 / max(sums.std(), 1e-6)), 20, 235)


# -------------------------------------------------------------------------------------------------------------- objects

@dataclasses.dataclass
class Thing:
    """An object: a texture in a shape, on a path of straight segments."""
    number: int
    texture: np.ndarray  # float32, height × width × 3
    shape: np.ndarray    # float32, height × width: the share of each pixel that the object covers
    times: list          # frames at which it is at `places`
    places: list         # middles (x, y) in pixels
    swing: float         # amplitude of its steps, in pixels

    def at(self, time):
        """The middle of the object in this frame, or None while it is not there."""
        if not self.times[0] <= time <= self.times[-1]:
            return None
        x = np.interp(time, self.times, [place[0] for place in self.places])
        y = np.interp(time, self.times, [place[1] for place in self.places])
        return x, y + self.swing * math.sin(time * 0.7)


def outline(rng, width, height):
    """The shape of an object: an ellipse, a box, or an upright figure. Drawn at 4 times its size for smooth edges."""
    w, h = 4 * width, 4 * height
    drawn = np.zeros((h, w), np.uint8)
    kind = rng.integers(3) if height >= 16 else 1
    if kind == 0:
        cv2.ellipse(drawn, (w // 2, h // 2), (w // 2 - 2, h // 2 - 2), 0, 0, 360, 255, -1)
    elif kind == 1:
        cv2.rectangle(drawn, (2, 2), (w - 3, h - 3), 255, -1)
    else:
        cv2.ellipse(drawn, (w // 2, h // 8), (w // 5, h // 8), 0, 0, 360, 255, -1)
        cv2.ellipse(drawn, (w // 2, h * 2 // 5), (w // 2 - 2, h // 5), 0, 0, 360, 255, -1)
        cv2.rectangle(drawn, (w // 4, h * 2 // 5), (w * 3 // 4, h - 3), 255, -1)
    return cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32) / 255


def make_thing(rng, pictures, number, side, act, width, height):
    """An object of this height in pixels that comes and leaves within an act (first frame, frame after its last)."""
    h = int(side)
    w = max(8, int(h * rng.uniform(0.45, 1.2)))
    texture = pictures.crop(rng, None, w, h, 0.3)
    first, last = act
    start, end = rng.uniform(first, first + 0.2 * (last - first)), rng.uniform(last - 0.2 * (last - first), last)
    from_left = rng.random() < 0.5
    outside = (-w / 2 - 1, width + w / 2)
    begin, finish = (outside if from_left else outside[::-1])
    if rng.random() < 0.3:
        finish = begin  # turns back
    stay = rng.uniform(0.2, 0.8) * width
    y0, y1, y2 = (rng.uniform(h / 2 + 2, max(h / 2 + 3, height - h / 2 - 2)) for _ in range(3))
    pause = rng.uniform(0.15, 0.4) * (end - start) if number % 2 else 0
    middle = rng.uniform(0.3, 0.6) * (end - start - pause) + start
    return Thing(number, texture, outline(rng, w, h), [start, middle, middle + pause + 1e-3, end],
                 [(begin, y0), (stay, y1), (stay, y1), (finish, y2)], rng.uniform(0, 1))


def make_things(rng, pictures, width, height, frames):
    things = []
    for first, last in ACTS:
        greatest = min(100, height * 0.4)
        sides = [greatest * rng.uniform(low, high) for low, high in ((0.5, 1), (0.24, 0.5), (0.14, 0.24), (0.08, 0.14))]
        for side in sides[:int(rng.integers(3, 5))]:
            things.append(make_thing(rng, pictures, len(things) + 1, max(8, side), (first * frames, last * frames),
                                     width, height))
    return things


def shifted(picture, x, y, width, height):
    """A picture whose upper left corner is at (x, y) in a frame, with fractions of pixels; 0 elsewhere."""
    move = np.float32([[1, 0, x], [0, 1, y]])
    return cv2.warpAffine(picture, move, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT,
                          borderValue=0)


def put(picture, ids, mixed, look, cover, x, y, number):
    """Draws a look (float32, height × width × 3) where `cover` (float32, height × width, 0–1) is, with its upper left
    corner at (x, y), into a picture and the truth. number: its id; 0: it belongs to the scene."""
    (height, width), (h, w) = ids.shape, cover.shape
    left, top = max(0, math.floor(x) - 1), max(0, math.floor(y) - 1)
    right, bottom = min(width, int(x) + w + 3), min(height, int(y) + h + 3)
    if left >= right or top >= bottom:
        return
    size = right - left, bottom - top
    share = shifted(cover, x - left, y - top, *size)
    # The look covers a larger rectangle than the cover, so that its edge does not darken.
    look = shifted(cv2.copyMakeBorder(look, 2, 2, 2, 2, cv2.BORDER_REPLICATE), x - left - 2, y - top - 2, *size)
    part = picture[top:bottom, left:right]
    part += (look - part) * share[..., None]
    if number:
        ids[top:bottom, left:right][share >= 0.5] = number
        edge = mixed[top:bottom, left:right]
        edge[share > 0.9] = False
        edge[(share > 0.1) & (share <= 0.9)] = True


def draw(scene_picture, ids, mixed, thing, time, shadow):
    """Draws an object after its shadow, if `shadow` (dx, dy in heights of the object, factor of the light) is given."""
    place = thing.at(time)
    if place is None:
        return
    height, width = ids.shape
    h, w = thing.shape.shape
    x, y = place[0] - (w - 1) / 2, place[1] - (h - 1) / 2
    if shadow:
        move = np.float32([[1, -shadow[0], x + shadow[0] * h], [0, -shadow[1], y + h + shadow[1] * h]])
        cast = cv2.GaussianBlur(cv2.warpAffine(thing.shape, move, (width, height)), (5, 5), 0)
        scene_picture *= (1 - (1 - shadow[2]) * cast)[..., None]
    put(scene_picture, ids, mixed, thing.texture, thing.shape, x, y, thing.number)


# --------------------------------------------------------------------------------------------------------- difficulties

def smooth_field(rng, width, height, cells):
    """A field with a standard deviation of about 1 that varies smoothly over the frame."""
    return cv2.resize(rng.standard_normal((cells + 1, cells + 1)).astype(np.float32), (width, height),
                      interpolation=cv2.INTER_CUBIC)


class Sway:
    """Foliage in the wind: a texture in one part of the frame, moved by a quasi-periodic field of up to 4 pixels."""

    def __init__(self, rng, width, height):
        self.y, self.x = np.mgrid[0:height, 0:width].astype(np.float32)
        edge = ((self.x / width if rng.random() < 0.5 else 1 - self.x / width)
                + 0.25 * smooth_field(rng, width, height, 3))
        share = np.quantile(edge, 0.45)
        self.part = np.clip((share - edge) * 8, 0, 1).astype(np.float32)
        self.modes = [(smooth_field(rng, width, height, 6), smooth_field(rng, width, height, 6), rng.uniform(0.15, 0.9),
                       rng.uniform(0, 6.3))
                      for _ in range(5)]
        self.gust = rng.uniform(0.02, 0.05), rng.uniform(0, 6.3)

    def apply(self, picture, time):
        strength = 0.75 + 0.25 * math.sin(time * self.gust[0] + self.gust[1])
        dx = sum(mode[0] * np.float32(math.sin(time * mode[2] + mode[3])) for mode in self.modes)
        dy = sum(mode[1] * np.float32(math.sin(time * mode[2] * 1.13 + mode[3])) for mode in self.modes)
        dx, dy = (np.clip(d * strength * 1.2, -4, 4) * self.part for d in (dx, dy * 0.6))
        return cv2.remap(picture, self.x + dx, self.y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)


class Light:
    """The light of each frame: a factor for the picture (a number or a field), depending on the kind of scene."""

    def __init__(self, rng, kind, width, height, frames):
        self.kind, self.frames = kind, frames
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        self.phase, self.speed, self.rng = rng.uniform(0, 6.3), rng.uniform(0.5, 2.5), rng
        angle = rng.uniform(0, 6.3)
        self.along = (((x - width / 2) * math.cos(angle) + (y - height / 2) * math.sin(angle))
                      / math.hypot(width, height))
        tint = rng.uniform(0.9, 1.1, 3).astype(np.float32)
        self.off = np.clip(0.45 + 0.05 * smooth_field(rng, width, height, 2), 0.3, 0.65)[..., None] * tint
        # The light goes off and on again: with objects, without, with, without.
        self.switches = [int(frames * share) for share in (150 / 360, 212 / 360, 275 / 360, 341 / 360)]
        self.steps = int(rng.integers(1, 4))
        self.sign = 1 if rng.random() < 0.5 else -1

    def at(self, time):
        if self.kind == 'flicker':
            wave = math.sin(time * self.speed + self.phase)
            return np.float32(1 + 0.08 * np.clip(0.75 * wave + 0.25 * self.rng.uniform(-1, 1), -1, 1))
        if self.kind == 'dark':
            return np.float32(0.22)
        if self.kind == 'cloud':  # two fronts, one darker and one brighter, each followed by its end
            total = np.float32(0)
            for share, step in ((0.32, -1), (0.55, 1), (0.68, 1), (0.88, -1)):
                total = total + step * self.sign / (
                    1 + np.exp(np.clip(10 * (self.along + 0.5) - 0.09 * (time - share * self.frames), -30, 30)))
            return 1 + 0.25 * np.asarray(total, np.float32)[..., None]
        if self.kind == 'light':
            dark = 0.0
            for i, when in enumerate(self.switches):
                dark += (1 if i % 2 == 0 else -1) * min(1, max(0, (time - when + 1) / self.steps))
            return 1 + np.float32(dark) * (self.off - 1)
        return np.float32(1)


def add_rain(rng, picture):
    """Streaks of rain, bright and half transparent, each in one frame only."""
    height, width = picture.shape[:2]
    layer = np.zeros((height, width), np.uint8)
    for _ in range(width * height // 800):
        x, y, length = rng.integers(width), rng.integers(-20, height), rng.integers(6, 22)
        cv2.line(layer, (int(x), int(y)), (int(x + length * 0.15), int(y + length)), int(rng.integers(40, 120)), 1,
                 cv2.LINE_AA)
    share = layer.astype(np.float32)[..., None] / 255
    return picture + (230 - picture) * share


def scene(name, seed, folder=None, width=384, height=288, frames=360):
    """Generates the frames (`Frame`) of a scene. Raises ValueError if the name is not one of SCENES."""
    if name not in SCENES:
        raise ValueError(f'{name} is not a scene: it must be one of {", ".join(SCENES)}')
    rng = np.random.default_rng([seed, SCENES.index(name)])
    pictures = Pictures(folder)
    background = pictures.crop(rng, FOLIAGE if name == 'trees' else VIEWS, width, height)
    # Few pixels are at the ends of the range, as with the exposure of a camera.
    background = 20 + background * np.float32(0.82)
    things = make_things(rng, pictures, width, height, frames)
    light = Light(rng, name, width, height, frames)
    sway = Sway(rng, width, height) if name == 'trees' else None
    shadow = (rng.uniform(-0.6, 0.6), rng.uniform(0.25, 0.5), rng.uniform(0.55, 0.75)) if name == 'shadows' else None
    noise = 7.0 if name == 'dark' else NOISE
    moved = np.zeros(2)
    for time in range(frames):
        picture = sway.apply(background, time) if sway else background.copy()
        ids, mixed = np.zeros((height, width), np.uint8), np.zeros((height, width), bool)
        for thing in things:
            draw(picture, ids, mixed, thing, time, shadow)
        picture *= light.at(time)
        if name == 'shake':
            moved = np.clip(0.5 * moved + rng.uniform(-1, 1, 2), -1, 1)
            move = np.float32([[1, 0, moved[0]], [0, 1, moved[1]]])
            picture = cv2.warpAffine(picture, move, (width, height), borderMode=cv2.BORDER_REPLICATE)
            nearest = np.float32([[1, 0, round(moved[0])], [0, 1, round(moved[1])]])
            outer = cv2.warpAffine(mixed.astype(np.float32), move, (width, height)) > 0.1
            ids, mixed = cv2.warpAffine(ids, nearest, (width, height), flags=cv2.INTER_NEAREST), outer
        if name == 'rain':
            picture = add_rain(rng, picture)
        picture = picture + noise * rng.standard_normal(picture.shape, dtype=np.float32)
        picture = np.clip(picture + 0.5, 0, 255).astype(np.uint8)
        if name == 'compression':
            quality = 10 if time % 12 == 0 else 15  # key frames stand out
            picture = cv2.imdecode(cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1],
                                   cv2.IMREAD_COLOR)
        yield Frame(picture, ids, mixed)
