#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests cudavision.frames with frames in system memory, which need no GPU:  frames_test.py [TEST …]

Tests the layouts of all formats compared with GstVideoInfo, lifetimes, DLPack in both directions, results of
cudahistogram, cudaintegral and cudadiff, and errors, also in a process without PyGObject. GStreamer must find the
plugin (GST_PLUGIN_PATH_1_0). Exit status: 0; 1 after a failure; 77 without PyGObject or NumPy. It is one long file
because it is one list of promises to Python programs. tests/gpu/frames_test.py tests frames in CUDA memory.
"""

import concurrent.futures
import ctypes
import gc
import itertools
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading
import time
import unittest
import weakref

root = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(root / "gst" / "python"), str(root / "tests" / "gpu")]
try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstVideo", "1.0")
    import numpy
    from gi.repository import Gst, GstVideo
except (ImportError, ValueError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

from cudavision import _sources, frames  # noqa: E402

Gst.init(None)


def formats_of(element):
    """The formats in system memory that the element's pads list and this GStreamer knows."""
    template = Gst.ElementFactory.find(element).get_static_pad_templates()[0]
    system = next(part for part in template.get_caps().to_string().split(";") if "memory:CUDAMemory" not in part)
    return re.search(r"format=\(string\){ ([^}]*) }", system).group(1).split(", ")


FORMATS = formats_of("cudagaussian")
HANGS = 600  # longer than anything takes on the busiest machine, in seconds
SIZES = ((1, 1), (2, 2), (33, 21), (34, 22), (64, 1), (1, 64), (321, 7))


def caps_of(format, width, height):
    return Gst.Caps.from_string(f"video/x-raw,format={format},width={width},height={height},framerate=30/1")


def new_frame(format, width, height, **options):
    """A buffer of known bytes, its caps, and the frame."""
    caps = caps_of(format, width, height)
    size = GstVideo.VideoInfo.new_from_caps(caps).size
    buffer = Gst.Buffer.new_wrapped((numpy.arange(size, dtype=numpy.uint32) * 7 % 251).astype(numpy.uint8).tobytes())
    return buffer, caps, frames.Frame(buffer, caps, **options)


def add_crop(buffer, *numbers):
    """Adds a GstVideoCropMeta, which the bindings cannot do: a GstMeta, then x, y, width, height. Returns these four
    numbers."""
    gst, video = ctypes.CDLL("libgstreamer-1.0.so.0"), ctypes.CDLL("libgstvideo-1.0.so.0")
    gst.gst_buffer_add_meta.restype = video.gst_video_crop_meta_get_info.restype = ctypes.c_void_p
    gst.gst_buffer_add_meta.argtypes = [ctypes.c_void_p] * 3
    meta = gst.gst_buffer_add_meta(hash(buffer), video.gst_video_crop_meta_get_info(), None)
    crop = (ctypes.c_uint * 4).from_address(meta + 16)
    crop[:] = numbers
    return crop


def references(buffer):
    """The number of references to a buffer, after garbage collection."""
    gc.collect()
    return ctypes.c_int.from_address(hash(buffer) + 8).value


def pointer_of(capsule, name):
    """The address in a DLPack capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name)


def until(condition):
    end = time.monotonic() + HANGS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not come")
        time.sleep(0.01)


class Watched(numpy.ndarray):
    """An array that supports weak references."""


class Exporter:
    """An array of another library, which gives this capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self.capsule


def wrong_tensor(array, **fields):
    """An array whose tensor has other fields."""
    capsule = array.__dlpack__()
    described = _sources._Tensor.from_address(pointer_of(capsule, b"dltensor"))
    for name, value in fields.items():
        if name == "stride":
            described.strides[0] = value
        else:
            setattr(described, name, value)
    return Exporter(capsule)


def run_pipeline(description, prepare=lambda pipeline: None):
    pipeline = Gst.parse_launch(description)
    prepare(pipeline)
    pipeline.set_state(Gst.State.PLAYING)
    sink = pipeline.get_by_name("sink")
    try:
        while sample := frames.pull(sink):
            yield sample
            del sample
    finally:
        pipeline.set_state(Gst.State.NULL)


def balls(count, caps, elements="", sink="sync=false"):
    """The samples of a moving ball after these elements."""
    return run_pipeline(f"videotestsrc pattern=ball num-buffers={count} ! video/x-raw,{caps} ! {elements} appsink "
                        f"name=sink {sink}")


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Layouts(unittest.TestCase):
    def test_documented_shapes(self):
        """The table of shapes in docs/python.md must be complete and correct."""
        documented = {}
        for line in (root / "docs" / "python.md").read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 3 and cells[2] in ("uint8", "uint16", "uint32"):
                shapes = re.findall(r"\((?:H|h), [^()]*\)", cells[1]) * (3 if cells[1].startswith("three of") else 1)
                documented.update({format: (shapes, cells[2]) for format in cells[0].split(", ")})
        known = {name for name in documented if GstVideo.VideoFormat.from_string(name) != GstVideo.VideoFormat.UNKNOWN}
        self.assertEqual(known, set(FORMATS))
        documented = {name: documented[name] for name in known}
        for width, height in SIZES:
            names = {"H": height, "W": width, "h": -(-height // 2), "w": -(-width // 2)}
            names.update({"q": -(-width // 4), "g": -(-width // 6)})
            for format, (shapes, dtype) in documented.items():
                planes = new_frame(format, width, height)[2].planes
                numbers = [tuple(math.prod(int(names.get(factor, factor)) for factor in size.strip().split("·"))
                                 for size in shape[1:-1].split(",")) for shape in shapes]
                self.assertEqual([plane.shape for plane in planes], numbers, format)
                self.assertEqual({plane.dtype for plane in planes}, {dtype}, format)

    def test_values(self):
        """Each plane must be where GstVideoInfo says. NumPy must see its bytes through both protocols, at the same
        address."""
        for format, (width, height) in itertools.product(FORMATS, SIZES):
            with self.subTest(format=format, width=width, height=height):
                buffer, caps, frame = new_frame(format, width, height)
                info = GstVideo.VideoInfo.new_from_caps(caps)
                self.assertEqual((frame.format, frame.width, frame.height), (format, width, height))
                data = numpy.frombuffer(buffer.extract_dup(0, buffer.get_size()), numpy.uint8)
                for index, plane in enumerate(frame.planes):
                    self.assertEqual(plane.strides[0], info.stride[index])
                    self.assertEqual(plane.address - frame.planes[0].address, info.offset[index] - info.offset[0])
                    rows = range(info.offset[index], info.offset[index] + height * info.stride[index],
                                 info.stride[index])[:plane.shape[0]]
                    row_bytes = plane.shape[1] * plane.strides[1]
                    expected = numpy.stack([data[at:at + row_bytes].view(plane.dtype) for at in rows])
                    for array in (numpy.from_dlpack(plane), numpy.asarray(plane)):
                        self.assertEqual(array.__array_interface__["data"][0], plane.address)
                        numpy.testing.assert_array_equal(array, expected.reshape(plane.shape))

    def test_crop(self):
        data = numpy.arange(32 * 16, dtype=numpy.uint8)
        buffer = Gst.Buffer.new_wrapped(data.tobytes())
        GstVideo.buffer_add_video_meta(buffer, GstVideo.VideoFrameFlags.NONE, GstVideo.VideoFormat.GRAY8, 32, 16)
        crop = add_crop(buffer, 5, 3, 8, 4)
        for caps in (caps_of("GRAY8", 8, 4), None):
            part = frames.Frame(buffer, caps)
            self.assertEqual((part.format, part.width, part.height), ("GRAY8", 8, 4))
            numpy.testing.assert_array_equal(numpy.asarray(part), data.reshape(16, 32)[3:7, 5:13])
        for numbers, error in (((5, 3, 0, 4), "GstVideoCropMeta is empty"),
                               ((28, 3, 8, 4), "reaches beyond its frame of 32×16"),
                               ((2**32 - 1, 3, 8, 4), "reaches beyond its frame"),
                               ((0, 0, 2**32 - 1, 2**32 - 1), "is not of a picture")):
            crop[:] = numbers
            with self.assertRaisesRegex(BufferError, error):
                frames.Frame(buffer)

    def test_meta_without_a_pixel(self):
        for size in ((0, 4), (4, 0)):
            buffer = Gst.Buffer.new_wrapped(bytes(16))
            GstVideo.buffer_add_video_meta_full(buffer, 0, GstVideo.VideoFormat.GRAY8, *size, 1, [0, 0, 0, 0],
                                                [4, 0, 0, 0])
            with self.assertRaisesRegex(BufferError, "GstVideoMeta is not of a picture"):
                frames.Frame(buffer)

    def test_crop_of_subsampled_planes(self):
        """Even without caps, a crop begins at a whole group of pixels, and each plane has its part."""
        data = numpy.arange(32 * 16 * 3 // 2, dtype=numpy.uint8)
        buffer = Gst.Buffer.new_wrapped(data.tobytes())
        GstVideo.buffer_add_video_meta(buffer, GstVideo.VideoFrameFlags.NONE, GstVideo.VideoFormat.NV12, 32, 16)
        add_crop(buffer, 6, 4, 11, 7)
        luma, chroma = (numpy.asarray(plane) for plane in frames.Frame(buffer).planes)
        numpy.testing.assert_array_equal(luma, data[:512].reshape(16, 32)[4:11, 6:17])
        numpy.testing.assert_array_equal(chroma, data[512:].reshape(8, 16, 2)[2:6, 3:9])


class Lifetimes(unittest.TestCase):
    def test_references(self):
        """Each kind of array keeps the buffer, and releases it."""
        buffer, caps, frame = new_frame("RGB", 8, 4)
        self.assertEqual(references(buffer), 2)
        tensor = numpy.from_dlpack(frame)
        view = numpy.asarray(frame.planes[0])
        frame.release()
        del frame
        self.assertEqual(references(buffer), 2)
        total = int(tensor.sum())
        del tensor
        self.assertEqual(references(buffer), 2)
        self.assertEqual(int(view.sum()), total)
        del view
        self.assertEqual(references(buffer), 1)

    def test_released_frame(self):
        """Arrays of the frame itself keep the buffer beyond release()."""
        for take in (numpy.asarray, numpy.from_dlpack):
            buffer, caps, _ = new_frame("GRAY8", 8, 4)
            with frames.Frame(buffer, caps) as frame:
                array = take(frame)
            del frame, _
            self.assertEqual(references(buffer), 2)
            del array
            self.assertEqual(references(buffer), 1)

    def test_sample_may_go_first(self):
        """An array outlives its sample and its pipeline, and keeps its picture."""
        arrays = [numpy.from_dlpack(frames.Frame(sample)) for sample in balls(4, "format=GRAY8,width=64,height=48")]
        sums = [array.astype(int).sum() for array in arrays]
        gc.collect()
        self.assertEqual(len(arrays), 4)
        self.assertEqual([array.astype(int).sum() for array in arrays], sums)

    def test_capsule_without_consumer(self):
        for options in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}):
            buffer, _, frame = new_frame("GRAY8", 8, 4)
            capsule = frame.__dlpack__(**options)
            self.assertEqual(references(buffer), 2)  # the owner has one reference to the buffer
            self.assertIn("dltensor_versioned" if options.get("max_version") == (1, 0) else '"dltensor"', repr(capsule))
            del frame
            self.assertEqual(references(buffer), 2)
            del capsule
            self.assertEqual(references(buffer), 1)

    def test_capsule_is_consumed_once(self):
        buffer, _, frame = new_frame("GRAY8", 8, 4)
        once = Exporter(frame.planes[0].__dlpack__())
        first = numpy.from_dlpack(once)
        with self.assertRaises((ValueError, RuntimeError, BufferError)):
            numpy.from_dlpack(once)
        del first, once, frame
        self.assertEqual(references(buffer), 1)

    def test_other_threads(self):
        """Arrays may be made and dropped on other threads."""
        buffer, _, frame = new_frame("GRAY8", 64, 48)
        sums, expected = [], int(numpy.asarray(frame).sum())

        def work():
            for _ in range(200):
                sums.append(int(numpy.from_dlpack(frame).sum()))  # noqa: F821: deleted below, when all have ended

        with concurrent.futures.ThreadPoolExecutor() as pool:
            for each in [pool.submit(work) for _ in range(4)]:
                each.result()
        self.assertEqual(sums, [expected] * 800)
        del frame
        self.assertEqual(references(buffer), 1)

    def test_release_beside_other_threads(self):
        """A frame may be released while other threads take its arrays."""
        current, stop = [new_frame("GRAY8", 8, 4)[2]], threading.Event()

        def work():
            while not stop.is_set():
                try:
                    numpy.from_dlpack(current[0].planes[0]).sum()
                except ValueError as error:
                    if "was released" not in str(error):
                        raise

        with concurrent.futures.ThreadPoolExecutor() as pool:
            works = [pool.submit(work) for _ in range(3)]
            for _ in range(2000):
                old, current[0] = current[0], new_frame("GRAY8", 8, 4)[2]
                old.release()
            stop.set()
        self.assertEqual([each.result() for each in works], [None] * 3)

    def test_ten_thousand_frames(self):
        """Buffers return to their pool, and memory does not grow."""
        addresses, at = set(), 0
        for count, sample in enumerate(balls(10000, "format=NV12,width=64,height=64", sink="sync=false max-buffers=4")):
            with frames.Frame(sample) as frame:
                arrays = [take(plane) for take in (numpy.from_dlpack, numpy.asarray) for plane in frame.planes]
                addresses.add(frame.planes[0].address)
            del arrays, frame, sample
            if count == 1000:
                at = resident()
        self.assertEqual(count, 9999)
        self.assertLess(len(addresses), 32)
        self.assertLess(resident() - at, 8 << 20)


class Writing(unittest.TestCase):
    @staticmethod
    def sample(last="false"):
        return balls(1, "format=GRAY8,width=8,height=8", sink=f"sync=false enable-last-sample={last}")

    def test_in_place(self):
        for sample in self.sample():
            with frames.Frame(sample, writable=True) as frame:
                numpy.asarray(frame)[:] = 77
            self.assertEqual(sample.get_buffer().extract_dup(0, 64), bytes([77] * 64))

    def test_others_use_the_buffer(self):
        for sample in self.sample("true"):
            with self.assertRaisesRegex(BufferError, "others also use its buffer .* enable-last-sample=false"):
                frames.Frame(sample, writable=True)
        for sample in self.sample():
            other = frames.Frame(sample)
            with self.assertRaisesRegex(BufferError, "others also use its buffer"):
                frames.Frame(sample, writable=True)
            other.release()
            frames.Frame(sample, writable=True).release()

    def test_read_only(self):
        """Arrays are marked as read-only, also in DLPack 1.0."""
        buffer, _, frame = new_frame("GRAY8", 8, 4)
        self.assertFalse(numpy.asarray(frame).flags.writeable)
        capsule = frame.__dlpack__(max_version=(1, 0))
        managed = pointer_of(capsule, b"dltensor_versioned")
        self.assertEqual(ctypes.c_uint32.from_address(managed).value, 1)  # the major version
        self.assertEqual(ctypes.c_uint64.from_address(managed + 24).value, 1)  # the flags
        # The address of a plane is in the data pointer, because some consumers ignore byte_offset.
        self.assertEqual(ctypes.c_void_p.from_address(managed + 32).value, frame.planes[0].address)
        self.assertEqual(ctypes.c_uint64.from_address(managed + 72).value, 0)


class Interface:
    def __init__(self, fields):
        self.__cuda_array_interface__ = fields


class Errors(unittest.TestCase):
    def refused(self, kind, pattern, function, *arguments, **options):
        with self.assertRaisesRegex(kind, pattern):
            function(*arguments, **options)

    def test_sources(self):
        buffer, caps, frame = new_frame("RGB", 8, 4)
        sound = "audio/x-raw,format=S16LE,rate=8000,channels=1"
        sizes = (f"video/x-raw,format=GRAY8,{size}" for size in ("width=-2,height=1", "width=0,height=2",
                                                               "width=4,height=-3"))
        for kind, pattern, *arguments in (
            (BufferError, "pass the caps too", buffer),
            *((BufferError, "do not describe raw video", buffer, each) for each in (sound, "video/x-raw", *sizes)),
            (BufferError, "format RGB16 are not supported", buffer, caps_of("RGB16", 8, 4)),
            (BufferError, "it has 96 bytes and needs 9600, in rows of 240 bytes", buffer, caps_of("RGB", 80, 40)),
            (ValueError, "these are not caps", buffer, "video/x-raw,="),
            (TypeError, "must be a Gst.Buffer, not 'text'", "text", caps),
            (TypeError, "must be a Gst.Buffer", 1, caps),
            (TypeError, "must be a Gst.Caps", buffer, buffer),
            (BufferError, "the buffer is empty", Gst.Buffer.new(), caps),
        ):
            self.refused(kind, pattern, frames.Frame, *arguments)
        for kind, pattern, device in ((BufferError, "not on cuda, it is in system memory: put cudaupload", "cuda"),
                                      (ValueError, 'a device is "cpu"', "gpu")):
            self.refused(kind, pattern, frames.Frame, buffer, caps, device=device)
        frame.release()
        frame.release()  # does nothing
        self.refused(ValueError, "was released", lambda: frame.planes)

    def test_protocol(self):
        _, _, frame = new_frame("NV12", 8, 4)
        plane = frame.planes[0]
        self.refused(BufferError, "has 2 planes", frame.__dlpack__)
        self.refused(ValueError, "has no stream: stream must be None", plane.__dlpack__, stream=1)
        self.refused(BufferError, "is not copied", plane.__dlpack__, copy=True)
        self.refused(BufferError, "on cpu, not on cuda:0", plane.__dlpack__, dl_device=(2, 0))
        self.assertFalse(hasattr(plane, "__cuda_array_interface__"))
        self.assertFalse(hasattr(frame, "__array_interface__"))

    def test_streams(self):
        from cudavision._arrays import stream_number

        self.assertEqual([stream_number(stream) for stream in (-1, 1, 2, 1 << 40)], [-1, 1, 2, 1 << 40])
        self.refused(ValueError, "stream 0 is ambiguous", stream_number, 0)
        for stream in (3, 4095, -2):
            self.refused(ValueError, "is not a CUDA stream", stream_number, stream)
        for stream in ("1", 1.0, True, None, object()):
            self.refused(TypeError, "a stream is an int", stream_number, stream)

        class Torch:
            cuda_stream = 0

        class CuPy:
            ptr = 1 << 40

        class Numba:
            handle = ctypes.c_void_p(None)  # the default stream

        self.assertEqual([stream_number(kind()) for kind in (Torch, CuPy, Numba)], [1, 1 << 40, 1])

    def test_odd_rows(self):
        """16-bit samples at odd addresses cannot become an array."""
        buffer = Gst.Buffer.new_wrapped(bytes(160))
        GstVideo.buffer_add_video_meta_full(buffer, GstVideo.VideoFrameFlags.NONE, GstVideo.VideoFormat.GRAY16_LE, 8, 4,
                                            1, [1, 0, 0, 0], [18, 0, 0, 0])
        self.refused(BufferError, "begin at odd addresses", frames.Frame, buffer)

    def test_wrong_tensors(self):
        """Invalid numbers from another library are refused before memory is accessed with them."""
        maker, plane = frames.BufferMaker("GRAY16_LE", 8, 4, device="cpu"), numpy.zeros((4, 16), numpy.uint16)[:, :8]
        for pattern, fields in (("has -1 dimensions", {"ndim": -1}), ("has 2147483647 dimensions", {"ndim": 2**31 - 1}),
                                ("has no shape", {"shape": None}),
                                ("beyond the end of memory", {"byte_offset": 2**64 - 1}),
                                ("beyond the end of memory", {"stride": 2**63 - 1})):
            self.refused(BufferError, pattern, maker, wrong_tensor(plane, **fields))

    def test_wrong_interfaces(self):
        good = {"shape": (4, 8), "typestr": "|u1", "data": (4096, False), "version": 3}
        self.assertEqual(_sources.Imported(Interface(good), "cuda:0", None).strides, (8, 1))
        wrong = {"typestr": ["u"], "data": [(), None, (0.5, False)], "shape": [5, ("4", 8)], "strides": ["x"]}
        for pattern, fields in (
            ("__cuda_array_interface__ is wrong", {}),
            *(("__cuda_array_interface__ is wrong", {**good, name: value})
              for name, values in wrong.items() for value in values),
            ("2 dimensions, but 1 strides", {**good, "strides": (8,)}),
        ):
            self.refused(BufferError, pattern, _sources.Imported, Interface(fields), "cuda:0", None)

    def test_no_gpu(self):
        """Without a GPU, the error is one clear sentence."""
        if pathlib.Path("/dev/nvidiactl").exists():
            self.skipTest("there is a GPU")
        for function in (lambda: frames.context(0), lambda: frames.BufferMaker("RGBA", 8, 4)):
            self.refused(RuntimeError, "has no CUDA|CUDA driver", function)
        self.refused(RuntimeError, 'to make frames in system memory, set device="cpu"', function)

    def test_makers(self):
        for pattern, *shape in (("format XYZ is not supported", "XYZ", 8, 4),
                                ("a frame is 1×1 to 16384×16384 pixels, not 0×4", "RGB", 0, 4)):
            self.refused(ValueError, pattern, frames.BufferMaker, *shape, device="cpu")
        maker = frames.BufferMaker("NV12", 8, 4, device="cpu")
        luma, chroma = numpy.zeros((4, 8), numpy.uint8), numpy.zeros((2, 4, 2), numpy.uint8)
        overlapping = numpy.lib.stride_tricks.as_strided(numpy.zeros(64, numpy.uint8), (4, 8), (1, 1))
        for kind, pattern, *arrays in (
            (ValueError, r"NV12 has 2 plane\(s\)", luma),
            (ValueError, r"plane 1 must be uint8 of the shape \(2, 4, 2\), not uint8 of \(4, 8\)", luma, luma),
            (ValueError, "plane 0 must be uint8 .* not uint16", luma.astype(numpy.uint16), chroma),
            (TypeError, "list is not an array", [1], chroma),
            (ValueError, "gaps between their samples", numpy.zeros((4, 16), numpy.uint8)[:, ::2], chroma),
            ((ValueError, BufferError), "rows must not overlap|readonly", overlapping, chroma),
            (ValueError, "the array of plane 0 is at address 0", wrong_tensor(luma, data=None), chroma),
        ):
            self.refused(kind, pattern, maker, *arrays)
        self.refused(ValueError, "a time is 0 or more nanoseconds", maker, luma, chroma, pts=-1)
        self.assertEqual(maker.made, 0)
        self.assertEqual(maker(luma, chroma).get_size(), 48)


class Makers(unittest.TestCase):
    def test_round_trip(self):
        """The buffer has the array's memory, with gaps between rows. Its bytes arrive."""
        random = numpy.random.default_rng(1)
        for format in FORMATS:
            maker = frames.BufferMaker(format, 33, 21, device="cpu")
            arrays = [random.integers(0, 256, (shape[0], 2 + shape[1], *shape[2:]), numpy.uint8)
                      .astype(maker.dtype)[:, : shape[1]] for shape in maker.shapes]
            buffer = maker(*arrays, pts=40, duration=10)
            self.assertEqual((buffer.pts, buffer.duration), (40, 10))
            frame = frames.Frame(buffer)
            self.assertEqual(frame.format, format)
            for plane, array in zip(frame.planes, arrays):
                self.assertEqual(plane.address, array.__array_interface__["data"][0])
                numpy.testing.assert_array_equal(numpy.asarray(plane), array)
            self.assertEqual((maker.made, maker.copied), (1, 0))

    def test_kept_until_the_buffer_ends(self):
        maker = frames.BufferMaker("GRAY8", 8, 4, device="cpu")
        array = numpy.full((4, 8), 5, numpy.uint8).view(Watched)
        watch = weakref.ref(array)
        buffer = maker(array)
        del array
        gc.collect()
        self.assertIsNotNone(watch())
        self.assertEqual(buffer.extract_dup(0, 32), bytes([5] * 32))
        del buffer
        gc.collect()
        self.assertIsNone(watch())

    def test_the_interpreters_lock(self):
        """A thread drops the last reference without the interpreter's lock. A thread with the lock waits for it."""
        array = numpy.full((4, 8), 5, numpy.uint8).view(Watched)
        watch = weakref.ref(array)
        buffer = frames.BufferMaker("GRAY8", 8, 4, device="cpu")(array)
        del array
        glib = ctypes.CDLL("libglib-2.0.so.0")
        glib_with_lock = ctypes.PyDLL("libglib-2.0.so.0")
        unref = ctypes.cast(ctypes.CDLL("libgstreamer-1.0.so.0").gst_mini_object_unref, ctypes.c_void_p)
        glib.g_thread_new.restype = ctypes.c_void_p
        glib.g_thread_new.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        glib_with_lock.g_thread_join.argtypes = [ctypes.c_void_p]
        address = hash(buffer)
        ctypes.c_int.from_address(address + 8).value += 1  # a reference for the thread
        del buffer
        gc.collect()
        glib_with_lock.g_thread_join(glib.g_thread_new(b"drops", unref, address))
        until(lambda: watch() is None)

    def test_appsrc(self):
        """Arrays are freed on a streaming thread. Ten thousand of them leak nothing."""
        pipeline = Gst.parse_launch(
            "appsrc name=source format=time block=true max-bytes=65536 ! cudagaussian backend=cpu ! "
            "fakesink name=sink sync=false"
        )
        source, maker = pipeline.get_by_name("source"), frames.BufferMaker("GRAY8", 32, 32, device="cpu")
        source.set_property("caps", Gst.Caps.from_string(maker.caps))
        pipeline.set_state(Gst.State.PLAYING)
        at, ended = 0, []

        for index in range(10000):
            array = numpy.full((32, 32), index % 256, numpy.uint8).view(Watched)
            weakref.finalize(array, ended.append, None)
            self.assertEqual(source.emit("push-buffer", maker(array, pts=index * 1000000)), Gst.FlowReturn.OK)
            del array
            if index == 1000:
                at = resident()
        source.emit("end-of-stream")
        message = pipeline.get_bus().timed_pop_filtered(HANGS * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        self.assertEqual(message.type, Gst.MessageType.EOS)
        pipeline.set_state(Gst.State.NULL)
        until(lambda: gc.collect() is not None and len(ended) == 10000)
        self.assertLess(resident() - at, 8 << 20)


class Results(unittest.TestCase):
    def test_histograms(self):
        for sample in balls(3, "format=NV12,width=64,height=48", "cudahistogram channels=all add-meta=true !"):
            (histogram,) = frames.histograms(sample)
            self.assertEqual((histogram.bins, histogram.depth, set(histogram.channels)),
                             (256, 8, {"luma", "Y", "Cb", "Cr"}))
            luma = numpy.asarray(frames.Frame(sample).planes[0])
            counts = numpy.asarray(histogram.channels["Y"].counts)
            numpy.testing.assert_array_equal(counts, numpy.bincount(luma.ravel(), minlength=256))
            self.assertAlmostEqual(histogram.channels["Y"].mean, float(luma.mean()))
            self.assertEqual(histogram.channels["Y"].count, luma.size)

    def test_integrals(self):
        for layout, first in (("inclusive", 0), ("padded", 1)):
            for kind in ("u32", "u64", "f32", "f64"):
                for sample in balls(1, "format=NV12,width=64,height=48", "cudaintegral backend=cpu squared=true "
                                    f"layout={layout} sum-type={kind} !"):
                    (integral,) = frames.integrals(sample)
                    self.assertEqual(integral.layout, layout)
                    luma = numpy.asarray(frames.Frame(sample).planes[0]).astype(numpy.int64)
                    for table in integral.tables:
                        expected = (luma**2 if table.squared else luma).cumsum(0).cumsum(1)
                        numpy.testing.assert_array_equal(numpy.asarray(table.entries)[first:, first:], expected)
                    self.assertEqual([table.squared for table in integral.tables], [False, True])

    def test_tables_alone(self):
        for sample in run_pipeline(
            "videotestsrc pattern=ball num-buffers=1 ! video/x-raw,format=RGB,width=64,height=48 ! tee name=t ! "
            "queue ! cudaintegral backend=cpu ! video/x-integral,format=U32LE,channels=3,layout=padded ! appsink "
            "name=sink sync=false t. ! queue ! fakesink"
        ):
            (integral,) = frames.integrals(sample)
            self.assertEqual((integral.layout, len(integral.tables)), ("padded", 3))
            for table in integral.tables:
                self.assertEqual(table.entries.shape, (49, 65))
                entries = numpy.asarray(table.entries).astype(int)
                self.assertTrue((entries[0] == 0).all() and (numpy.diff(entries, axis=0) >= 0).all())
                self.assertGreater(entries[-1, -1], 0)

    def test_none(self):
        buffer, _, _ = new_frame("GRAY8", 8, 4)
        self.assertEqual((frames.histograms(buffer), frames.integrals(buffer)), ([], []))


class Objects(unittest.TestCase):
    """Compares frames.objects() with the metas as PyGObject reads them, and with the messages of cudadiff."""

    # A ball is visible for 20 frames, and then gone. The zones overlap.
    SEEN, FRAMES = 20, 40
    DIFF = (
        "cudadiff name=diff backend=cpu output=passthrough reference=mog2 min-area=2 region-distance=2 track-hold=0.4 "
        'zones="all of it: 0.0,0.0 1.0,0.0 1.0,1.0 0.0,1.0; ü: 0.0,0.0 1.0,0.0 1.0,1.0 0.0,1.0"'
    )

    def pictures(self, after="", diff=DIFF):
        def prepare(pipeline):
            source, left = pipeline.get_by_name("source"), iter(range(self.SEEN - 1))

            def on_frame(*_):  # runs in the thread of the source, before the next frame
                if next(left, None) is None:
                    source.set_property("pattern", "black")
                return Gst.PadProbeReturn.OK

            source.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, on_frame)

        return run_pipeline(
            f"videotestsrc name=source pattern=ball num-buffers={self.FRAMES} ! "
            f"video/x-raw,format=I420,width=320,height=240,framerate=20/1 ! {diff} {after} ! "
            "appsink name=sink sync=false",
            prepare,
        )

    def regions(self, buffer):
        """The metas of a buffer, from PyGObject."""
        # Metas with the id 0 cannot be reached.
        metas = (GstVideo.buffer_get_video_region_of_interest_meta_id(buffer, number) for number in range(1, 30))
        return list(filter(None, metas))

    def test_members(self):
        confirmed, held, first = 0, 0, {}
        for sample in self.pictures():
            buffer = sample.get_buffer()
            found = frames.objects(sample)
            self.assertEqual(found, frames.objects(buffer))
            known = [each for each in found if each.id]
            self.assertEqual(sorted(each.id for each in known), [meta.id for meta in self.regions(buffer)])
            for each, meta in zip(sorted(known, key=lambda one: one.id), self.regions(buffer)):
                details = meta.get_param("motion")
                self.assertEqual(each.box, (meta.x, meta.y, meta.w, meta.h))
                self.assertEqual((True, each.score), details.get_double("score"))
                self.assertEqual((each.confirmed, each.held), (True, details.get_boolean("held").value))
                self.assertEqual(each.zones, ("all of it", "ü"))
                self.assertEqual(each.since, first.setdefault(each.id, each.since))  # it does not change
                self.assertAlmostEqual((buffer.pts - each.since) / Gst.SECOND, details.get_double("age").value, 6)
            for each in found:
                self.assertEqual(each.confirmed, each.id > 0)
                self.assertTrue(0 < each.score <= 1 and 0 <= each.since <= buffer.pts, each)
            confirmed += len(known)
            held += sum(each.held for each in known)
            number = buffer.pts * 20 // Gst.SECOND
            if number > self.SEEN + 1:
                self.assertTrue(all(each.held for each in found))
        self.assertGreater(confirmed, self.SEEN // 2)
        self.assertGreaterEqual(held, 5)  # 0.4 s of 20 frames/s
        self.assertEqual(found, [])

    def test_regions_without_tracking(self):
        count = 0
        for sample in self.pictures(diff="cudadiff backend=cpu output=passthrough reference=mog2 track=false"):
            for each in frames.objects(sample):
                self.assertEqual((each.id, each.confirmed, each.held, each.zones, each.since),
                                 (0, False, False, (), None))
                self.assertGreater(each.score, 0)
                count += 1
        self.assertGreater(count, 0)

    def test_scaled(self):
        """After an element that scales, id and box must be right. GStreamer may drop the other members there."""
        expected = [[(each.id, each.box) for each in frames.objects(sample)] for sample in self.pictures()]
        half = [[(i, tuple(n // 2 for n in box)) for i, box in each] for each in expected]
        for sample, boxes in zip(self.pictures("! videoscale ! video/x-raw,width=160,height=120"), half):
            found = frames.objects(sample)
            self.assertEqual([(each.id, each.box) for each in found], boxes)
            for each in found:
                self.assertEqual(each.confirmed, each.id > 0)
                self.assertEqual({member is None for member in (each.score, each.held, each.zones)},
                                 {each.score is None})

    def test_boxes_are_in_the_picture(self):
        """Coordinates begin at the crop, as in the arrays of Frame."""
        buffer = Gst.Buffer.new_wrapped(bytes(32 * 16))
        GstVideo.buffer_add_video_region_of_interest_meta(buffer, "motion", 10, 6, 8, 4)
        GstVideo.buffer_add_video_region_of_interest_meta(buffer, "face", 10, 6, 8, 4)
        (alone,) = frames.objects(buffer)
        self.assertEqual(alone, frames.Object(0, (10, 6, 8, 4), False))
        add_crop(buffer, 12, 4, 10, 10)
        self.assertEqual([each.box for each in frames.objects(buffer)], [(-2, 2, 8, 4)])

    def test_none(self):
        buffer, _, _ = new_frame("GRAY8", 8, 4)
        self.assertEqual(frames.objects(buffer), [])
        with self.assertRaisesRegex(BufferError, "the sample has no buffer"):
            frames.objects(Gst.Sample.new(None, None, None, None))
        with self.assertRaises(TypeError):
            frames.objects("buffer")


WITHOUT_BINDINGS = """
import sys
sys.modules["gi"] = None  # importing it fails
import gstreamer, numpy
gst = gstreamer.GStreamer()
from cudavision import frames
with gst.pipeline("videotestsrc pattern=ball num-buffers=5 ! video/x-raw,format=GRAY8,width=16,height=8 ! "
                  "cudagaussian backend=cpu ! appsink name=sink sync=false enable-last-sample=false") as pipeline:
    maker, made = frames.BufferMaker("GRAY8", 16, 8, device="cpu"), []
    for sample in pipeline.samples():
        with frames.Frame(sample.buffer, sample.caps, writable=True) as frame:
            array = numpy.asarray(frame)
            array[:] = 9
        assert gst.bytes_of(sample.buffer) == bytes([9] * 128)
        made.append(maker(array, pts=len(made)))
        assert gst.bytes_of(made[-1]) == bytes([9] * 128) and isinstance(made[-1], int)
    del array, sample, frame
    assert len(made) == 5
with gst.pipeline(f"appsrc name=source caps=\\"{maker.caps}\\" format=time ! appsink name=sink sync=false") as pipeline:
    for buffer in made:
        pipeline.push(buffer)
    pipeline.end()
    assert sum(gst.bytes_of(sample.buffer) == bytes([9] * 128) for sample in pipeline.samples()) == 5
with gst.pipeline("videotestsrc pattern=ball num-buffers=8 ! video/x-raw,format=GRAY8,width=160,height=120 ! "
                  "cudadiff backend=cpu output=passthrough reference=mog2 ! appsink name=sink sync=false") as pipeline:
    assert [each.id for sample in pipeline.samples() for each in frames.objects(sample.buffer) if each.confirmed]
try:
    frames.Frame("buffer")
except TypeError as error:
    assert "Gst.Buffer" in str(error)
print("done")
"""


class WithoutBindings(unittest.TestCase):
    def python(self, code, **variables):
        paths = f"{root / 'gst' / 'python'}:{root / 'tests' / 'gpu'}"
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths, **variables},
                              capture_output=True, text=True, timeout=900)

    def test_by_ctypes(self):
        done = self.python(WITHOUT_BINDINGS)
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0), done.stderr)

    def test_errors(self):
        """Nothing is loaded before it is needed. Each reason has its own sentence."""
        nowhere = {"GST_PLUGIN_PATH_1_0": "/nonexistent", "GST_PLUGIN_PATH": "", "GST_REGISTRY": "/nonexistent/r",
                   "GST_PLUGIN_SYSTEM_PATH_1_0": "/nonexistent"}
        for variables, code, expected in (
            ({}, "", "GStreamer is not initialised"),
            ({"CUDAVISION_LIBRARY": "/nonexistent.so"}, "", "/nonexistent.so is not the plugin"),
            ({"CUDAVISION_LIBRARY": "libm.so.6"}, "", "libm.so.6 is not the plugin that this module needs"),
            (nowhere, "import gstreamer; gstreamer.GStreamer(); ",
             "does not find the plugin cudavision: set GST_PLUGIN_PATH"),
        ):
            done = self.python(f"from cudavision import frames; {code}frames.context(0)", **variables)
            self.assertRegex(done.stderr.splitlines()[-1], f"^RuntimeError: .*{re.escape(expected)}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
