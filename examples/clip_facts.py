# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the facts of a video file, and copies its video into another container without encoding it again."""
import datetime
import re
from dataclasses import dataclass
from typing import Optional

import common
import part
from common import Gst

import gi
gi.require_version("GstPbutils", "1.0")
from gi.repository import GstPbutils  # noqa: E402

# Without this, programs disagree on the start of a file without sound whose pictures begin after 0.
WEBM = "webmmux offset-to-zero=true"
# For each codec: the elements between a demuxer and the muxer, the muxer, and the suffix of a file that browsers play.
# Matroska and MPEG-TS have no decoding times, which MP4 needs: h264timestamper computes them.
PLAYED = {"video/x-h264": ("h264parse ! h264timestamper", "mp4mux", "mp4"),
          "video/x-av1": ("av1parse", "mp4mux", "mp4"),
          "video/x-vp8": ("identity", WEBM, "webm"), "video/x-vp9": ("vp9parse", WEBM, "webm")}
# Parts for old codecs, whose streams often have one key frame in 25 seconds. Phones and browsers do not play them.
OLD = {codec: ("identity", "matroskamux", "mkv") for codec in ("video/x-divx", "video/x-msmpeg")}
KEPT = {"video/x-h265": ("h265parse ! h265timestamper", "mp4mux", "mp4"),
        "image/jpeg": ("jpegparse", "matroskamux", "mkv")}
PROFILES = {"video/x-h264": {None, "baseline", "constrained-baseline", "main", "high", "constrained-high",
                             "progressive-high", "extended"},
            "video/x-av1": {None, "main"}, "video/x-vp8": {None, "0", "1", "2", "3"}, "video/x-vp9": {None, "0", "2"}}
# These containers have a length in their header.
DECLARING = {"video/quicktime", "video/x-matroska", "video/webm", "video/x-msvideo", "video/x-ms-asf", "video/x-flv"}
LATE = 1  # the pictures may end this many seconds before the length of the container; sound is often slightly longer


@dataclass
class Facts:
    """The facts of a file. `duration` is the length in seconds that its container declares, or None. `began` is the
    clock time of its beginning, or None. `sounds` are the caps of its sound streams. `unheard` says why they cannot be
    written."""
    container: str
    codec: str
    profile: Optional[str]
    width: int
    height: int
    duration: Optional[float]
    began: Optional[datetime.datetime]
    turned: bool
    sounds: tuple = ()
    unheard: str = ""
    rate: Optional[float] = None  # frames per second, as the container says
    setup: str = ""  # data that sets up a decoder (codec_data), if the container has it
    length: Optional[float] = None  # in seconds, as GStreamer finds it; None if it finds none

    @property
    def played(self):
        """Whether browsers play this video in a container that they know."""
        return self.codec in PLAYED and self.profile in PROFILES[self.codec]

    @property
    def suffix(self):
        """The suffix of the container in which browsers play this video."""
        return PLAYED[self.codec][2]

    @property
    def as_it_is(self):
        """Whether browsers play the file itself."""
        return self.played and self.container == {"mp4": "video/quicktime,iso", "webm": "video/webm"}[self.suffix]

    def missing(self, end, wanted=None):
        """A sentence if the pictures end at `end` (seconds), well before both the declared length and `wanted`, the end
        of the part; otherwise an empty text."""
        return missing(end, self.duration, wanted)


def missing(end, declared, wanted=None):
    """A sentence if the pictures end at `end`, well before both the length that a container declares (seconds; 0 or
    None: it declares none) and `wanted`, the end of the part; otherwise an empty text."""
    if not declared or end >= min(declared, wanted or declared) - LATE:
        return ""
    return f"its pictures end at {end:.1f} s, but its container declares {declared:.1f} s"


def began_of(tags):
    found, when = tags.get_date_time(Gst.TAG_DATE_TIME) if tags else (False, None)
    if not found or not when.has_time() or not when.has_second():
        return None
    zone = datetime.timezone(datetime.timedelta(hours=when.get_time_zone_offset()))
    return datetime.datetime(when.get_year(), when.get_month(), when.get_day(), when.get_hour(), when.get_minute(),
                             when.get_second(), tzinfo=zone)


def facts_of(path):
    """The facts of a file; None if it cannot be read or has no video."""
    Gst.init(None)
    try:
        found = GstPbutils.Discoverer.new(15 * Gst.SECOND).discover_uri(common.uri_of(path))
    except common.GLib.Error:
        return None
    videos = [video for video in found.get_video_streams() if not video.is_image()]
    stream = found.get_stream_info()
    if not videos or not stream:
        return None
    video = videos[0]
    container, variant = common.fields_of(stream.get_caps(), "name", "variant")
    codec, profile = common.fields_of(video.get_caps(), "name", "profile")
    length = found.get_duration()
    known = container in DECLARING and length not in (0, Gst.CLOCK_TIME_NONE)
    all_tags = [each.get_tags() for each in (stream, video)]
    turned = any(tags and tags.get_string(Gst.TAG_IMAGE_ORIENTATION)[1] not in (None, "rotate-0") for tags in all_tags)
    return Facts(container + (",iso" if variant == "iso" else ""), codec, profile, video.get_width(),
                 video.get_height(),
                 length / Gst.SECOND if known else None, next(filter(None, map(began_of, all_tags)), None), turned,
                 tuple(sound.get_caps() for sound in found.get_audio_streams()),
                 rate=video.get_framerate_num() / video.get_framerate_denom() if video.get_framerate_num() else None,
                 setup="".join(re.findall(r"codec_data=\(buffer\)(\w+)", video.get_caps().to_string())),
                 length=None if length in (0, Gst.CLOCK_TIME_NONE) else length / Gst.SECOND)


def remux(path, facts, stream):
    """Writes the video of a file to an open file, in a container that browsers play. The written video begins at 0.
    Returns the stream time in seconds at which it begins in the original. Raises a Failure if that is impossible. The
    last frame of MPEG-TS may be lost, because it has no duration."""
    parser, muxer, _ = PLAYED[facts.codec]
    pipeline = common.parse(
        f"uridecodebin name=clip caps={facts.codec} expose-all-streams=false ! {parser} ! queue name=queue ! {muxer} ! "
        "filesink name=out",
        clip={"uri": common.uri_of(path)}, out={"location": common.location_of(stream)})
    begins = []

    def on_buffer(pad, info):
        begins.append(part.stream_time_of(pad, info.get_buffer()) or 0)
        return Gst.PadProbeReturn.REMOVE

    pipeline.get_by_name("queue").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    if common.play(pipeline):
        raise KeyboardInterrupt  # the file is incomplete
    return max(begins[0], 0) / Gst.SECOND if begins else 0
