# SPDX-License-Identifier: LGPL-2.1-or-later
"""Determines which files can be cut without encoding, and which containers their clips use."""
import clip_facts
import common
from common import Gst

import gi
gi.require_version("GstPbutils", "1.0")
from gi.repository import GstPbutils  # noqa: E402

FORMATS = {**clip_facts.PLAYED, **clip_facts.KEPT}  # the formats of recordings; clip_facts.OLD can also be cut
MATROSKA = "matroskamux"  # supports sound that the container of a codec does not, such as G.711 and PCM


def format_of(codec):
    """The elements between a demuxer and the muxer, the muxer, and the suffix, for a codec that can be cut."""
    return FORMATS.get(codec) or clip_facts.OLD[codec]


def can_cut(facts):
    """Whether the video of a file with these facts can be cut: its times are exact, and a container supports it."""
    return bool(facts) and (facts.codec in FORMATS or facts.codec in clip_facts.OLD) and facts.container in (
        "video/quicktime,iso", "video/quicktime", "video/x-matroska", "video/webm", "video/x-msvideo")


def why_not(facts):
    if not facts:
        return "there is no video in it, or it cannot be read"
    return f"{facts.codec} in {facts.container.partition(',')[0]} cannot be cut without encoding"


def plain(caps):
    """The type of a sound stream, without the details of its container."""
    name, version = common.fields_of(caps, "name", "mpegversion")
    return f"{name},mpegversion={version}" if version else name


def held(muxer, caps):
    """Whether the container of a muxer supports this sound."""
    muxer = Gst.ElementFactory.find(muxer.split()[0])
    wanted = Gst.Caps.from_string(plain(caps))
    return bool(muxer) and any(each.name_template.startswith("audio") and each.get_caps().can_intersect(wanted)
                               for each in muxer.get_static_pad_templates())


def made(facts):
    """Like format_of(), for clips of a file with these facts. The container is Matroska if the usual one would lose
    sound."""
    parser, muxer, suffix = format_of(facts.codec)
    lost = any(held(MATROSKA, caps) and not held(muxer, caps) for caps in facts.sounds)
    return (parser, MATROSKA, "mkv") if lost else (parser, muxer, suffix)


def sounds_of(facts):
    """The caps of the sound streams in clips of a file with these facts."""
    return [caps for caps in facts.sounds if held(made(facts)[1], caps)]


def left_out(facts):
    """A sentence about the sound and the rotation that clips of a file with these facts lack, or an empty text."""
    if not can_cut(facts):
        return ""
    # No muxer writes the rotation.
    turn = "the clips lack the rotation of the file" if facts.turned else ""
    names = [GstPbutils.pb_utils_get_codec_description(caps) or plain(caps)
             for caps in facts.sounds if not held(made(facts)[1], caps)]
    if facts.unheard:
        return "; ".join(filter(None, (f"sound is not included: {facts.unheard}", turn)))
    sound = (f"sound is not included, because .{made(facts)[2]} cannot hold it: {', '.join(names)}"
             if names else "")
    return "; ".join(filter(None, (sound, turn)))


def parser_of(caps):
    """The element between a demuxer and the muxer for a sound stream."""
    kind = plain(caps)
    return {"audio/mpeg,mpegversion=1": "mpegaudioparse", "audio/x-ac3": "ac3parse", "audio/x-flac": "flacparse"}.get(
        kind, "aacparse" if kind.startswith("audio/mpeg") else "identity")
