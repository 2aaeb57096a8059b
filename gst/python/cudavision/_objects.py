# SPDX-License-Identifier: LGPL-2.1-or-later
"""The objects that cudadiff attaches to frames, as GstVideoRegionOfInterestMeta of the type `motion`."""

import ctypes
import dataclasses
import functools
from ctypes import Structure, byref, c_double, c_int, c_uint, c_uint64, c_void_p
from typing import List, Optional, Tuple

from ._library import NONE, PTS, library
from ._results import Meta, buffer_and_caps, metas

SECOND = 10**9


class _RegionMeta(Structure):
    _fields_ = [("meta", Meta), ("roi_type", c_uint), ("id", c_int), ("parent_id", c_int)] + [
        (name, c_uint) for name in ("x", "y", "w", "h")
    ] + [("params", c_void_p)]


class _CropMeta(Structure):
    _fields_ = [("meta", Meta)] + [(name, c_uint) for name in ("x", "y", "width", "height")]


@dataclasses.dataclass(frozen=True)
class Object:
    """An object of a frame, or with track=false a region of it.

    id: of the object, at least 1; 0 if it is not confirmed
    box: x, y, width, height in pixels of the picture, which a GstVideoCropMeta may have made smaller; may reach beyond
         it then
    confirmed: whether it was seen for track-min-frames
    score: share of changed pixels in its cells, when it was last seen
    held: whether it is not seen in this frame, and the box is where it is expected
    zones: the names of the zones in which it is, or was when it was last seen
    since: when it was first seen, on the clock of the frame's pts in nanoseconds; None if that is not known

    An element that scales or converts the frame may keep only id and box (videoscale, videoconvert). Then score, held,
    zones and since are None.
    """

    id: int
    box: Tuple[int, int, int, int]
    confirmed: bool
    score: Optional[float] = None
    held: Optional[bool] = None
    zones: Optional[Tuple[str, ...]] = None
    since: Optional[int] = None


@functools.lru_cache
def _is_motion(quark):
    return library().g_quark_to_string(quark) == b"motion"


def _zones(plugin, structure):
    names = plugin.gst_structure_get_value(structure, b"zones")
    count = plugin.gst_value_array_get_size(names) if names else 0
    return tuple(
        plugin.g_value_get_string(plugin.gst_value_array_get_value(names, index)).decode() for index in range(count)
    )


def _details(plugin, structure, pts):
    """Score, held, zones and since of a region, as its parameter structure says."""
    score, age, held = c_double(), c_double(), c_int()
    scored = plugin.gst_structure_get_double(structure, b"score", byref(score))
    aged = plugin.gst_structure_get_double(structure, b"age", byref(age))
    plugin.gst_structure_get_boolean(structure, b"held", byref(held))
    past = int(age.value * SECOND + 0.5) if aged else None
    since = None if past is None or pts == NONE or past > pts else pts - past
    return score.value if scored else None, bool(held.value), _zones(plugin, structure), since


def objects(source) -> List[Object]:
    """The objects that cudadiff (attach-roi=true) left on a buffer or on the buffer of a sample, in cudadiff's order.
    `source`: a Gst.Sample or a Gst.Buffer. Regions of other types are omitted. Raises BufferError if the sample has no
    buffer."""
    plugin, (buffer, _) = library(), buffer_and_caps(source)
    if not buffer:
        raise BufferError("the sample has no buffer")
    crop = next(metas(buffer, "gst_video_crop_meta_api_get_type", _CropMeta), None)
    left, top = (crop.x, crop.y) if crop else (0, 0)
    pts = c_uint64.from_address(buffer + PTS).value
    found = []
    for region in metas(buffer, "gst_video_region_of_interest_meta_api_get_type", _RegionMeta):
        if not _is_motion(region.roi_type):
            continue
        number, structure = region.id, plugin.gst_video_region_of_interest_meta_get_param(byref(region), b"motion")
        details = _details(plugin, structure, pts) if structure else ()
        found.append(Object(number, (region.x - left, region.y - top, region.w, region.h), number > 0, *details))
    return found


assert ctypes.sizeof(_RegionMeta) == 56
