#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the sum and the mean of luma in a rectangle of each frame, from four entries of the frame's
summed-area table."""
import struct

import common
from common import Gst


def run():
    parser = common.Parser(description=__doc__,
                           usage="%(prog)s [FILE [X Y WIDTH HEIGHT]]     without a FILE: a test picture")
    parser.add_argument("file", nargs="?")
    parser.add_argument("rectangle", nargs="*", type=int, default=(10, 20, 30, 40))
    args = parser.parse_args()
    if len(args.rectangle) != 4 or min(args.rectangle[:2]) < 0 or min(args.rectangle[2:]) < 1:
        parser.error(f"a rectangle is X Y WIDTH HEIGHT, not {' '.join(map(str, args.rectangle))}")
    left, top, width, height = args.rectangle

    table = "cudaintegral ! appsink name=sink sync=false caps=video/x-integral,format=U32LE,layout=padded"
    if args.file:
        pipeline = common.parse(f"{common.DECODER} name=file ! videoconvert ! {table}",
                                file={"uri": common.uri_of(args.file)})
    else:
        pipeline = common.parse(f"videotestsrc num-buffers=5 ! video/x-raw,format=NV12 ! {table}")
    for sample in common.samples(pipeline):
        columns, rows = common.size_of(sample)
        if left + width >= columns or top + height >= rows:  # the table has one more column and row than the picture
            raise common.Failure(
                f"the rectangle {left} {top} {width} {height} is not within the picture of {columns - 1}x{rows - 1}")
        buffer = sample.get_buffer()
        _, info = buffer.map(Gst.MapFlags.READ)

        def before(x, y):
            return struct.unpack_from("<I", info.data, 4 * (y * columns + x))[0]

        total = (before(left + width, top + height) - before(left, top + height) - before(left + width, top)
                 + before(left, top))
        total &= 0xFFFFFFFF  # entries wrap in large tables; a sum is still correct if it fits in 32 bits
        print(f"{buffer.pts / Gst.SECOND:.3f} s: sum {total}, mean {total / (width * height):.2f}")
        buffer.unmap(info)


if __name__ == "__main__":
    common.main(run)
