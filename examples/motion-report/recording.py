# SPDX-License-Identifier: LGPL-2.1-or-later
"""The data that the page draws over the clip, in a compact form that streams to disk: places of objects, masks and
histograms.

A recording is a series of chunks, one for each minute of the clip. The page inflates only the chunk that it shows, so
ten hours take as much memory as a minute, in this program and in the browser. A chunk is deflated (zlib),
little-endian, without gaps; all times are milliseconds in the minute:
  uint32  the numbers of places, masks and histograms; width and height of a mask
  places      ids uint32…; times uint16…; x, y, width and height uint16… (pixels of the clip), each in its own row
  masks       times uint16…
  histograms  times uint16…
  masks       one bit per cell, the highest bit first, rows joined; each mask begins with a new byte
  histograms  BINS × uint8 each, where 255 is the highest bar"""
import base64
import tempfile
import threading
import zlib

import numpy

MINUTE = 60.0
BINS = 64
MOST = 24 * 2 ** 20  # approximate limit for the bytes of all chunks of a page; a longer recording is thinned
STEP = 0.1  # seconds between two samples of objects and of the mask


class Chunk:
    def __init__(self, minute):
        self.minute, self.places, self.masks, self.bars, self.shape = minute, [], [], [], (0, 0)

    def pack(self):
        """The bytes of the chunk, and the number of bytes for its masks."""
        def milliseconds(rows):
            times = 1000 * numpy.array([row[0] for row in rows], float) - 1000 * MINUTE * self.minute
            return times.round().clip(0, 65535)

        boxes = numpy.array([row[2] for row in self.places], numpy.int64).reshape(-1, 4).clip(0, 65535)
        parts = [numpy.array([len(self.places), len(self.masks), len(self.bars), *self.shape], "<u4"),
                 numpy.array([row[1] for row in self.places], "<u4"),
                 *(row.astype("<u2") for row in (milliseconds(self.places), *boxes.T, milliseconds(self.masks),
                                                 milliseconds(self.bars)))]
        before, bars = b"".join(part.tobytes() for part in parts), b"".join(row[1] for row in self.bars)
        rest = len(zlib.compress(before + bars, 6)) if self.masks else 0
        data = zlib.compress(b"".join([before, *(row[1] for row in self.masks), bars]), 6)
        return data, max(0, len(data) - rest) if self.masks else 0


class Recorder:
    """Collects samples in chronological order, and writes chunks to an unnamed file in `folder`. Samples of one kind
    may arrive later than others, so the last two chunks are open. Times are stream times in seconds. Several threads
    may use it. It also counts how many times each cell of the mask moved: `heat`, an array with the shape of a mask."""

    def __init__(self, folder):
        self.file, self.index, self.open, self.heat = tempfile.TemporaryFile(dir=folder), [], {}, None
        self.masks, self.lock = 0, threading.Lock()  # bytes of masks in all chunks

    def _at(self, time):
        minute = max(0, int(time / MINUTE), min(self.open) if len(self.open) > 1 else 0)  # earlier chunks are written
        if minute not in self.open:
            self.open[minute] = Chunk(minute)
            self._write(2)
        return self.open[minute]

    def place(self, time, number, box):
        with self.lock:
            self._at(time).places.append((time, number, box))

    def mask(self, time, moving):
        """`moving`: a two-dimensional array of bool. A mask without motion is kept only after one with motion."""
        if self.heat is None:
            self.heat = numpy.zeros(moving.shape, numpy.uint32)
        if moving.shape != self.heat.shape:  # the size of the clip changed
            return
        with self.lock:
            chunk = self._at(time)
            chunk.shape = moving.shape[::-1]
            if moving.any():
                self.heat += moving
                chunk.masks.append((time, numpy.packbits(moving).tobytes()))
            elif chunk.masks and any(chunk.masks[-1][1]):
                chunk.masks.append((time, bytes(-(-moving.size // 8))))

    def histogram(self, time, counts):
        """`counts`: any number of bins that is a multiple of BINS."""
        bars = numpy.array(list(counts), float).reshape(BINS, -1).sum(1)  # asarray() is slow with Gst.ValueArray
        with self.lock:
            self._at(time).bars.append((time,
                                        (bars * (255 / max(bars.max(), 1))).round().astype(numpy.uint8).tobytes()))

    def finish(self):
        """Writes the last chunks. The next sample begins a new one."""
        with self.lock:
            self._write(0)

    def _write(self, left):
        """Writes the oldest open chunks, until `left` of them remain."""
        for minute in sorted(self.open)[:len(self.open) - left]:
            data, masks = self.open.pop(minute).pack()
            self.masks += masks
            self.index.append((minute, self.file.seek(0, 2), len(data)))
            self.file.write(data)

    @property
    def size(self):
        return sum(length for _, _, length in self.index)

    @property
    def keep(self):
        """The factor by which masks with motion are thinned for the page, so that all chunks have about MOST bytes: 1,
        2, 4 … 64. All other data are kept."""
        keep = 1
        while self.size - self.masks + self.masks / keep > MOST and keep < 64:
            keep *= 2
        return keep

    def chunks(self):
        """Each chunk as (minute, bytes), without the masks that the page does not get."""
        keep = self.keep
        for minute, offset, length in self.index:
            self.file.seek(offset)
            data = self.file.read(length)
            yield minute, thinned(data, keep) if keep > 1 else data

    def base64(self):
        """The chunks as one text, and an index of (minute, first character, number of characters)."""
        texts, index, offset = [], [], 0
        for minute, data in self.chunks():
            texts.append(base64.b64encode(data).decode())
            index.append((minute, offset, len(texts[-1])))
            offset += len(texts[-1])
        return "".join(texts), index


def thinned(data, keep):
    """A chunk with every `keep`-th mask, and all masks without motion, because these end the previous masks."""
    data = zlib.decompress(data)
    places, masks, bars, width, height = (int(number) for number in numpy.frombuffer(data, "<u4", 5))
    times = 20 + places * 14
    bits = times + 2 * (masks + bars)
    size = -(-width * height // 8)
    kept = [i for i in range(masks) if i % keep == 0 or not any(data[bits + size * i:bits + size * (i + 1)])]
    head = numpy.array([places, len(kept), bars, width, height], "<u4").tobytes()
    return zlib.compress(b"".join([head, data[20:times], *(data[times + 2 * i:times + 2 * i + 2] for i in kept),
                                   data[times + 2 * masks:bits], *(data[bits + size * i:bits + size * (i + 1)]
                                                                   for i in kept), data[bits + size * masks:]]), 6)
