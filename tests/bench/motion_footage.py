# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads footage with truth in the layouts of CDnet, Wallflower, MOT and visits.csv, for motion_real.py. The docstrings
of the readers describe the layouts. Frame numbers count from 0; times are seconds."""
import configparser
import csv
import dataclasses
import itertools
import os
import re

import numpy as np

from motion_run import Failure, cv2

PICTURES, CLIPS = ('.jpg', '.jpeg', '.png', '.bmp'), ('.avi', '.mp4', '.mkv', '.mov', '.webm')


@dataclasses.dataclass
class Footage:
    """Frames and their truth.

    source: a clip, or the sorted paths of pictures. rate: frames per second. masks: frame number → Labels, for labelled
    frames. boxes: frame number → list of (id, left, top, width, height). visits: intervals (from, to) in which somebody
    is in the picture. Unknown truth is None. last: the number of the last frame needed, or None. first: earlier frames
    of the source are skipped and not counted.
    """
    name: str
    source: object
    rate: float
    masks: dict = None
    boxes: dict = None
    visits: list = None
    last: int = None
    first: int = 0

    def frames(self):
        """Generates the pictures: uint8, height × width × 3, blue, green, red."""
        if isinstance(self.source, str):
            pictures = clip_frames(self.source)
        else:
            pictures = (read_picture(path) for path in self.source)
        size = None
        for number, picture in enumerate(itertools.islice(pictures, self.first, None)):
            if size and picture.shape != size:
                raise Failure(
                    f'{self.name}: frame {number + 1} is {sides(picture)}, and the first one {size[1]}×{size[0]}')
            size = picture.shape
            yield picture
            if number == self.last:
                return

    def piece(self, first, frames):
        """Footage with boxes starting at frame `first`, with at most `frames` frames."""
        boxes = {number - first: boxes for number, boxes in self.boxes.items() if first <= number < first + frames}
        return dataclasses.replace(self, boxes=boxes, first=first, last=frames - 1)


@dataclasses.dataclass
class Labels:
    """The labels of a frame by pixel: bool, height × width, or None for an absent shadow. unjudged: pixels that do not
    count. unclear: pixels that might show an object; a frame with any is not empty."""
    truth: np.ndarray
    unjudged: np.ndarray
    unclear: np.ndarray
    shadow: np.ndarray = None


def sides(picture):
    return f'{picture.shape[1]}×{picture.shape[0]}'


def read_picture(path, flags=cv2.IMREAD_COLOR, size=None):
    """size: the height and width that it must have."""
    picture = cv2.imread(path, flags)
    if picture is None:
        raise Failure(f'{path} is no picture that OpenCV reads')
    if size and picture.shape[:2] != size:
        raise Failure(f'{path} is {sides(picture)}, and the frames {size[1]}×{size[0]}')
    return picture


def clip_frames(path):
    clip, some = cv2.VideoCapture(path), False
    while True:
        good, picture = clip.read()
        if not good:
            break
        some = True
        yield picture
    if not some:
        raise Failure(f'{path} has no frames that OpenCV decodes')


def rate_of(path):
    rate = cv2.VideoCapture(path).get(cv2.CAP_PROP_FPS)
    if not rate > 0:
        raise Failure(f'{path} is no clip that OpenCV reads')
    return rate


def number_of(path):
    """The last number in the name of a file."""
    numbers = re.findall(r'\d+', os.path.splitext(os.path.basename(path))[0])
    if not numbers:
        raise Failure(f'{path} has no number in its name')
    return int(numbers[-1])


def pictures_in(folder, skip=()):
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.lower().endswith(PICTURES)]
    return sorted((path for path in paths if path not in skip and re.search(r'\d', os.path.basename(path))),
                  key=number_of)


# -------------------------------------------------------------------------------------------------------------- layouts

class CdnetLabels(dict):
    """Frame number → Labels, read on access. Labels: 0 still, 50 shadow, 85 outside, 170 unknown, 255 moving."""

    def __init__(self, paths, roi):
        super().__init__(paths)
        self.roi = roi

    def __getitem__(self, number):
        label = read_picture(super().__getitem__(number), cv2.IMREAD_GRAYSCALE, self.roi.shape)
        outside = (label == 85) | ~self.roi
        return Labels(label == 255, outside | (label == 170), (label == 170) & ~outside, label == 50)


def cdnet(folder, rate):
    """input/in000001.jpg and so on, groundtruth/gt000001.png, ROI.bmp or ROI.jpg (black: not judged), temporalROI.txt
    (first and last judged frame, counted from 1). Some frames of the truth may be missing, but not all."""
    frames = pictures_in(os.path.join(folder, 'input'))
    if not frames:
        raise Failure(f'{folder}/input has no pictures')
    truth_folder = os.path.join(folder, 'groundtruth')
    if not os.path.isdir(truth_folder):
        raise Failure(f'{folder} has input/ and no groundtruth/')
    size = read_picture(frames[0]).shape[:2]
    regions = [os.path.join(folder, name) for name in ('ROI.bmp', 'ROI.jpg', 'ROI.png')]
    roi = next((path for path in regions if os.path.exists(path)), None)
    inside = read_picture(roi, cv2.IMREAD_GRAYSCALE, size) > 127 if roi else np.ones(size, bool)
    first, last = number_of(frames[0]), number_of(frames[-1])
    times = os.path.join(folder, 'temporalROI.txt')
    if os.path.exists(times):
        with open(times, encoding='utf-8') as file:
            first, last = map(int, file.read().split())
    at = {number_of(path): index for index, path in enumerate(frames)}
    labelled = {number_of(path): path for path in pictures_in(truth_folder)}
    paths = {at[number]: path for number, path in labelled.items() if first <= number <= last and number in at}
    if not paths:
        raise Failure(f'{truth_folder} has no picture of a frame from {first} to {last}')
    return Footage(name_of(folder), frames, rate, masks=CdnetLabels(paths, inside), last=max(paths))


def wallflower(folder, rate):
    """b00000.bmp and so on, and hand_segmented_00247.BMP: white where frame 247 shows an object."""
    truth = next(os.path.join(folder, name) for name in sorted(os.listdir(folder))
                 if name.lower().startswith('hand_segmented'))
    frames = pictures_in(folder, (truth,))
    at = {number_of(path): index for index, path in enumerate(frames)}
    if number_of(truth) not in at:
        raise Failure(f'{folder} has no frame {number_of(truth)}, which {os.path.basename(truth)} labels')
    size = read_picture(frames[0]).shape[:2]
    label = read_picture(truth, cv2.IMREAD_GRAYSCALE, size)
    nothing = np.zeros(size, bool)
    number = at[number_of(truth)]
    return Footage(name_of(folder), frames, rate, masks={number: Labels(label > 127, nothing, nothing)}, last=number)


def read_boxes(path):
    """Lines of frame (counted from 1), id, left, top, width, height, and whether it counts (1 or 0)."""
    boxes = {}
    with open(path, encoding='utf-8') as file:
        for row in filter(None, csv.reader(file)):
            frame, number, left, top, width, height = map(float, row[:6])
            if len(row) < 7 or float(row[6]) != 0:
                boxes.setdefault(int(frame) - 1, []).append((int(number), left, top, width, height))
    if not boxes:
        raise Failure(f'{path} has no boxes')
    return boxes


def mot(path, clips, rate):
    """NAME.gt.txt for the clip NAME.avi in one of the folders; gt.txt beside the only clip of its folder; or gt/gt.txt
    beside img1/."""
    folder, name = os.path.split(path)
    boxes = read_boxes(path)
    if name != 'gt.txt':
        clip = clips.get(name[:-len('.gt.txt')])
        if clip is None:
            raise Failure(f'{path} has no clip of its name in these folders')
        return Footage(os.path.basename(clip), clip, rate_of(clip), boxes=boxes)
    if os.path.basename(folder) == 'gt':
        folder = os.path.dirname(folder)
    if os.path.isdir(os.path.join(folder, 'img1')):
        sequence = configparser.ConfigParser()
        sequence.read(os.path.join(folder, 'seqinfo.ini'))
        rate = sequence.getfloat('Sequence', 'frameRate', fallback=rate)
        return Footage(name_of(folder), pictures_in(os.path.join(folder, 'img1')), rate, boxes=boxes)
    beside = [os.path.join(folder, file) for file in sorted(os.listdir(folder)) if file.lower().endswith(CLIPS)]
    if len(beside) != 1:
        raise Failure(f'{path} must be beside one clip or img1/, and there are {len(beside)} clips')
    return Footage(os.path.basename(beside[0]), beside[0], rate_of(beside[0]), boxes=boxes)


def visits(path, clips):
    """A table with the columns clip, from and to (seconds), which say when somebody is in the picture. A clip with a
    row without times is empty from start to end."""
    found = {}
    with open(path, encoding='utf-8', newline='') as file:
        rows = csv.DictReader(file)
        if not {'clip', 'from', 'to'} <= set(rows.fieldnames or []):
            raise Failure(f'{path} must have the columns clip, from and to')
        for row in rows:
            times = found.setdefault(row['clip'], [])
            if not row['from'] and not row['to']:
                continue
            begin, end = float(row['from']), float(row['to'])
            if end < begin:
                raise Failure(f'{path}: line {rows.line_num} ends before it begins')
            times.append((begin, end))
    if not found:
        raise Failure(f'{path} has no visits')
    for name, times in found.items():
        clip = os.path.join(os.path.dirname(path), name)
        clip = clip if os.path.exists(clip) else clips.get(os.path.splitext(name)[0])
        if clip is None:
            raise Failure(f'{path}: the clip {name} is not there')
        yield Footage(name, clip, rate_of(clip), visits=sorted(times))


def name_of(folder):
    return os.path.basename(os.path.abspath(folder))


def find(folders, rate):
    """All footage in the folders and their subfolders. rate: frames per second of pictures without a rate. Raises
    Failure if a layout is invalid, or if there is no footage."""
    clips, found, tables = {}, [], []
    for top in folders:
        if not os.path.isdir(top):
            raise Failure(f'{top} is not a folder')
        for folder, below, files in os.walk(top):
            below.sort()
            for name in sorted(files):
                if name.lower().endswith(CLIPS):
                    clips.setdefault(os.path.splitext(name)[0], os.path.join(folder, name))
                if name == 'visits.csv' or name == 'gt.txt' or name.endswith('.gt.txt'):
                    tables.append(os.path.join(folder, name))
            if 'input' in below:
                found.append(cdnet(folder, rate))
                below[:] = [name for name in below if name not in ('input', 'groundtruth')]
            elif any(name.lower().startswith('hand_segmented') for name in files):
                found.append(wallflower(folder, rate))
    for path in dict.fromkeys(os.path.realpath(path) for path in tables):
        found += visits(path, clips) if path.endswith('visits.csv') else [mot(path, clips, rate)]
    if not found:
        raise Failure(f'no footage with truth in {", ".join(folders)}: see --help for the layouts')
    return found
