# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs motion detectors over frames, for motion_quality.py and motion_real.py: cudadiff, OpenCV's subtractors, and
motioncells.

Without NumPy, OpenCV or PyGObject, importing this ends the program with status 77 and a sentence.
"""
import json
import os
import sys
import time

try:
    import cv2
    import gi
    import numpy as np
    gi.require_version('Gst', '1.0')
    from gi.repository import Gst
except (ImportError, ValueError) as error:
    print(f'skipped: {error}', file=sys.stderr)
    sys.exit(77)

from motion_score import FLAGGED

GAP = 1          # seconds without motion after which motion has ended
LIMIT = 600      # seconds after which a pipeline counts as hanging; no frame takes nearly as long, even on the busiest
                 # machine


class Failure(Exception):
    """A sentence for the user."""


def need_plugin():
    """Initialises GStreamer. Ends the program with status 77 if cudadiff is missing."""
    Gst.init(None)
    if not Gst.ElementFactory.find('cudadiff'):
        print('skipped: the element cudadiff is not there; set GST_PLUGIN_PATH', file=sys.stderr)
        sys.exit(77)


# --------------------------------------------------------------------------------------------------------------- frames

def to_i420(picture):
    """A picture (uint8, height × width × 3, blue, green, red) as I420 with GStreamer's strides (bytes), and the picture
    that it shows, which all detectors get. An odd width or height is extended by a column or a row."""
    height, width = picture.shape[:2]
    picture = cv2.copyMakeBorder(picture, 0, height & 1, 0, width & 1, cv2.BORDER_REPLICATE)
    even = picture.shape[1]
    yuv = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
    shown = np.ascontiguousarray(cv2.cvtColor(yuv, cv2.COLOR_YUV2BGR_I420)[:height, :width])
    if even % 8 == 0:
        return yuv.tobytes(), shown
    rows = yuv.shape[0] * 2 // 3
    luma, chroma = yuv[:rows], yuv[rows:].reshape(rows, even // 2)
    return b''.join(np.pad(plane, ((0, 0), (0, -plane.shape[1] % 4))).tobytes() for plane in (luma, chroma)), shown


def even(size):
    return size[0] + (size[0] & 1), size[1] + (size[1] & 1)


def through_encoder(pictures, rate):
    """A list of the pictures (uint8, height × width × 3, equal in size, with even sides) after an encoder with about
    0.1 bits per pixel: H.264 or MPEG-4 if GStreamer has it, otherwise JPEG."""
    Gst.init(None)
    height, width = pictures[0].shape[:2]
    kilobits = max(16, int(0.1 * width * height * rate / 1000))
    decoder = 'h264parse ! avdec_h264 max-threads=1'
    chains = {('x264enc', 'avdec_h264'): f'x264enc bitrate={kilobits} threads=1 key-int-max=50 ! {decoder}',
              ('openh264enc', 'avdec_h264'):
                  f'openh264enc bitrate={1000 * kilobits} gop-size=50 multi-thread=1 ! {decoder}',
              ('avenc_mpeg4', 'avdec_mpeg4'): f'avenc_mpeg4 bitrate={1000 * kilobits} ! avdec_mpeg4 max-threads=1'}
    chain = next((chain for names, chain in chains.items() if all(Gst.ElementFactory.find(name) for name in names)),
                 None)
    if chain is None:
        quality = [20 if number % 12 else 15 for number in range(len(pictures))]  # key frames stand out
        coded = [cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, q])[1]
                 for picture, q in zip(pictures, quality)]
        return [cv2.imdecode(code, cv2.IMREAD_COLOR) for code in coded]
    pipeline = Pipeline((width, height), f'{chain} ! videoconvert ! video/x-raw,format=I420', None,
                        int(Gst.SECOND / rate))
    pipeline.source.set_property('block', False)
    for picture in pictures:
        pipeline.push(to_i420(picture)[0])
    pipeline.source.emit('end-of-stream')  # openh264enc prints an error here, which can be ignored
    coded = [cv2.cvtColor(unpadded(pipeline.pull(), width, height), cv2.COLOR_YUV2BGR_I420) for _ in pictures]
    pipeline.close()
    return coded


def unpadded(data, width, height):
    """I420 with GStreamer's strides (bytes) in the layout that OpenCV expects."""
    planes, luma = np.frombuffer(data, np.uint8), (width + 3) & ~3
    chroma = (width // 2 + 3) & ~3
    top = planes[:luma * height].reshape(height, luma)[:, :width]
    rest = planes[luma * height:].reshape(height, chroma)[:, :width // 2]
    return np.concatenate((top.ravel(), rest.ravel())).reshape(height * 3 // 2, width)


# ------------------------------------------------------------------------------------------------------------ pipelines

class Pipeline:
    """An element between an appsrc and an appsink. Frames pass one after the other."""
    STEP = 40 * Gst.MSECOND

    def __init__(self, size, element, message, step=STEP):
        """size: of I420 frames. message: name of the element messages to keep. step: ns between frames."""
        width, height = size
        caps = f'video/x-raw,format=I420,width={width},height={height},framerate={Gst.SECOND}/{step}'
        self.message, self.heard, self.step = message, [], step
        try:
            self.pipeline = Gst.parse_launch(f'appsrc name=in format=time block=true caps={caps} ! {element} ! '
                                             'appsink name=out sync=false max-buffers=2')
        except gi.repository.GLib.Error as error:
            raise Failure(f'{element}: {error.message}') from None
        self.source, self.sink, self.count = self.pipeline.get_by_name('in'), self.pipeline.get_by_name('out'), 0
        self.sample = None
        self.pipeline.set_state(Gst.State.PLAYING)

    def push(self, data, lost=0):
        """Pushes the bytes of a frame. The time of a frame is its number × `step`. lost: frames that are missing before
        it."""
        buffer = Gst.Buffer.new_wrapped(data)
        self.count += lost
        buffer.pts, buffer.duration = self.count * self.step, self.step
        if lost:
            buffer.set_flags(Gst.BufferFlags.DISCONT)
        self.count += 1
        self.source.emit('push-buffer', buffer)

    def pull(self):
        """The next output frame, as bytes."""
        self.sample = self.sink.emit('try-pull-sample', LIMIT * Gst.SECOND)
        self.listen()
        if not self.sample:
            self.close()
            raise Failure(f'no frame came out within {LIMIT} seconds')
        buffer = self.sample.get_buffer()
        return buffer.extract_dup(0, buffer.get_size())

    def apply(self, data, lost=0):
        self.push(data, lost)
        return self.pull()

    def listen(self):
        bus = self.pipeline.get_bus()
        while message := bus.pop_filtered(Gst.MessageType.ELEMENT | Gst.MessageType.ERROR):
            if message.type == Gst.MessageType.ERROR:
                self.close()
                error, details = message.parse_error()
                raise Failure(f'{error.message} ({details})')
            if message.get_structure().get_name() == self.message:
                self.heard.append(message.get_structure())

    def finish(self):
        """Ends the stream, so that all messages are received."""
        self.source.emit('end-of-stream')
        self.sink.emit('try-pull-sample', LIMIT * Gst.SECOND)
        self.listen()
        self.close()

    def close(self):
        self.pipeline.set_state(Gst.State.NULL)


# ------------------------------------------------------------------------------------------------------------ detectors

class Detector:
    """Finds motion in frames. `has_mask`: whether apply() returns a mask. `has_events`: whether the detector reports
    motion itself.

    apply(yuv, picture, lost) takes the next frame as I420 and as BGR, both from to_i420(). It returns the mask (bool,
    height × width) or None. finish() follows the last frame; after an error, close() is called instead. After finish(),
    moving() and motions() return the times of motion. cpu: seconds of CPU time of all threads.
    """
    has_mask = has_events = True

    def __init__(self, step):
        self.step, self.cpu, self.count, self.shares = step, 0.0, 0, []

    def timed(self, yuv, picture, lost=0):
        """Calls apply(), and measures its CPU time."""
        begun = time.process_time()
        mask = self.apply(yuv, picture, lost)
        self.cpu += time.process_time() - begun
        self.shares += [0.0] * lost + [float(mask.mean()) if mask is not None else 0.0]
        self.count += 1 + lost
        return mask

    def finish(self):
        self.close()

    def close(self):
        pass

    def moving(self):
        """The numbers of frames with reported motion; here, frames whose mask is flagged."""
        return {number for number, share in enumerate(self.shares) if share > FLAGGED}

    def motions(self):
        """Intervals (first, last second) of motion. Those less than GAP apart are one."""
        found = []
        for number in sorted(self.moving()):
            now = number * self.step / Gst.SECOND
            if found and now - found[-1][1] <= GAP:
                found[-1][1] = now
            else:
                found.append([now, now])
        return [tuple(motion) for motion in found]


class CudaDiff(Detector):
    """The element of the project: its mask, its objects and its messages.

    properties: of the element. motions() ends with the last motion that the element reports, not with its `gap`.
    """

    def __init__(self, size, properties, backend, step=Pipeline.STEP, metas=False):
        super().__init__(step)
        self.size, self.boxes = size, [] if metas else None
        element = f'cudadiff backend={backend} {properties} output=mask attach-roi={str(metas).lower()}'
        self.pipeline = Pipeline(even(size), element, 'cudadiff', step)

    def apply(self, yuv, _, lost=0):
        width, height = self.size
        data = np.frombuffer(self.pipeline.apply(yuv, lost), np.uint8)
        if self.boxes is not None:
            self.boxes.append([(found.id, *found.box) for found in objects(self.pipeline.sample)
                               if found.id and not found.held])
        stride = (width + 3) & ~3
        return data[:stride * height].reshape(height, stride)[:, :width] > 127

    def finish(self):
        self.pipeline.finish()

    def close(self):
        self.pipeline.close()

    def heard(self, *events):
        return [heard for heard in self.pipeline.heard if heard['event'] in events]

    def moving(self):
        return {heard['timestamp'] // self.step for heard in self.heard('begin', 'motion')}

    def motions(self):
        found = [(heard['began'] / Gst.SECOND, heard['last-motion'] / Gst.SECOND) for heard in self.heard('end')]
        if len(self.heard('begin')) > len(found):
            found.append((self.heard('begin')[-1]['timestamp'] / Gst.SECOND, self.count * self.step / Gst.SECOND))
        return found

    def ids(self):
        """The ids of all objects that entered."""
        return {heard['id'] for heard in self.heard('enter')}


def objects(sample):
    """The objects on a sample, read with the Python package of this project."""
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../gst/python')
    if package not in sys.path:
        sys.path.insert(0, package)
    from cudavision import frames
    return frames.objects(sample)


class Subtractor(Detector):
    """One of OpenCV's background subtractors with its default parameters. Shadows are not foreground."""
    has_events = False

    def __init__(self, make, opening=False, step=Pipeline.STEP):
        super().__init__(step)
        self.subtractor, self.opening = make(), opening

    def apply(self, _, picture, lost=0):
        mask = (self.subtractor.apply(picture) == 255).astype(np.uint8)
        return (cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) if self.opening else mask) > 0


class MotionCells(Detector):
    """GStreamer's motioncells, which reports when motion begins and ends, and has no mask."""
    has_mask = False

    def __init__(self, size, step=Pipeline.STEP):
        super().__init__(step)
        self.pipeline = Pipeline(even(size), 'videoconvert ! motioncells display=false gap=1', 'motion', step)

    def apply(self, yuv, _, lost=0):
        self.pipeline.apply(yuv, lost)

    def finish(self):
        self.pipeline.finish()

    def moving(self):
        moving, began = set(), None
        for heard in self.pipeline.heard:
            if heard.has_field('motion_begin'):
                began = heard['motion_begin'] // self.step
            elif heard.has_field('motion_finished') and began is not None:  # the last frame with motion
                moving.update(range(began, heard['motion_finished'] // self.step + 1))
                began = None
        if began is not None:
            moving.update(range(began, self.count))
        return moving


# --------------------------------------------------------------------------------------------------------------- tables

def shown(value, share=False):
    return ('–' if value is None else f'{100 * value:.1f} %' if share else str(value) if isinstance(value, int)
            else f'{value:.2f}')


def as_markdown(rows):
    lines = ['| ' + ' | '.join(row) + ' |' for row in rows]
    return '\n'.join([lines[0], '| ' + ' | '.join(['---'] * len(rows[0])) + ' |'] + lines[1:]) + '\n'


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def write_results(rows, args, record):
    """Prints a table. Writes it to args.markdown, and `record` to args.json, if these are given."""
    print(as_text(rows))
    if args.markdown:
        with open(args.markdown, 'w', encoding='utf-8') as file:
            file.write(as_markdown(rows))
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump(record, file, indent=1, ensure_ascii=False)
