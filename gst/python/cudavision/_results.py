# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads what cudahistogram and cudaintegral add to buffers, as arrays. The headers in gst/meta define the structures
and each number."""

import ctypes
import dataclasses
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_uint, c_uint64, c_void_p
from typing import Dict, List, Optional

from ._arrays import CPU, Array, Owner
from ._library import ArrayData, address_of, call, is_object, library

FIGURES = ("count", "min", "max", "mean", "deviation", "median", "p01", "p99", "entropy", "saturated")
ENTRY_TYPES = ((1, 32), (1, 64), (2, 32), (2, 64))  # GstCudaVisionEntryType: code and bits
LAYOUTS = ("inclusive", "padded")


class Meta(Structure):
    """GstMeta"""

    _fields_ = [("flags", c_int), ("info", c_void_p)]


class _Channel(Structure):
    _fields_ = (
        [("name", c_char_p), ("counts", c_void_p), ("count", c_uint64)]
        + [(name, c_double) for name in FIGURES[1:]]
        + [("reserved", c_void_p * 4)]
    )


class _HistogramMeta(Structure):
    _fields_ = [("meta", Meta), ("bins", c_uint), ("depth", c_uint), ("n_channels", c_uint),
                ("channels", POINTER(_Channel)), ("sharpness", c_double)]


class _Table(Structure):
    _fields_ = [("channel", c_char_p), ("squared", c_int), ("type", c_int), ("width", c_uint), ("height", c_uint),
                ("memory", c_void_p), ("reserved", c_void_p * 4)]


class _IntegralMeta(Structure):
    _fields_ = [("meta", Meta), ("layout", c_int), ("n_tables", c_uint), ("tables", POINTER(_Table))]


@dataclasses.dataclass
class Channel:
    """One channel of a histogram. `counts`: an Array of uint64, one entry for each bin. The
    other numbers are as in the meta."""

    counts: Array
    count: int
    min: float
    max: float
    mean: float
    deviation: float
    median: float
    p01: float
    p99: float
    entropy: float
    saturated: float


@dataclasses.dataclass
class Histogram:
    """The histogram of a frame. `depth`: bits of a sample; `sharpness`: None if it was not measured; `channels`: by
    their names ("luma")."""

    bins: int
    depth: int
    sharpness: Optional[float]
    channels: Dict[str, Channel]


@dataclasses.dataclass
class Table:
    """A summed-area table of a channel, or of its squares. `entries`: an Array of shape (height, width)."""

    channel: str
    squared: bool
    entries: Array


@dataclasses.dataclass
class Integral:
    """The summed-area tables of a frame. `layout`: "inclusive" or "padded"."""

    layout: str
    tables: List[Table]


def buffer_and_caps(source, caps=None):
    """The addresses of a buffer and of its caps, which may be None. `source`: a Gst.Sample or a Gst.Buffer."""
    plugin = library()
    if is_object(source) and type(source).__gtype__.name == "GstSample":
        sample = address_of(source, "GstSample")
        return plugin.gst_sample_get_buffer(sample), plugin.gst_sample_get_caps(sample) if caps is None else _caps(caps)
    return address_of(source, "GstBuffer"), None if caps is None else _caps(caps)


_parsed = {}  # caps by their description; never removed


def _caps(caps):
    if not isinstance(caps, str):
        return address_of(caps, "GstCaps")
    if caps not in _parsed:
        address = library().gst_caps_from_string(caps.encode())
        if not address:
            raise ValueError(f"these are not caps: {caps!r:.80}")
        _parsed[caps] = address
    return _parsed[caps]


def metas(buffer, api, kind):
    """The metas of a buffer with the API type that `api()` returns, as structures `kind`."""
    plugin, state = library(), c_void_p()
    following, where, wanted = plugin.gst_buffer_iterate_meta_filtered, byref(state), getattr(plugin, api)()
    while meta := following(buffer, where, wanted):
        yield kind.from_address(meta)


def _entries(rows, columns, code, bits):
    size = bits // 8
    return ArrayData(code=code, bits=bits, dimensions=2, shape=(rows, columns, 0), strides=(columns * size, size, 0))


def _open(buffer, memory, size, data):
    """Opens the first `size` bytes of a memory of a buffer, which the result keeps. Sets the address `data`."""
    address = c_void_p()
    call("cudavision_memory_open", buffer, memory, size, byref(data), byref(address))
    return Owner(address.value)


def field(structure, name, kind, get):
    """A field of a GstStructure, or None if it is not there."""
    value = kind()
    return value.value if get(structure, name, byref(value)) else None


def histograms(source) -> List[Histogram]:
    """The histograms that cudahistogram (add-meta=true) left on a buffer or on the buffer of a sample. Counts are in
    system memory."""
    buffer, _ = buffer_and_caps(source)
    found = []
    for meta in metas(buffer, "gst_cuda_vision_histogram_meta_api_get_type", _HistogramMeta):
        owner = Owner(library().cudavision_buffer_keep(buffer))
        channels = {}
        for channel in meta.channels[: meta.n_channels]:
            counts = ArrayData(data=channel.counts, device_type=CPU, code=1, bits=64, dimensions=1)
            counts.shape[0], counts.strides[0] = meta.bins, 8
            figures = {name: getattr(channel, name) for name in FIGURES}
            channels[channel.name.decode()] = Channel(Array(owner, counts), **figures)
        found.append(Histogram(meta.bins, meta.depth, meta.sharpness if meta.sharpness >= 0 else None, channels))
    return found


def integrals(source) -> List[Integral]:
    """The summed-area tables that cudaintegral left on a buffer, or on the buffer of a sample; also the tables of a
    sample of video/x-integral. They are in the memory where they were computed."""
    buffer, caps = buffer_and_caps(source)
    if caps and (alone := _tables_alone(buffer, library().gst_caps_get_structure(caps, 0))):
        return [alone]
    found = []
    for meta in metas(buffer, "gst_cuda_vision_integral_meta_api_get_type", _IntegralMeta):
        tables = []
        for table in meta.tables[: meta.n_tables]:
            data = _entries(table.height, table.width, *ENTRY_TYPES[table.type])
            owner = _open(buffer, table.memory, table.height * data.strides[0], data)
            tables.append(Table(table.channel.decode(), bool(table.squared), Array(owner, data)))
        found.append(Integral(LAYOUTS[meta.layout], tables))
    return found


def _tables_alone(buffer, structure):
    """The tables of a buffer that has nothing else, or None if the caps are of something else."""
    plugin = library()
    if plugin.gst_structure_get_name(structure) != b"video/x-integral":
        return None
    channels, width, height = (
        field(structure, name, c_int, plugin.gst_structure_get_int) for name in (b"channels", b"width", b"height")
    )
    kind = ("U32LE", "U64LE", "F32LE", "F64LE").index(plugin.gst_structure_get_string(structure, b"format").decode())
    data = _entries(height, width, *ENTRY_TYPES[kind])
    size = height * data.strides[0]
    owner, tables = _open(buffer, plugin.gst_buffer_peek_memory(buffer, 0), channels * size, data), []
    for index in range(channels):
        table = ArrayData.from_buffer_copy(data)
        table.data = data.data + index * size
        tables.append(Table("luma" if channels == 1 else str(index), False, Array(owner, table)))
    return Integral(plugin.gst_structure_get_string(structure, b"layout").decode(), tables)


assert ctypes.sizeof(_HistogramMeta) == 48 and ctypes.sizeof(_Table) == 64
