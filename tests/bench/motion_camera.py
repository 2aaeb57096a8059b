# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenes for motion_world.py in which the camera changes: it is nudged, pans, or switches to infrared. None of this is
motion, and people before and after it must be found."""
import cv2
import numpy as np

MARGIN = 0.15  # share of the width by which the picture may be shifted to each side


def nudge(stage):
    """The camera is touched twice: it moves by a few pixels, then by more with a slight rotation."""
    rng = stage.rng
    widen(stage)
    first, second = changes_between_visits(stage, 3, 3, 0)
    small, large = (rng.choice((-1, 1), 2) * rng.uniform(low, high, 2) for low, high in ((1, 3), (5, 12)))
    turn = rng.uniform(-0.5, 0.5)

    def pointing(second_of):
        if second_of < first:
            return 0, 0, 0
        return (*small, 0) if second_of < second else (*large, turn)
    stage.pointing = pointing


def pan(stage):
    """The camera pans to one side and back for a few seconds, between visits."""
    rng = stage.rng
    widen(stage)
    _, gone = stage.visit(1, 8, 3)
    start, lasts = gone + 4, rng.uniform(2, 6)
    far = rng.choice((-1, 1)) * rng.uniform(0.4, 0.95) * stage.margin
    _, gone = stage.visit(2, start + lasts + 6, 3)
    back = gone + 4
    _, gone = stage.visit(3, back + lasts + 6, 0)
    stage.seconds = gone + 4
    stage.pointing = lambda second: (far * float(np.interp(second, (start, start + lasts, back, back + lasts),
                                                           (0, 1, 1, 0))), 0, 0)


def infrared(stage):
    """The camera switches to infrared, and back to colour."""
    on, off = changes_between_visits(stage, 3, 8, 3)
    gray, lasts = night(stage), stage.rng.choice((0.1, 1.0))
    at_rate = stage.rate * stage.pace
    stage.exposure = lambda picture, time: mixed(
        picture, gray(picture), float(np.interp(time / at_rate, (on, on + lasts, off, off + lasts), (0, 1, 1, 0))))


def dusk(stage):
    """It gets dark for half a minute, then the camera switches to infrared."""
    rng = stage.rng
    _, gone = stage.visit(1, 12, 3)
    on = max(34, gone + 4)
    _, gone = stage.visit(2, on + 6, 5)
    stage.seconds = gone + 5
    dark, gray, lasts = rng.uniform(0.3, 0.5), night(stage), rng.choice((0.1, 1.0))
    at_rate = stage.rate * stage.pace

    def exposure(picture, time):
        second = time / at_rate
        light = np.float32(np.interp(second, (8, on - 2), (1, dark)))
        return mixed(picture * light, gray(picture), float(np.interp(second, (on, on + lasts), (0, 1))))
    stage.exposure = exposure


def changes_between_visits(stage, *stays):
    """Adds three visits, in which people stand for `stays` seconds. Returns the times between the first two and between
    the last two visits when the camera changes (in seconds)."""
    _, gone = stage.visit(1, 8, stays[0])
    changes = []
    for number, stay in ((2, stays[1]), (3, stays[2])):
        changes.append(gone + 4)
        _, gone = stage.visit(number, changes[-1] + 6, stay)
    stage.seconds = gone + 4
    return changes


def widen(stage):
    """Makes the stage larger than the picture, which shows a part of it: see Stage.pointing."""
    stage.margin = round(MARGIN * stage.size[0])
    stage.extend(stage.margin)


def seen(picture, shift, margin):
    """What the camera shows of a stage. shift: pixels to the right and down, and degrees."""
    height, width = picture.shape[:2]
    kind = cv2.INTER_LINEAR if picture.dtype == np.float32 else cv2.INTER_NEAREST
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), shift[2], 1)
    matrix[:, 2] += np.array(shift[:2]) - margin
    shown = cv2.warpAffine(picture.astype(np.uint8) if picture.dtype == bool else picture, matrix,
                           (width - 2 * margin, height - 2 * margin), flags=kind, borderMode=cv2.BORDER_REFLECT)
    return shown.astype(picture.dtype)


def night(stage):
    """The scene under the camera's own infrared lamp: gray, with another contrast, bright in the middle."""
    rng, (width, height) = stage.rng, stage.size
    weights = rng.uniform(0.1, 1, 3).astype(np.float32)
    weights /= weights.sum()
    gain, gamma, fall = rng.uniform(0.7, 1.4), rng.uniform(0.75, 1.35), rng.uniform(0, 2.5)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    lamp = np.exp(-fall * ((x / width - 0.5) ** 2 + (y / height - 0.5) ** 2))

    def gray(picture):
        luma = np.clip(picture @ weights * np.float32(gain / 255), 0, 1) ** np.float32(gamma) * lamp * 255
        return np.repeat(luma[..., None], 3, axis=2)
    return gray


def mixed(a, b, share):
    return a if share == 0 else b if share == 1 else a * np.float32(1 - share) + b * np.float32(share)
