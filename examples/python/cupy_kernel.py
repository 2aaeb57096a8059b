#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Puts a CuPy kernel between two elements: it solarizes the luma of each frame in place on the GPU, and no frame is
copied. With --device cpu, NumPy does the same with frames in system memory."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import common  # noqa: E402
from common import Gst  # noqa: E402

WITH_LUMA = ("GRAY8", "NV12", "NV21", "I420", "YV12", "Y42B", "Y444")


def solarizer(device, threshold):
    """Returns a function that solarizes the luma of a frame in place."""
    if device == "cpu":
        import numpy

        def solarize(frame):
            luma = numpy.asarray(frame.planes[0])
            numpy.subtract(255, luma, out=luma, where=luma > threshold)

        return solarize
    import cupy

    kernel = cupy.ElementwiseKernel("uint8 sample, uint8 threshold", "uint8 result",
                                    "result = sample > threshold ? 255 - sample : sample", "solarize")

    def solarize(frame):
        luma = cupy.from_dlpack(frame.planes[0])
        kernel(luma, threshold, luma)

    return solarize


def run():
    parser = common.Parser(description=__doc__,
                           usage="%(prog)s [--device cuda|cpu] [--threshold LEVEL] VIDEO OUTPUT.avi")
    parser.add_argument("video")
    parser.add_argument("output")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="the device to use (cuda)")
    parser.add_argument("--threshold", type=int, default=128, metavar="LEVEL",
                        help="luma above this value is inverted, 0 to 255 (128)")
    args = parser.parse_args()
    if not 0 <= args.threshold <= 255:
        parser.error(f"the threshold is 0 to 255, not {args.threshold}")
    try:
        solarize = solarizer(args.device, args.threshold)
    except ImportError as error:
        name = "NumPy" if args.device == "cpu" else "CuPy"
        raise common.Failure(
            f"{name} is missing: install it for this Python, for example with pip install "
            f"{'numpy' if args.device == 'cpu' else 'cupy-cuda13x, or use --device cpu'}"
        ) from error
    from cudavision import frames

    memory = "(memory:CUDAMemory)" if args.device == "cuda" else ""
    # The sink must not keep frames: a frame can be changed in place only if nobody else has it.
    decoder = common.parse(
        f"{common.DECODER} name=file ! cudagaussian sigma=0.8 ! video/x-raw{memory} ! "
        "appsink name=sink sync=false max-buffers=4 enable-last-sample=false",
        file={"uri": common.uri_of(args.video)},
    )
    with common.whole(args.output) as stream:
        encoder = common.parse(
            "appsrc name=source format=time block=true max-bytes=100000000 ! cudaconvolve preset=sharpen "
            "! video/x-raw ! videoconvert ! jpegenc ! avimux ! filesink name=out",
            out={"location": common.location_of(stream)},
        )
        if args.device == "cuda":
            for pipeline in (decoder, encoder):
                pipeline.set_context(frames.context())  # all work happens in CuPy's CUDA context
        source, bus, count = encoder.get_by_name("source"), encoder.get_bus(), 0
        try:
            for sample in common.samples(decoder):
                if count == 0:
                    source.set_property("caps", sample.get_caps())
                    encoder.set_state(Gst.State.PLAYING)
                # As in frames.pull(): otherwise the sink keeps the first frame, which then cannot be changed.
                decoder.get_by_name("sink").emit("try-pull-preroll", 0)
                with frames.Frame(sample, writable=True) as frame:
                    if frame.format not in WITH_LUMA:
                        raise common.Failure(
                            f"frames of {frame.format} have no plane of luma with 8 bits, which this example changes"
                        )
                    solarize(frame)
                if source.emit("push-buffer", sample.get_buffer()) != Gst.FlowReturn.OK:
                    break  # the bus has the reason
                count += 1
            source.emit("end-of-stream")
            if count:
                message = bus.timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
                if message.type == Gst.MessageType.ERROR:
                    raise common.Failure(f"cannot write {args.output}: {common.text_of(message)}")
        finally:
            encoder.set_state(Gst.State.NULL)
    print(f"{count} frames")


if __name__ == "__main__":
    try:
        common.main(run)
    except (RuntimeError, BufferError, ValueError) as error:  # CuPy and cudavision raise these
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
