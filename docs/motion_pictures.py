#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the pictures of docs/motion.md with cudadiff, from the scenes of tests/bench/motion_scenes.py:

  motion_pictures.py MEDIA HIDDEN

MEDIA is a folder with photos/ and vtest.avi, as for tests/bench/motion_quality.py. HIDDEN is vtest.avi after
examples/recipes/privacy-blur.sh. Needs NumPy, OpenCV, PyGObject and Pillow.
"""
import pathlib
import sys

import cv2
import numpy as np
from PIL import Image

docs = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(docs.parent / 'tests' / 'bench'))
import motion_run  # noqa: E402
import motion_scenes  # noqa: E402

SIZE = 192, 144  # of a panel
# The frame of each scene that is shown.
FRAMES = {'shake': 150, 'trees': 150, 'cloud': 128, 'light': 151, 'dark': 150, 'shadows': 150, 'compression': 150}


def save(name, rows):
    """Saves rows of panels (height × width × 3, blue, green, red) with a palette, which makes the file small."""
    gap = np.full((SIZE[1], 4, 3), 255, np.uint8)
    lines = [np.hstack([part for panel in row
                        for part in (gap, cv2.resize(panel, SIZE, interpolation=cv2.INTER_AREA))][1:]) for row in rows]
    sheet = np.vstack([part for line in lines for part in (np.full((4, line.shape[1], 3), 255, np.uint8), line)][1:])
    Image.fromarray(sheet[:, :, ::-1]).quantize(48, dither=Image.Dither.NONE).save(docs / f'motion-{name}.png',
                                                                                   optimize=True)
    print(docs / f'motion-{name}.png')


def draw_scene(name, media):
    """A frame of a scene, and the masks of cudadiff with its defaults, with reference=mog2 and with preset=outdoor."""
    settings = ('', 'reference=mog2', 'preset=outdoor')
    detectors = [motion_run.CudaDiff((384, 288), properties, 'auto') for properties in settings]
    for number, frame in enumerate(motion_scenes.scene(name, 1, media)):
        yuv, picture = motion_run.to_i420(frame.picture)
        found = [detector.apply(yuv, picture) for detector in detectors]
        if number == FRAMES[name]:
            break
    for detector in detectors:
        detector.close()
    masks = [cv2.cvtColor(mask.astype(np.uint8) * 255, cv2.COLOR_GRAY2BGR) for mask in found]
    save(name, [[frame.picture] + masks])


def draw_hidden(path):
    """A contact sheet of the clip whose people are hidden, a frame every ten seconds."""
    clip, panels = cv2.VideoCapture(str(path)), []
    for number in range(780):
        good, picture = clip.read()
        if good and number % 100 == 70:
            panels.append(picture)
    save('privacy', [panels[:4], panels[4:8]])


motion_run.Gst.init(None)
for scene in FRAMES:
    draw_scene(scene, sys.argv[1])
draw_hidden(sys.argv[2])
