#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the pictures of docs/scenes.md, the input and cudadiff's overlay, from generated scenes:

  scene_pictures.py MEDIA [NAME…]

MEDIA is a folder with photos/ and vtest.avi, as for tests/bench/motion_quality.py. Zones (blue) and lines (yellow) are
drawn here. Also prints the events up to the frame that is shown. Needs NumPy, OpenCV, PyGObject and Pillow.
"""
import pathlib
import sys

import cv2
import numpy as np
from PIL import Image

docs = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(docs.parent / 'tests' / 'bench'))
import motion_actors  # noqa: E402
import motion_scenes  # noqa: E402
import motion_world  # noqa: E402
from motion_run import Gst, Pipeline, to_i420  # noqa: E402

SIZE = 256, 192  # of a panel


def cars(paths, seed, folder, width=320, height=240):
    """A stage with cars on paths of (second, share of the width, share of the height)."""
    stage = motion_world.Stage('lane', seed, folder, width, height, 1.0)
    ground = np.float32((112, 114, 116))
    stage.background[height // 3:] = ground + 3 * motion_scenes.smooth_field(stage.rng, width, height - height // 3,
                                                                             8)[..., None]
    for number, path in enumerate(paths, 1):
        path = [(10 * second, x * width, y * height) for second, x, y in path]
        stage.actors.append(motion_actors.car(number, path, stage.rng, stage.pictures, 34, ground))
    stage.seconds = 99
    return 10, stage.frames()


def car_park(seed, folder):
    """Two cars are parked from the first frame on; a third one comes and stops beside them."""
    return cars([[(0, 0.2, 0.55), (99, 0.2, 0.55)], [(0, 0.8, 0.55), (99, 0.8, 0.55)],
                 [(10, -0.3, 0.85), (15, 0.5, 0.85), (16.5, 0.5, 0.55), (99, 0.5, 0.55)]], seed, folder)


def road(seed, folder):
    """One car comes from the left, another one from the right."""
    return cars([[(8, -0.2, 0.85), (13, 1.2, 0.85)], [(9, 1.2, 0.55), (13, -0.2, 0.55)]], seed, folder)


def world(name):
    def frames(seed, folder):
        made = motion_world.scene(name, seed, folder)
        return made.rate, made.frames()
    return frames


def lab(name):
    return lambda seed, folder: (25, motion_scenes.scene(name, seed, folder, 320, 240))


# For each picture: the scene, its seed, the frame that is shown, properties of cudadiff.
PICTURES = {
    'room': (world('stands'), 5, 240, 'preset=indoor'),
    'entrance': (world('stands'), 2, 92,
                 'preset=indoor zones="door: 0.7,0.3 1.0,0.3 1.0,1.0 0.7,1.0" lines="sill: 0.7,1.0 0.7,0.3"'),
    'trees': (lab('trees'), 1, 150, 'preset=outdoor'),
    'road': (road, 5, 110, 'preset=outdoor lines="gate: 0.5,0.99 0.5,0.35"'),
    'park': (car_park, 2, 330, 'preset=outdoor absorb-time=60'),
    'night': (lab('dark'), 1, 150, 'preset=low-light'),
    'gray': (world('stands'), 1, 240, 'preset=outdoor shadows=keep'),
}


def draw_shapes(picture, properties):
    """Draws the zones and lines that `properties` have in shares of the frame."""
    for name, _, shapes in (part.partition('="') for part in properties.split('" ') if '="' in part):
        points = [[round(float(share) * side) for share, side in zip(point.split(','), picture.shape[1::-1])]
                  for point in shapes.rstrip('"').split(':')[1].split()]
        zone = name.endswith('zones')
        cv2.polylines(picture, [np.int32(points)], zone, (255, 120, 40) if zone else (0, 220, 255), 2)


def draw(name, media):
    """Saves the picture of a scene, with a palette, which makes the file small."""
    make, seed, last, properties = PICTURES[name]
    rate, frames = make(seed, media)
    form = 'videoconvert ! video/x-raw,format=GRAY8 ! ' if name == 'gray' else ''
    elements = f'{form}cudadiff {properties} output=overlay ! videoconvert ! video/x-raw,format=I420'
    pipeline = Pipeline((320, 240), elements, 'cudadiff', Gst.SECOND // rate)
    for number, frame in enumerate(frames):
        yuv, _ = to_i420(frame.picture)
        data = pipeline.apply(yuv, frame.lost)
        if number == last:
            break
    pipeline.close()
    for heard in pipeline.heard:
        if heard['event'] not in ('motion', 'none'):
            print(f"{heard['stream-time'] / Gst.SECOND:7.1f} {heard['event']} "
                  f"{heard['id'] if heard.has_field('id') else ''}")
    planes = [cv2.cvtColor(np.frombuffer(part, np.uint8).reshape(360, 320), cv2.COLOR_YUV2BGR_I420)
              for part in (yuv, data)]
    if name == 'gray':
        planes[0] = cv2.cvtColor(cv2.cvtColor(planes[0], cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    draw_shapes(planes[1], properties)
    panels = [cv2.resize(plane, SIZE, interpolation=cv2.INTER_AREA) for plane in planes]
    sheet = np.hstack([panels[0], np.full((SIZE[1], 4, 3), 255, np.uint8), panels[1]])
    sheet = Image.fromarray(sheet[:, :, ::-1]).quantize(96, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    sheet.save(docs / f'scene-{name}.png', optimize=True)
    print(docs / f'scene-{name}.png')


Gst.init(None)
for each in sys.argv[2:] or PICTURES:
    draw(each, sys.argv[1])
