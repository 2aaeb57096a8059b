# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whole and damaged clips of each kind, for the tests of examples/."""
import functools
import pathlib
import random
import tempfile

import programs

FRAMES, RATE = 100, 10
# A still picture, so that all motion is false. Its 25 colours make damage visible.
STILL = "videotestsrc pattern=smpte100"
MOVING = "videotestsrc pattern=ball animation-mode=frames"
H264 = "openh264enc gop-size=25 bitrate=1500000 ! h264parse"
H265 = "x265enc key-int-max=25 bitrate=1500 speed-preset=ultrafast ! h265parse"
MPEG4 = "avenc_mpeg4 bitrate=2000000 gop-size=25"
MUXERS = {"mp4": "mp4mux", "mov": "qtmux", "mkv": "matroskamux", "ts": "mpegtsmux", "avi": "avimux"}
# The kinds of clips and their encoders.
KINDS = {
    "h264.mp4": H264, "h264.mkv": H264, "h264.ts": H264,
    "h264.avi": H264 + " ! video/x-h264,stream-format=byte-stream",
    "h265.mp4": H265, "h265.mkv": H265, "h265.ts": H265,
    "mpeg4.avi": MPEG4, "mpeg4b.avi": MPEG4 + " max-bframes=2",
    "jpeg.avi": "jpegenc", "jpeg.mkv": "jpegenc", "jpeg.mov": "jpegenc",
    "vp8.mkv": "vp8enc deadline=1 keyframe-max-dist=25", "vp9.mkv": "vp9enc deadline=1 cpu-used=8 keyframe-max-dist=25",
}
INDEXED = [kind for kind in KINDS if kind.endswith(("mp4", "mov", "avi"))]


@functools.cache
def encoded(kind, source):
    """The bytes of a clip of FRAMES frames; None if an encoder is not installed."""
    elements = [part.split()[0] for part in KINDS[kind].split(" ! ") if not part.startswith("video/")]
    if not programs.has(*elements):
        return None
    with tempfile.NamedTemporaryFile() as file:
        programs.launch(f"{source} num-buffers={FRAMES} ! video/x-raw,format=I420,width=320,height=240,"
                        f"framerate={RATE}/1 ! {KINDS[kind]} ! {MUXERS[kind.partition('.')[2]]} ! filesink",
                        location=file.name)
        return pathlib.Path(file.name).read_bytes()


def media_of(data, kind):
    """The range of a file that contains the frames, without the index."""
    if kind.endswith((".mp4", ".mov")):
        begin = data.index(b"mdat")
        return begin + 12, begin - 4 + int.from_bytes(data[begin - 4:begin], "big")
    if kind.endswith(".avi"):
        return data.index(b"movi") + 8, data.rindex(b"idx1")
    if kind.endswith(".mkv"):
        return data.index(b"\x1f\x43\xb6\x75") + 32, data.rindex(b"\x1c\x53\xbb\x6b")  # a cluster; the index
    return 188 * 8, len(data)


def damaged(data, kind, how, where, share=0.1, seed=1):
    """`data` with damage starting at `where` (a share of the frames): zeros, flipped bits, or a missing part."""
    begin, end = media_of(data, kind)
    at, length = begin + int((end - begin) * where), int((end - begin) * share)
    if how == "zeros":
        return data[:at] + bytes(length) + data[at + length:]
    if how == "cut":
        return data[:at] + data[at + length:]
    changed, noise = bytearray(data), random.Random(seed)
    for _ in range(max(20, length // 100)):
        changed[noise.randrange(at, at + length)] ^= 1 << noise.randrange(8)
    return bytes(changed)


def write(path, data):
    pathlib.Path(path).write_bytes(data)
    return str(path)
