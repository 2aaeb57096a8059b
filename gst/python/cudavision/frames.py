# SPDX-License-Identifier: LGPL-2.1-or-later
"""Frames of GStreamer as arrays of CuPy, PyTorch, Numba, JAX and NumPy, and arrays as frames, without a copy.

    # before it starts: the pipeline works in the CUDA context of those libraries
    pipeline.set_context(frames.context())
    with frames.Frame(appsink.emit("pull-sample")) as frame:
        luma, chroma = (torch.from_dlpack(plane) for plane in frame.planes)

    maker = frames.BufferMaker("RGBA", 1280, 720)
    appsrc.set_property("caps", Gst.Caps.from_string(maker.caps))
    appsrc.emit("push-buffer", maker(picture, pts=frame.pts))

docs/python.md explains lifetimes, streams and layouts. Objects of GStreamer are objects of PyGObject; in a program
without it they are addresses (int).
"""

from ctypes import byref, c_int, c_ssize_t, c_uint64, c_void_p
from typing import Optional, Tuple

from ._arrays import CUDA, NO_STREAM, Array, Owner, device_name, device_of, stream_number
from ._library import DURATION, NONE, PTS, FrameData, Source, call, is_object, library, to_object
from ._objects import Object, objects
from ._results import Channel, Histogram, Integral, Table, buffer_and_caps, histograms, integrals
from ._sources import Imported

__all__ = ["Array", "BufferMaker", "Channel", "Frame", "Histogram", "Integral", "Object", "Table", "context", "drain",
           "histograms", "integrals", "objects", "pull"]


def _milliseconds(timeout):
    if not 0 <= timeout <= 86400:
        raise ValueError(f"a timeout is 0 to 86400 seconds, not {timeout}")
    return round(1000 * timeout)


def _time(value):
    if value is not None and not 0 <= value < NONE:
        raise ValueError(f"a time is 0 or more nanoseconds, or None, not {value}")
    return NONE if value is None else value


def context(device: int = 0):
    """The Gst.Context of a device's primary CUDA context, for `pipeline.set_context()`. Raises ValueError if there is
    no such device."""
    address = c_void_p()
    call("cudavision_frames_context", device, byref(address))
    return to_object(address.value, "Context")


def pull(sink, timeout: float = 10.0):
    """Pulls the next Gst.Sample from an appsink of PyGObject; None at EOS, or if there is none within `timeout`
    seconds. An appsink also keeps the first frame as its preroll; this drops it, so that the frame can be written."""
    sample = sink.emit("try-pull-sample", 1000000 * _milliseconds(timeout))
    if sample:
        sink.emit("try-pull-preroll", 0)
    return sample


def drain(timeout: float = 10.0) -> int:
    """Waits until the GPU uses no frame whose arrays were dropped, but not longer than `timeout` seconds. Returns how
    many are left."""
    return library().cudavision_frames_drain(_milliseconds(timeout))


class Frame:
    """A video frame whose planes are arrays. A frame of one plane is an array itself: `torch.from_dlpack(frame)`.

    format, width, height: of the picture
    pts, duration: of the buffer in nanoseconds, or None
    device: "cpu" or "cuda:0"
    planes: one Array for each plane
    """

    def __init__(self, source, caps=None, *, writable: bool = False, device: Optional[str] = None):
        """`source`: a Gst.Sample or a Gst.Buffer. `caps`: the caps of the buffer, as Gst.Caps or a string; not needed
        for samples, and for buffers with a GstVideoMeta, which all buffers in CUDA memory have. `writable`: whether
        arrays may be changed; then call release() after the changes. `device`: where the frame must be ("cuda");
        otherwise an error says how to get it there. Raises BufferError if the buffer holds no such frame or, with
        `writable`, if others also use it; RuntimeError if CUDA fails, or if the frame is in a CUDA context that other
        libraries cannot reach."""
        buffer, caps = buffer_and_caps(source, caps)
        if not buffer:
            raise BufferError("the sample has no buffer")
        data, address = FrameData(), c_void_p()
        # The source, and its Python object.
        wrappers = 2 if is_object(source) and type(source).__gtype__.name == "GstBuffer" else 1
        call("cudavision_frame_open", buffer, caps, wrappers if writable else 0, byref(data), byref(address))
        owner = Owner(address.value)
        first = data.planes[0]
        self._owner, self._writable = owner, writable
        self.format, self.width, self.height = data.format.decode(), data.width, data.height
        self.device = device_name(first.device_type, first.device_id)
        if device is not None and device_of(device)[0] != first.device_type:
            where = (
                "system memory: put cudaupload, or caps with memory:CUDAMemory, before the sink"
                if first.device_type != CUDA
                else "CUDA memory"
            )
            raise BufferError(f"the frame is not on {device}, it is in {where}")
        if device is not None and ":" in device and device != self.device:
            raise BufferError(f"the frame is on {self.device}, not on {device}: set cuda-device-id of the elements")
        times = [c_uint64.from_address(buffer + offset).value for offset in (PTS, DURATION)]
        self.pts, self.duration = (None if time == NONE else time for time in times)
        self._planes: Optional[Tuple[Array, ...]] = tuple(Array(owner, data.planes[i]) for i in range(data.n_planes))

    def __repr__(self):
        return f"<Frame {self.format} {self.width}×{self.height} on {self.device}>"

    @property
    def planes(self) -> Tuple[Array, ...]:
        if self._planes is None:
            raise ValueError("the frame was released")
        return self._planes

    def release(self, stream=None, timeout: float = 10.0):
        """Gives the frame up. Its arrays in other libraries stay valid, and keep the buffer from its pool.
        If the frame is writable, users of the buffer follow the work of `stream` (an int, or a stream of PyTorch, CuPy
        or Numba) so far, or of all streams if it is None. With GStreamer 1.22, whose CUDA memory has no stream, this
        waits; TimeoutError after `timeout` seconds."""
        if self._planes is None:
            return
        number = NO_STREAM if stream is None else stream_number(stream)
        if self._writable:
            call("cudavision_owner_hand_back", self._owner.address, number, _milliseconds(timeout))
        self._planes = self._owner = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.release()

    def _plane(self):
        if len(self.planes) != 1:
            raise BufferError(f"a frame of {self.format} has {len(self.planes)} planes: take each of frame.planes")
        return self.planes[0]

    def __dlpack__(self, **options):
        return self._plane().__dlpack__(**options)

    def __dlpack_device__(self):
        return self._plane().__dlpack_device__()

    def _interface(self, name):
        try:
            interface = getattr(self._plane(), name)
        except (BufferError, ValueError) as error:
            raise AttributeError(str(error)) from error
        self._kept = self._owner  # the consumer keeps this object, also beyond release()
        return interface

    @property
    def __cuda_array_interface__(self):
        return self._interface("__cuda_array_interface__")

    @property
    def __array_interface__(self):
        return self._interface("__array_interface__")


class _Maker:
    """The plugin's maker, and the stream that must follow the work on arrays."""

    def __init__(self, format, width, height, device_id):
        address, stream = c_void_p(), c_ssize_t()
        try:
            call("cudavision_maker_new", format, width, height, device_id, byref(address), byref(stream))
        except RuntimeError as error:
            raise RuntimeError(f'{error}; to make frames in system memory, set device="cpu"') from None
        self.address, self.stream = address.value, stream.value
        self._free = library().cudavision_maker_free

    def __del__(self):
        if hasattr(self, "_free"):
            self._free(self.address)


class BufferMaker:
    """Makes buffers of arrays, for an appsrc. The array becomes the buffer, without a copy, where GStreamer can use it;
    otherwise it is copied once on the device. The buffer keeps a reference to the array. Do not change the array after
    the call.

    caps: what to set as the caps of the appsrc (str)
    shapes, dtype: of the arrays, one for each plane
    made, copied: how many buffers were made, and for how many of them the arrays were copied
    """

    def __init__(self, format: str, width: int, height: int, *, device: str = "cuda", framerate: str = "30/1"):
        """Raises ValueError if there is no such format or size in memory of this device; RuntimeError if
        CUDA fails."""
        kind, number = device_of(device)
        self._layout = FrameData()
        call("cudavision_frame_layout", format.encode(), width, height, byref(self._layout))
        self._planes = self._layout.planes[: self._layout.n_planes]
        self._maker = _Maker(format.encode(), width, height, number) if kind == CUDA else None
        self.device = device_name(kind, number)
        self.shapes = tuple(tuple(plane.shape[: plane.dimensions]) for plane in self._planes)
        self.dtype = f"uint{self._planes[0].bits}"
        self.caps = (
            f"video/x-raw{'(memory:CUDAMemory)' if kind == CUDA else ''}, format={format}, width={width}, "
            f"height={height}, "
            f"framerate={framerate}"
        )
        self.made = self.copied = 0

    def __call__(
        self,
        *arrays,
        pts: Optional[int] = None,
        duration: Optional[int] = None,
        copy: Optional[bool] = None,
        timeout: float = 10.0,
    ):
        """Makes a Gst.Buffer. `arrays`: one for each plane, of the shapes and the type above; rows may have gaps
        between them. `pts`, `duration`: nanoseconds. `copy`: None: if necessary; True: always; False: BufferError if it
        is necessary. With GStreamer 1.22, whose CUDA memory has no stream, this waits for the copy; TimeoutError after
        `timeout` seconds."""
        pts, duration, milliseconds = _time(pts), _time(duration), _milliseconds(timeout)
        if len(arrays) != len(self.shapes):
            raise ValueError(
                f"{self._layout.format.decode()} has {len(self.shapes)} plane(s), of the shapes {self.shapes}, "
                f"not {len(arrays)}"
            )
        imported = [self._import(index, array) for index, array in enumerate(arrays)]
        frame = FrameData.from_buffer_copy(self._layout)
        for plane, array in zip(frame.planes, imported):
            plane.data, plane.strides[0] = array.address, array.strides[0]
        sources = (Source * len(imported))(*(array.take() for array in imported))
        buffer, copied = c_void_p(), c_int()
        call(
            "cudavision_maker_make",
            self._maker.address if self._maker else None,
            byref(frame),
            sources,
            len(sources),
            {None: 0, True: 1, False: 2}[copy],
            milliseconds,
            byref(buffer),
            byref(copied),
        )
        for offset, value in ((PTS, pts), (DURATION, duration)):
            c_uint64.from_address(buffer.value + offset).value = value
        self.made += 1
        self.copied += copied.value
        return to_object(buffer.value, "Buffer")

    def _import(self, index, array):
        imported = Imported(array, self.device, self._maker)
        expected = self._planes[index]
        if imported.shape != self.shapes[index] or imported.dtype != self.dtype:
            raise ValueError(
                f"plane {index} must be {self.dtype} of the shape {self.shapes[index]}, "
                f"not {imported.dtype} of {imported.shape}"
            )
        inner = zip(imported.strides[1:], expected.strides[1 : expected.dimensions], imported.shape[1:])
        if any(stride != packed and length > 1 for stride, packed, length in inner):
            raise ValueError(f"the rows of plane {index} have gaps between their samples: pass a contiguous array")
        return imported
