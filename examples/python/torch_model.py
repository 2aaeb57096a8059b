#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a PyTorch model on each frame of a video, and prints its output. On a GPU, each frame stays in GPU memory: the
decoder writes it, cudagaussian denoises it, and PyTorch reads it in place. Without --model, a small network of Sobel
filters finds the part of the picture with the most edges."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import common  # noqa: E402
from common import Gst  # noqa: E402

GRID = 4  # number of cells in each row and in each column


def load(torch, file, device):
    """The model: a TorchScript file, or the network of Sobel filters. It accepts 1×3×H×W from 0 to 1."""
    if file:
        common.uri_of(file)  # explains why it cannot be read
        try:
            return torch.jit.load(file, map_location=device).eval()
        except RuntimeError as error:
            raise common.Failure(
                f"cannot read {file}: it is not a TorchScript model ({str(error).splitlines()[0]})"
            ) from error

    class Edges(torch.nn.Module):
        def __init__(self):
            super().__init__()
            across = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
            self.register_buffer("sobel", torch.stack([across, across.T])[:, None])

        def forward(self, picture):
            gradient = torch.nn.functional.conv2d(picture.mean(1, keepdim=True), self.sobel)
            return torch.nn.functional.adaptive_avg_pool2d(gradient.square().sum(1, keepdim=True).sqrt(),
                                                           GRID).flatten()

    return Edges().to(device).eval()


def rgb_of(torch, frame):
    """Converts a Y'CbCr frame to 1×3×H×W from 0 to 1."""
    planes = [torch.from_dlpack(plane).float() for plane in frame.planes]
    if frame.format in ("NV12", "NV21"):
        chroma = planes[1].unbind(2)
        chroma = chroma[::-1] if frame.format == "NV21" else chroma
    elif frame.format in ("I420", "YV12", "Y42B", "Y444"):
        chroma = planes[:0:-1] if frame.format == "YV12" else planes[1:]
    else:
        raise common.Failure(f"frames of {frame.format} are not Y'CbCr with 8 bits, which this example needs")
    luma = (planes[0] - 16) / 219
    blue, red = (
        torch.nn.functional.interpolate((plane[None, None] - 128) / 224, size=luma.shape)[0, 0] for plane in chroma
    )
    kr, kb = (0.2126, 0.0722) if frame.height >= 720 else (0.299, 0.114)  # BT.709, BT.601
    r, b = luma + 2 * (1 - kr) * red, luma + 2 * (1 - kb) * blue
    g = (luma - kr * r - kb * b) / (1 - kr - kb)
    return torch.stack([r, g, b])[None].clamp(0, 1)


def describe(output, has_model):
    """The text to print for an output of the model."""
    best = int(output.flatten().argmax())
    value = f"{float(output.flatten()[best]):.3f}"
    if has_model:
        return f"output {best} of {output.numel()} is the largest: {value}"
    return f"most edges in row {best // GRID}, column {best % GRID} of {GRID}×{GRID}: {value}"


def run():
    parser = common.Parser(
        description=__doc__,
        usage="%(prog)s [--model FILE.pt] [--device cuda|cpu] [--frames N] [VIDEO]     without a VIDEO: a test picture",
    )
    parser.add_argument("video", nargs="?")
    parser.add_argument("--model", metavar="FILE.pt", help="a TorchScript model that takes 1×3×H×W, from 0 to 1")
    parser.add_argument("--device", choices=("cuda", "cpu"),
                        help="the device to use; by default the GPU if PyTorch finds one")
    parser.add_argument("--frames", type=int, default=0, metavar="N", help="stop after N frames")
    args = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        raise common.Failure(
            "PyTorch is missing: install it for this Python, for example with pip install torch"
        ) from error
    from cudavision import frames

    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise common.Failure("PyTorch finds no GPU: use --device cpu")
    source, settings = "videotestsrc pattern=ball num-buffers=60 ! video/x-raw,format=NV12,width=640,height=360", {}
    if args.video:
        source, settings = f"{common.DECODER} name=file", {"file": {"uri": common.uri_of(args.video)}}
    model = load(torch, args.model, device)
    memory = "(memory:CUDAMemory)" if device == "cuda" else ""
    pipeline = common.parse(
        f"{source} ! cudagaussian sigma=0.8 ! video/x-raw{memory} ! appsink name=sink sync=false max-buffers=4",
        **settings,
    )
    if device == "cuda":
        pipeline.set_context(frames.context())  # the pipeline works in PyTorch's CUDA context
    with torch.inference_mode():
        for count, sample in enumerate(common.samples(pipeline), 1):
            with frames.Frame(sample) as frame:
                output = model(rgb_of(torch, frame))
                print(f"{frame.pts / Gst.SECOND:.3f} s: {describe(output, args.model)}")
            if count == args.frames:
                return


if __name__ == "__main__":
    try:
        common.main(run)
    except (RuntimeError, BufferError, ValueError) as error:  # PyTorch and cudavision raise these
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
