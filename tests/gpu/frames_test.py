#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests cudavision.frames with frames in CUDA memory:  frames_test.py [-k PATTERN]

Run it on a GPU host with `run.sh frames` of the bundle. It uses PyTorch and CuPy, and Numba and JAX if they are
installed. It calls GStreamer through ctypes (gstreamer.py), because such hosts have no PyGObject. tests/frames_test.py
tests everything that needs no GPU. It is one long file, so that a host needs one command. The last line is the count.
Exit status: 0; 1 after a failure; 77 without a GPU, PyTorch or CuPy.

Each pitfall that roboflow/inference#2649 lists for such a bridge has a test here or in tests/frames_test.py:
    no CUDA context on the consumer's thread       Order.test_thread_without_context, Order.test_probe
    the buffer returns while kernels read it       Order.test_late_consumer, Making.test_wrapped_or_copied (the
                                                   opposite direction)
    the offset of a plane is not in the pointer    Addresses.test_all_libraries_see_the_same_memory,
                                                   Writing.test_read_only
    a timeout looks like other failures            Writing.test_time_limit
    waits without an end                           Writing.test_time_limit, frames.drain() after each test
    teardown while consumers still work            Lifetimes.test_arrays_outlive_the_pipeline,
                                                   Lifetimes.test_other_threads
    a frame is closed while it is used             Lifetimes.test_release_beside_other_threads
    failures leave something behind                Lifetimes.test_nothing_stays_after_an_error
    a plugin of another version; no reason given   WithoutBindings.test_errors
    a silent way around the GPU                    Protocol.test_system_memory, Errors.test_no_gpu

Each frame is a picture of a single value, which differs from frame to frame. A frame that is read too early or too
late, or overwritten meanwhile, therefore has a wrong value. Kernels of about 20 ms before the use of an array make the
consumer late.
"""

import contextlib
import ctypes
import gc
import os
import pathlib
import sys
import threading
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
bundle = root if (root / "python").is_dir() else None
sys.path[:0] = [str(root / ("python" if bundle else "gst/python")), str(pathlib.Path(__file__).parent)]
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the memory
try:
    import cupy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)
torch.zeros(1, device="cuda")  # creates the primary context

import gstreamer  # noqa: E402

gst = gstreamer.GStreamer(bundle)
from cudavision import frames  # noqa: E402

WIDTH, HEIGHT = 256, 128
CONTEXT = frames.context()
SHARES_STREAMS = gst.version >= (1, 24)
SINK = "appsink name=sink sync=false enable-last-sample=false max-buffers=2"
CUDA = "video/x-raw(memory:CUDAMemory)"
LATE = int(20 * getattr(torch.cuda.get_device_properties(0), "clock_rate", 1.8e6))  # clocks in 20 ms


@contextlib.contextmanager
def late_streams():
    """Delays the work of the plugin on its streams."""
    os.environ["CUDAVISION_DELAY_STREAMS"] = "20"
    try:
        yield
    finally:
        del os.environ["CUDAVISION_DELAY_STREAMS"]


def value_of(index):
    return 1 + index * 7 % 250


def time_of(index):
    return index * 10**9 // 30


def size_of(format):
    return WIDTH * HEIGHT * 4 if format == "RGBA" else WIDTH * HEIGHT * 3 // 2


def caps_of(format, memory=""):
    return f"video/x-raw{memory},format={format},width={WIDTH},height={HEIGHT},framerate=30/1"


class Pictures:
    """Pictures of one value each, which go through `elements` to an appsink. `with` starts and stops the pipeline."""

    def __init__(self, count, format="NV12", elements="cudagaussian backend=cuda", context=CONTEXT,
                 sink=f"{CUDA} ! {SINK}"):
        self._count, self._format = count, format
        self.pipeline = gst.pipeline(f'appsrc name=source format=time caps="{caps_of(format)}" ! {elements} ! {sink}',
                                     context)

    def __enter__(self):
        self.pipeline.__enter__()
        for index in range(self._count):
            self.pipeline.push(gst.filled_buffer(size_of(self._format), value_of(index), time_of(index)))
        self.pipeline.end()
        return self

    def __exit__(self, *error):
        return self.pipeline.__exit__(*error)

    def __iter__(self):
        return enumerate(self.pipeline.samples())


def new_stream():
    """A stream that does not wait for the default streams, like PyTorch's streams."""
    return torch.cuda.Stream()


def sleep():
    """About 20 ms of work on the current stream of PyTorch."""
    torch.cuda._sleep(LATE)


def output_of(buffers, format, elements="cudagaussian backend=cuda"):
    """Pushes CUDA buffers (transfer full) through elements. Returns the bytes of the pictures in system memory."""
    with gst.pipeline(
        f'appsrc name=source format=time caps="{caps_of(format, "(memory:CUDAMemory)")}" ! {elements} ! '
        f"video/x-raw,format={format} ! appsink name=sink sync=false", CONTEXT) as pipeline:
        for buffer in buffers:
            pipeline.push(buffer)
        pipeline.end()
        return [gst.bytes_of(sample.buffer)[: size_of(format)] for sample in pipeline.samples()]


class Case(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        self.assertEqual(frames.drain(), 0)

    def whole(self, tensor, value):
        self.assertTrue(bool((tensor == value).all()), f"not all are {value}: {tensor.min()} to {tensor.max()}")


class Addresses(Case):
    def test_all_libraries_see_the_same_memory(self):
        with Pictures(3) as pictures:
            for index, sample in pictures:
                frame = frames.Frame(sample.buffer, sample.caps, device="cuda:0")
                self.assertEqual([plane.shape for plane in frame.planes],
                                 [(HEIGHT, WIDTH), (HEIGHT // 2, WIDTH // 2, 2)])
                self.assertGreaterEqual(frame.planes[1].address,
                                        frame.planes[0].address + frame.planes[0].strides[0] * HEIGHT)
                for plane in frame.planes:
                    by_torch, by_cupy, by_interface = (torch.from_dlpack(plane), cupy.from_dlpack(plane),
                                                       cupy.asarray(plane))
                    self.assertEqual({by_torch.data_ptr(), by_cupy.data.ptr, by_interface.data.ptr}, {plane.address})
                    self.assertEqual(tuple(by_torch.shape), plane.shape)
                    self.assertEqual(tuple(by_torch.stride()), plane.strides)
                    self.assertEqual(by_cupy.strides, plane.strides)
                    self.whole(by_torch, value_of(index))
                    self.whole(by_cupy, value_of(index))
                    self.whole(by_interface, value_of(index))

    def test_decoded(self):
        """Blurs frames from NVDEC: the arrays must have the bytes of a download."""
        clips = sorted((root / "media").glob("*.mp4"))
        if not clips or not gst.has("nvh264dec", "qtdemux", "h264parse"):
            self.skipTest("no clip, or no nvh264dec")
        count = 0
        chain = f'filesrc location="{clips[0]}" ! qtdemux ! h264parse ! nvh264dec ! cudagaussian backend=cuda'
        with gst.pipeline(f"{chain} ! {CUDA},format=NV12 ! {SINK}", CONTEXT) as device, gst.pipeline(
            f"{chain} ! video/x-raw,format=NV12 ! {SINK}", CONTEXT) as host:
            for sample, expected in zip(device.samples(), host.samples()):
                frame = frames.Frame(sample.buffer, sample.caps)
                system = frames.Frame(expected.buffer, expected.caps)
                for plane, same in zip(frame.planes, system.planes):
                    tensor = torch.from_dlpack(plane)
                    self.assertEqual(tensor.data_ptr(), plane.address)
                    self.assertTrue(bool((tensor.cpu() == torch.from_dlpack(same)).all()), f"frame {count}")
                count += 1
                if count == 30:
                    break
        self.assertEqual(count, 30)

    def test_numba(self):
        """Numba reads a frame in place, and its arrays become frames."""
        try:
            from numba import cuda
        except ImportError as error:
            self.skipTest(str(error))
        maker = frames.BufferMaker("RGBA", WIDTH, HEIGHT)
        with Pictures(1, "RGBA") as pictures:
            for index, sample in pictures:
                plane = frames.Frame(sample.buffer, sample.caps).planes[0]
                array = cuda.as_cuda_array(plane)
                self.assertEqual(array.device_ctypes_pointer.value, plane.address)
                host = array.copy_to_host()
                self.whole(host, value_of(index))
                made = maker(cuda.to_device(host), pts=0, duration=time_of(1))
        self.assertEqual([set(data) for data in output_of([made], "RGBA")], [{value_of(0)}])

    def test_jax(self):
        """JAX accepts only arrays without gaps, so CuPy copies the frame. Arrays of JAX become frames."""
        try:
            import jax
        except ImportError as error:
            self.skipTest(str(error))
        maker = frames.BufferMaker("RGBA", WIDTH, HEIGHT)
        with Pictures(1, "RGBA") as pictures:
            for index, sample in pictures:
                frame = frames.Frame(sample.buffer, sample.caps)
                array = jax.dlpack.from_dlpack(cupy.ascontiguousarray(cupy.from_dlpack(frame)))
                self.whole(array, value_of(index))
                made = maker(array, pts=0, duration=time_of(1))
        self.assertEqual([set(data) for data in output_of([made], "RGBA")], [{value_of(0)}])

    def test_pipeline_with_its_own_context(self):
        """Without context() the arrays are right, or an error says what to do."""
        with Pictures(3, context=None) as pictures:
            for index, sample in pictures:
                try:
                    frame = frames.Frame(sample.buffer, sample.caps)
                except RuntimeError as error:
                    print(f"refused: {error}")
                    self.assertIn("set_context(cudavision.frames.context(0))", str(error))
                else:
                    print("kernels of the primary context reach frames of other contexts")
                    self.whole(torch.from_dlpack(frame.planes[0]), value_of(index))


class Order(Case):
    def read(self, pictures, late):
        """Reads all frames on a separate stream, and drops each one before the GPU has read it."""
        stream, copies = new_stream(), []
        with torch.cuda.stream(stream):
            for index, sample in pictures:
                tensor = torch.from_dlpack(frames.Frame(sample.buffer, sample.caps).planes[0])
                if late and index % 5 == 0:
                    sleep()
                copies.append(tensor.clone())
                del tensor, sample
        stream.synchronize()
        for index, copy in enumerate(copies):
            self.whole(copy, value_of(index))
        return len(copies)

    def test_late_consumer(self):
        """A buffer does not return to its pool before the consumer's kernels have read it (inference#2649)."""
        with Pictures(60) as pictures:
            self.assertEqual(self.read(pictures, late=True), 60)

    def test_late_producer(self):
        """Consumers do not read a frame before the pipeline has written it."""
        with late_streams():
            with Pictures(60, elements="cudagaussian backend=cuda ! cudagaussian backend=cuda") as pictures:
                self.assertEqual(self.read(pictures, late=False), 60)

    def test_default_streams(self):
        """Uses DLPack on the default stream, and the CUDA array interface."""
        with late_streams():
            with Pictures(30) as pictures:
                for index, sample in pictures:
                    frame = frames.Frame(sample.buffer, sample.caps)
                    take = (torch.from_dlpack, cupy.from_dlpack, cupy.asarray)[index % 3]
                    self.whole(take(frame.planes[index % 2]), value_of(index))

    def test_probe(self):
        """In a pad probe between elements, frames may be unfinished, also with GStreamer 1.22. Its thread has no CUDA
        context."""
        probe = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        stream, copies, failures = new_stream(), [], []

        @probe
        def look(_pad, info, _data):
            try:
                buffer = ctypes.c_void_p.from_address(info + 16).value  # GstPadProbeInfo::data
                with torch.cuda.stream(stream):
                    copies.append(torch.from_dlpack(frames.Frame(buffer).planes[0]).clone())
            except Exception as error:
                failures.append(repr(error))
            return 1  # GST_PAD_PROBE_OK

        with late_streams():
            pictures = Pictures(40, elements="cudagaussian backend=cuda name=first ! cudagaussian backend=cuda")
            pad = gst.core.gst_element_get_static_pad(ctypes.c_void_p(pictures.pipeline.element("first")), b"src")
            pointer = ctypes.c_void_p
            gst.core.gst_pad_add_probe.argtypes = [pointer, ctypes.c_int, probe, pointer, pointer]
            gst.core.gst_pad_add_probe(pad, 1 << 4, look, None, None)  # GST_PAD_PROBE_TYPE_BUFFER
            with pictures:
                for index, sample in pictures:
                    self.whole(torch.from_dlpack(frames.Frame(sample.buffer, sample.caps).planes[0]), value_of(index))
            gst.core.gst_object_unref(pad)
        stream.synchronize()
        self.assertEqual((failures, len(copies)), ([], 40))
        for index, copy in enumerate(copies):
            self.whole(copy, value_of(index))

    def test_thread_without_context(self):
        """A thread that never called CUDA may take and drop arrays (inference#2649)."""
        results = []

        def work(plane, value):
            results.append(all(bool((take(plane) == value).all()) for take in (cupy.from_dlpack, torch.from_dlpack)))

        with Pictures(8) as pictures:
            for index, sample in pictures:
                frame = frames.Frame(sample.buffer, sample.caps)
                thread = threading.Thread(target=work, args=(frame.planes[0], value_of(index)))
                thread.start()
                thread.join()
        self.assertEqual(results, [True] * 8)


class Writing(Case):
    def changed(self, change, elements, count=20):
        """Changes frames in place with change(frame, index), pushes them on, and returns their bytes."""
        buffers = []
        with Pictures(count) as pictures:
            for index, sample in pictures:
                frame = frames.Frame(sample.buffer, sample.caps, writable=True)
                change(frame, index)
                buffers.append(gst.core.gst_mini_object_ref(sample.buffer))
        return output_of(buffers, "NV12", elements)

    def check(self, outputs, count=20):
        self.assertEqual(len(outputs), count)
        for index, data in enumerate(outputs):
            luma, chroma = data[: WIDTH * HEIGHT], data[WIDTH * HEIGHT :]
            self.assertEqual(set(luma), {251 - value_of(index)}, index)
            self.assertEqual(set(chroma), {128})

    def test_by_torch(self):
        """A late change on its own stream reaches the next element: frames decoded here are blended there."""
        stream = new_stream()

        def change(frame, index):
            with torch.cuda.stream(stream):
                luma, chroma = (torch.from_dlpack(plane) for plane in frame.planes)
                sleep()
                luma.copy_(251 - luma)
                chroma.fill_(128)
                frame.release(stream)

        self.check(self.changed(change, "cudablend backend=cuda"))

    def test_by_cupy(self):
        """Without a stream, the call waits for all streams."""
        stream = cupy.cuda.Stream(non_blocking=True)

        def change(frame, index):
            with stream:
                luma, chroma = (cupy.asarray(plane) if index % 2 else cupy.from_dlpack(plane) for plane in frame.planes)
                luma[:] = 251 - luma
                chroma[:] = 128
            frame.release()

        self.check(self.changed(change, "cudagaussian backend=cuda"))

    def test_encoder(self):
        """Changed frames go to NVENC, and come back from NVDEC."""
        if not gst.has("nvh264enc", "nvh264dec", "h264parse"):
            self.skipTest("no nvh264enc or no nvh264dec")
        buffers = []
        with Pictures(20) as pictures:
            for index, sample in pictures:
                with frames.Frame(sample.buffer, sample.caps, writable=True) as frame:
                    torch.from_dlpack(frame.planes[0]).fill_(100)
                    torch.from_dlpack(frame.planes[1]).fill_(128)
                del frame
                buffers.append(gst.core.gst_mini_object_ref(sample.buffer))
        outputs = output_of(buffers, "NV12", "nvh264enc ! h264parse ! nvh264dec ! cudablend backend=cuda")
        self.assertEqual(len(outputs), 20)
        for data in outputs:
            luma = data[: WIDTH * HEIGHT]
            self.assertLess(abs(sum(luma) / len(luma) - 100), 3)

    def test_time_limit(self):
        """release() waits on the host only with GStreamer 1.22, and only for a limited time."""
        with Pictures(1) as pictures:
            for _, sample in pictures:
                frame = frames.Frame(sample.buffer, sample.caps, writable=True)
                torch.from_dlpack(frame.planes[0]).fill_(1)
                for _ in range(20):
                    sleep()
                if SHARES_STREAMS:
                    frame.release(timeout=0)
                else:
                    with self.assertRaises(TimeoutError):
                        frame.release(timeout=0)
                    frame.release(timeout=60)


class Making(Case):
    def test_wrapped_or_copied(self):
        """Arrays with late kernels become buffers. Their memory is not overwritten before it is read."""
        for library in ("torch", "cupy"):
            maker, stream = frames.BufferMaker("RGBA", WIDTH, HEIGHT), new_stream()
            with gst.pipeline(
                f'appsrc name=source format=time caps="{maker.caps}" ! cudagaussian backend=cuda ! '
                "video/x-raw,format=RGBA ! appsink name=sink sync=false", CONTEXT) as pipeline:
                for index in range(60):
                    with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
                        if index % 10 == 0:
                            sleep()
                        if library == "torch":
                            array = torch.full((HEIGHT, WIDTH, 4), value_of(index), dtype=torch.uint8, device="cuda")
                        else:
                            array = cupy.full((HEIGHT, WIDTH, 4), value_of(index), dtype=cupy.uint8)
                        pipeline.push(maker(array, pts=time_of(index), duration=time_of(1)))
                        del array  # the library may use its memory for the next picture
                pipeline.end()
                values = [set(gst.bytes_of(sample.buffer)[: size_of("RGBA")]) for sample in pipeline.samples()]
            self.assertEqual(values, [{value_of(index)} for index in range(60)])
            self.assertEqual(maker.copied, 0 if SHARES_STREAMS else 60)

    def test_planes(self):
        """Planes of one tensor are wrapped. Separate planes, and rows with gaps, are copied."""
        maker = frames.BufferMaker("NV12", WIDTH, HEIGHT)
        whole = torch.empty((HEIGHT * 3 // 2, WIDTH), dtype=torch.uint8, device="cuda")
        whole[:HEIGHT], whole[HEIGHT:] = 33, 44
        gaps = torch.full((HEIGHT, WIDTH + 40), 33, dtype=torch.uint8, device="cuda")[:, :WIDTH]
        luma = whole[:HEIGHT].clone()
        chroma = whole[HEIGHT:].clone().view(HEIGHT // 2, WIDTH // 2, 2)
        cases = [(whole[:HEIGHT], whole[HEIGHT:].view(HEIGHT // 2, WIDTH // 2, 2)), (luma, chroma), (gaps, chroma),
                 (cupy.asarray(luma), chroma)]
        buffers = [maker(*case, pts=time_of(index), duration=time_of(1)) for index, case in enumerate(cases)]
        if SHARES_STREAMS:
            self.assertLess(maker.copied, 4)
        else:
            self.assertEqual(maker.copied, 4)
            with self.assertRaisesRegex(BufferError, "from version 1.24 on"):
                maker(*cases[0], copy=False)
        with self.assertRaisesRegex(BufferError, "must be copied"):
            maker(gaps, chroma, copy=False)
        buffers.append(maker(*cases[0], copy=True))
        for data in output_of(buffers, "NV12"):
            self.assertEqual((set(data[: WIDTH * HEIGHT]), set(data[WIDTH * HEIGHT :])), ({33}, {44}))

    def test_interface(self):
        """Objects that have only the CUDA array interface are ordered by its stream, and kept alive."""

        class Foreign:
            def __init__(self, array, stream):
                self.array, self.__cuda_array_interface__ = array, dict(array.__cuda_array_interface__, stream=stream)

        maker, stream, buffers = frames.BufferMaker("RGBA", WIDTH, HEIGHT), cupy.cuda.Stream(non_blocking=True), []
        for index in range(10):
            with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
                sleep()
                array = cupy.full((HEIGHT, WIDTH, 4), value_of(index), dtype=cupy.uint8)
            buffers.append(maker(Foreign(array, stream.ptr), pts=time_of(index), duration=time_of(1)))
            del array
        self.assertEqual([set(data) for data in output_of(buffers, "RGBA")], [{value_of(index)} for index in range(10)])

    def test_refused(self):
        def make(format, shape, on="cuda", device="cuda:0"):
            """Makes a buffer of 8×8 pixels from an array."""
            frames.BufferMaker(format, 8, 8, device=device)(torch.zeros(shape, dtype=torch.uint8, device=on))

        for kind, pattern, function, *arguments in (
            (ValueError, "no frames of the format GRAY8", frames.BufferMaker, "GRAY8", 8, 8),
            (ValueError, "no CUDA device 99: this machine has", make, "RGBA", (8, 8, 4), "cuda", "cuda:99"),
            (ValueError, "no CUDA device 99", frames.context, 99),
            (BufferError, "is on cpu, and the buffer on cuda:0", make, "RGBA", (8, 8, 4), "cpu"),
            (ValueError, "plane 0 must be uint8", make, "RGBA", (8, 8, 3)),
        ):
            with self.assertRaisesRegex(kind, pattern):
                function(*arguments)


class Lifetimes(Case):
    def test_arrays_outlive_the_pipeline(self):
        with Pictures(4) as pictures:
            arrays = [torch.from_dlpack(frames.Frame(sample.buffer, sample.caps).planes[1]) for _, sample in pictures]
        gc.collect()
        for index, array in enumerate(arrays):
            self.whole(array, value_of(index))

    def test_ten_thousand_frames(self):
        """In both directions, the pool and the memory of the device stay small."""
        addresses, free = set(), 0
        maker = frames.BufferMaker("RGBA", WIDTH, HEIGHT)
        with gst.pipeline(
            "videotestsrc pattern=black num-buffers=10000 ! video/x-raw,format=NV12,width=64,height=64 ! "
            f"cudagaussian backend=cuda ! {CUDA} ! {SINK}", CONTEXT
        ) as source, gst.pipeline(
            f'appsrc name=source format=time block=true max-bytes=1048576 caps="{maker.caps}" ! '
            f"cudagaussian backend=cuda ! {CUDA} ! fakesink sync=false", CONTEXT) as sink:
            for count, sample in enumerate(source.samples()):
                with frames.Frame(sample.buffer, sample.caps) as frame:
                    tensor, array = torch.from_dlpack(frame.planes[0]), cupy.asarray(frame.planes[1])
                    addresses.add(frame.planes[0].address)
                picture = torch.empty((HEIGHT, WIDTH, 4), dtype=torch.uint8, device="cuda")
                picture[:64, :64, 0] = tensor
                sink.push(maker(picture, pts=time_of(count)))
                del tensor, array, picture, sample, frame
                if count == 1000:
                    frames.drain()
                    free = torch.cuda.mem_get_info()[0]
            sink.end()
            sink.wait()
        self.assertEqual(count, 9999)
        self.assertLess(len(addresses), 200)
        self.assertEqual(frames.drain(), 0)
        self.assertLess(free - torch.cuda.mem_get_info()[0], 64 << 20)

    def test_nothing_stays_after_an_error(self):
        with Pictures(1) as pictures:
            for _, sample in pictures:
                before = gst.references(sample.buffer)
                for wrong in ({"caps": caps_of("RGBA", "(memory:CUDAMemory)")}, {"device": "cpu"},
                              {"device": "cuda:1"}):
                    with self.assertRaises(BufferError):
                        frames.Frame(sample.buffer, **dict({"caps": sample.caps}, **wrong))
                gc.collect()
                self.assertEqual(gst.references(sample.buffer), before)


class Results(Case):
    def test_tables(self):
        """Tests tables in CUDA memory, and counts."""
        with gst.pipeline(
            "videotestsrc pattern=ball num-buffers=5 ! video/x-raw,format=NV12,width=320,height=240 ! "
            "cudagaussian backend=cuda ! "
            "cudaintegral backend=cuda layout=padded squared=true ! cudahistogram backend=cuda add-meta=true ! "
            f"{CUDA} ! {SINK}", CONTEXT) as pipeline:
            count = 0
            for sample in pipeline.samples():
                luma = cupy.from_dlpack(frames.Frame(sample.buffer, sample.caps).planes[0])
                (integral,), (histogram,) = frames.integrals(sample.buffer), frames.histograms(sample.buffer)
                for table in integral.tables:
                    self.assertEqual(table.entries.device, "cuda:0")
                    samples = luma.astype(cupy.uint64) ** (2 if table.squared else 1)
                    entries = cupy.from_dlpack(table.entries)
                    self.assertTrue(bool((entries[1:, 1:] == samples.cumsum(0).cumsum(1)).all()))
                import numpy

                counts = numpy.asarray(histogram.channels["luma"].counts)
                numpy.testing.assert_array_equal(counts, cupy.bincount(luma.ravel(), minlength=256).get())
                count += 1
        self.assertEqual(count, 5)


class Protocol(Case):
    def test_wrong_streams(self):
        with Pictures(1) as pictures:
            for _, sample in pictures:
                plane = frames.Frame(sample.buffer, sample.caps).planes[0]
                for kind, streams in {ValueError: (0, 7, -2), TypeError: ("1", 1.0)}.items():
                    for stream in streams:
                        with self.assertRaises(kind):
                            plane.__dlpack__(stream=stream)
                with self.assertRaisesRegex(BufferError, "not on cuda:7"):
                    plane.__dlpack__(dl_device=(2, 7))
                with self.assertRaisesRegex(BufferError, "on cuda:0, not on cpu"):
                    plane.__dlpack__(dl_device=(1, 0))
                self.assertFalse(hasattr(plane, "__array_interface__"))
                objects = torch.cuda.current_stream(), cupy.cuda.Stream(non_blocking=True)
                for stream in (None, -1, 1, 2, *objects, new_stream().cuda_stream):
                    plane.__dlpack__(stream=stream)

    def test_system_memory(self):
        with Pictures(1, sink=f"video/x-raw ! {SINK}") as pictures:
            for _, sample in pictures:
                with self.assertRaisesRegex(BufferError, "is in system memory: put cudaupload"):
                    frames.Frame(sample.buffer, sample.caps, device="cuda")


if __name__ == "__main__":
    print(f"# GStreamer {'.'.join(map(str, gst.version))}, PyTorch {torch.__version__}, CuPy {cupy.__version__}, "
          f"{torch.cuda.get_device_name()}")
    result = unittest.main(verbosity=2, exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped",
          flush=True)
    sys.exit(1 if failed else 0)
