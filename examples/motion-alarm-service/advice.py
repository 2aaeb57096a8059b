# SPDX-License-Identifier: LGPL-2.1-or-later
"""Advice about a lost camera: a sentence for each kind of error."""

import urllib.parse

import uris

SETTINGS = "LIBRARY/SETTINGS"  # the errors with which cudavision elements refuse a setting


def place_of(location: str) -> str:
    """The host and the port of a URI, without user and password; empty if they are unclear."""
    try:
        parts = urllib.parse.urlsplit(uris.shown(location))
        return (
            f"{parts.hostname}{f':{parts.port}' if parts.port else ''}"
            if parts.hostname and "*" not in parts.hostname
            else ""
        )
    except ValueError:
        return ""


def about_error(kind: str, location: str) -> str:
    """Advice about an error of this kind (troubles.py) that ended the pipeline of a camera, or an empty text."""
    path, host = uris.path_of(location), place_of(location)
    if kind in ("RESOURCE/NOT_AUTHORIZED", "ANSWER/401", "ANSWER/407"):
        return f"{'correct' if uris.user_of(location) else 'write'} the user and the password in its uri"
    if kind == "ANSWER/403":
        return "give this user access in the settings of the camera, or write another user and password in its uri"
    if kind in ("ANSWER/429", "ANSWER/453", "ANSWER/503"):
        return "has it reached its maximum number of viewers?"
    if kind in ("CORE/MISSING_PLUGIN", "STREAM/CODEC_NOT_FOUND", "STREAM/WRONG_TYPE", "STREAM/TYPE_NOT_FOUND"):
        return "let it send H.264, or install gstreamer1.0-libav and gstreamer1.0-plugins-bad, which decode more"
    if kind == "RESOURCE/NO_SPACE_LEFT":
        return "free space on the disk"
    if path is not None and path.startswith("/dev/"):
        return "is it plugged in, and is no other program using it?"
    if path is not None:
        return ""
    if kind in ("RESOURCE/NOT_FOUND", "ANSWER/404"):
        return "correct the path in its uri: the camera does not know it"
    if kind.startswith("ANSWER/"):
        return "it is switched on, but refuses the request: compare the path in its uri with its manual"
    if kind.startswith(("RESOURCE/", "STREAM/FAILED")):
        return f"is it switched on and connected, and is {host or 'the address in its uri'} right?"
    return ""


def about_silence(location: str, came: bool) -> str:
    """Advice about a camera that has sent no frames for too long. `came`: it sent frames earlier."""
    host = place_of(location) if uris.path_of(location) is None else ""
    if came:
        return f"check its power and its cable{f', and whether {host} answers' if host else ''}"
    if location.lower().startswith("rtsp:"):
        return 'is it switched on? If it answers, a firewall may drop UDP: try source = { protocols = "tcp" }'
    return f"is it switched on{f', and does {host} answer' if host else ''}?"


def about_end(location: str) -> str:
    """Advice about a stream that ended without an error. A file simply restarts."""
    return (
        ""
        if uris.path_of(location) is not None
        else "did it restart, or has it reached its maximum number of viewers?"
    )
