# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests motion_real.py with tiny footage of each layout: a white box on gray, compared with the first frame, so that
every figure is known."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import motion_run
import motion_tracks
import numpy as np
from motion_run import cv2

SCRIPT = 'motion_real.py'
EXACT = 'reference=first threshold=20 open-radius=0 light-change-ratio=0 cell-size=8 track-min-frames=1 track-hold=0.1'
WIDTH, HEIGHT = 64, 48


def picture(*boxes):
    """Gray, with white boxes (left, top, width, height)."""
    drawn = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
    for x, y, w, h in boxes:
        drawn[y:y + h, x:x + w] = 250
    return drawn


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(content, str):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(content)
    elif not cv2.imwrite(path, content):
        raise OSError(path)


def write_clip(folder, name, pictures, rate=10):
    os.makedirs(folder, exist_ok=True)
    clip = cv2.VideoWriter(os.path.join(folder, name), cv2.VideoWriter_fourcc(*'MJPG'), rate, (WIDTH, HEIGHT))
    for each in pictures:
        clip.write(each)
    clip.release()


def results_of(script, *options, **environment):
    """Runs a program of this folder. Returns its finished process, the results in its JSON, and its page."""
    with tempfile.TemporaryDirectory() as top:
        out, page = os.path.join(top, 'out.json'), os.path.join(top, 'out.md')
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
        done = subprocess.run([sys.executable, script, *options, f'--json={out}', f'--markdown={page}'],
                              capture_output=True, text=True, check=False, env={**os.environ, **environment})
        if done.returncode != 0:
            raise AssertionError(f'exit status {done.returncode}: {done.stderr}')
        with open(out, encoding='utf-8') as file, open(page, encoding='utf-8') as markdown:
            return done, json.load(file)['results'], markdown.read()


def write_cdnet(folder):
    """Twelve frames, with a box of 16×16 starting with the fifth. Frames 3 to 10 are judged: two without the box, six
    with it. In the box, 4 rows are labelled shadow, 2 columns unknown and 1 column outside. 3 columns to its right are
    also labelled moving."""
    for number in range(1, 13):
        write(folder, f'input/in{number:06}.png', picture(*([(16, 16, 16, 16)] if number >= 5 else [])))
        label = np.zeros((HEIGHT, WIDTH), np.uint8)
        if number >= 5:
            label[16:32, 16:35] = 255
            label[28:32, 16:32] = 50
            label[16:32, 16:18] = 170
        write(folder, f'groundtruth/gt{number:06}.png', label)
    roi = np.full((HEIGHT, WIDTH), 255, np.uint8)
    roi[:, 18] = 0
    write(folder, 'ROI.bmp', roi)
    write(folder, 'temporalROI.txt', '3 10\n')


def write_wallflower(folder):
    """Eight frames. In frame 6 the label of the box is 4 rows too high."""
    for number in range(8):
        write(folder, f'b{number:05}.bmp', picture(*([(32, 16, 16, 16)] if number >= 3 else [])))
    label = np.zeros((HEIGHT, WIDTH), np.uint8)
    label[12:28, 32:48] = 255
    write(folder, 'hand_segmented_00006.bmp', label)


def write_mot(folder):
    """Two boxes in frames 2 to 11. The label of the second one is shifted by 6 of its 16 columns, so its intersection
    over union is 10/22. A third one does not count."""
    lines = []
    for number in range(1, 12):
        boxes = [] if number == 1 else [(0, 0, 16, 16), (32, 24, 16, 16)]
        write(folder, f'img1/{number:06}.png', picture(*boxes))
        if boxes:
            lines += [f'{number},1,0,0,16,16,1,-1,-1,-1', f'{number},2,38,24,16,16,1,-1,-1,-1',
                      f'{number},3,0,30,8,8,0,-1,-1,-1']
    write(folder, 'gt/gt.txt', '\n'.join(lines) + '\n')
    write(folder, 'seqinfo.ini', '[Sequence]\nframeRate=10\n')


def write_visits(folder):
    """Two visits at 2.0–3.9 and 6.0–7.9 s of 12 s. The table gives 6.5 s for the start of the second and 4.1 s for the
    end of the first. There is also half a second of motion without a visit."""
    seen = [*range(20, 40), *range(60, 80), *range(100, 105)]
    write_clip(folder, 'room.avi', [picture(*([(16, 16, 24, 24)] if number in seen else [])) for number in range(120)])
    write_clip(folder, 'nobody.avi', [picture()] * 20)
    write(folder, 'visits.csv',
          'clip,visit,from,to,what\nroom.avi,1,2.0,4.1,first\nroom.avi,2,6.5,7.9,second\nnobody.avi,,,,\n')
    write_clip(folder, 'walk.avi', [picture(*([(16, 16, 24, 24)] if number else [])) for number in range(10)])
    write(folder, 'walk.gt.txt', ''.join(f'{number},1,16,16,24,24,1\n' for number in range(2, 11)))


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as top:
            makers = {'highway': write_cdnet, 'waving': write_wallflower, 'crowd': write_mot, 'door': write_visits}
            for name, make in makers.items():
                make(os.path.join(top, name))
            cls.done, results, cls.page = results_of(SCRIPT, top, f'--properties={EXACT}', '--peers=MOG2,CNT')
        cls.results = {name: methods[EXACT] for name, methods in results.items()}

    def check(self, footage, **wanted):
        found = {key: self.results[footage].get(key) for key in wanted}
        self.assertEqual({key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()},
                         wanted)

    def test_cdnet(self):
        # In each frame, 13 columns × 12 rows are hits (3 of 16 columns are not judged), 13 × 4 pixels are false and in
        # shadow, and 3 columns × 16 rows are missed.
        hits, false, missed = 13 * 12, 13 * 4, 3 * 16
        self.check('highway', precision=round(hits / (hits + false), 6), recall=round(hits / (hits + missed), 6),
                   f=round(2 * hits / (2 * hits + false + missed), 6), shadow=1.0, flagged='0 of 2')
        # Inner pixels are the eight rows of the first of these columns that have the label above, below and to the
        # left.
        self.check('highway', outline=round((missed - 8) / missed, 6))

    def test_wallflower(self):
        hits, false = 12 * 16, 4 * 16
        # Near the outline, the upper two of the four missed rows are missed, and the two outer columns on each side.
        self.check('waving', f=round(2 * hits / (2 * hits + 2 * false), 6), recall=0.75, precision=0.75,
                   outline=0.5 + 0.5 * 4 / 16)
        self.assertNotIn('shadow', self.results['waving'])

    def test_visits(self):
        # False motion is the half second before the second visit begins in the table, and the motion without a visit.
        self.check('room.avi', found='2 of 2', extra=1, begin_error=0.25, end_error=0.1, ghost=0.9, missed=0.2, ids=3)
        empty = len([now for now in np.arange(120) / 10 if not (1.0 <= now <= 5.1 or 5.5 <= now <= 8.9)])
        self.check('room.avi', flagged=f'5 of {empty}')
        self.check('nobody.avi', found='0 of 0', extra=0, ghost=0, flagged='0 of 20', ids=0)

    @unittest.skipIf('motmetrics' in motion_tracks.missing, 'there is no motmetrics')
    def test_mot(self):
        self.check('crowd', **{'mota_0.3': 1.0, 'idf1_0.3': 1.0, 'switches_0.3': 0, 'ids': 2})
        # Half of the boxes are missed, and half of the found boxes are false.
        self.check('crowd', **{'mota_0.5': 0.0, 'idf1_0.5': 0.5, 'switches_0.5': 0})
        self.check('walk.avi', **{'mota_0.5': 1.0, 'idf1_0.5': 1.0, 'ids': 1})

    def test_tables(self):
        self.assertIn('| highway | F |', self.page)
        self.assertIn('room.avi', self.done.stdout)
        self.assertGreater(self.results['highway']['cpu'], 0)
        if not hasattr(cv2, 'bgsegm'):
            self.assertIn('skipped: this OpenCV has no CNT', self.done.stderr)
        for name in motion_tracks.missing:
            self.assertIn(f'PyPI: {name}', self.done.stderr)


class Starts(unittest.TestCase):
    def test_means_of_pieces(self):
        """An object in the first frame of a piece is not a change: only the first of three pieces shows a change."""
        with tempfile.TemporaryDirectory() as top:
            write_mot(os.path.join(top, 'crowd'))
            write_visits(os.path.join(top, 'door'))
            _, results, _ = results_of(SCRIPT, top, f'--properties={EXACT}', '--peers=', '--starts=0,3,4', '--frames=5')
        results = {name: methods[EXACT] for name, methods in results.items()}
        self.assertEqual(set(results), {'crowd', 'walk.avi'})
        self.assertAlmostEqual(results['crowd']['ids'], 2 / 3)
        if 'motmetrics' not in motion_tracks.missing:
            self.assertAlmostEqual(results['crowd']['mota_0.3'], 1 / 3)


class Parts(unittest.TestCase):
    def test_without_the_plugin(self):
        top = self.enterContext(tempfile.TemporaryDirectory())
        with self.assertRaisesRegex(AssertionError, 'status 77: .* set GST_PLUGIN_PATH'):
            results_of(SCRIPT, top, GST_PLUGIN_PATH=top, GST_PLUGIN_PATH_1_0=top, GST_REGISTRY=f'{top}/registry.bin')

    def test_truth_beyond_the_clip(self):
        top = self.enterContext(tempfile.TemporaryDirectory())
        write_clip(top, 'a.avi', [picture()] * 3)
        write(top, 'a.gt.txt', '5,1,0,0,5,5,1\n')
        sentence = 'status 1: (?s:.*)\na.avi has 3 frames, and the truth is of frame 5 too\n$'
        with self.assertRaisesRegex(AssertionError, sentence):
            results_of(SCRIPT, top, '--peers=')

    def test_i420_of_any_size(self):
        """GStreamer's strides: the rows of a plane begin at multiples of 4 bytes."""
        for width, height in ((64, 48), (66, 48), (70, 46), (65, 47)):
            ramp = np.dstack([np.tile(np.arange(width, dtype=np.uint8), (height, 1))] * 3)
            data, shown = motion_run.to_i420(ramp)
            even = motion_run.even((width, height))
            luma, chroma = (even[0] + 3) & ~3, (even[0] // 2 + 3) & ~3
            self.assertEqual((len(data), shown.shape), (luma * even[1] + chroma * even[1], ramp.shape))
            self.assertLessEqual(np.abs(shown.astype(int) - ramp).max(), 2)
            back = cv2.cvtColor(motion_run.unpadded(data, *even), cv2.COLOR_YUV2BGR_I420)[:height, :width]
            self.assertTrue(np.array_equal(back, shown))


if __name__ == '__main__':
    motion_run.need_plugin()
    unittest.main(verbosity=2)
