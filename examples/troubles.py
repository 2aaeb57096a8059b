# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds out why an input cannot be read: the kind of error, and a readable sentence. Elements that read from the
network report little. Therefore the server's answer is taken from their details. If there is none, a separate
connection finds the reason."""
import re
import urllib.parse

from gi.repository import Gio, GLib, Gst

# The server's answer in the details of rtspsrc and of souphttpsrc.
ANSWER = re.compile(r"^(?:Error \((\d{3})\): (.*)|([^(\n]+) \(([45]\d\d)\)(?:[,.].*)?)$", re.M)
PORTS = {"http": 80, "https": 443, "rtsp": 554, "rtsps": 322}
PATIENCE = 5  # seconds for a connection


def kind_of(error) -> str:
    """DOMAIN/CODE of a GLib.Error of GStreamer, such as RESOURCE/NOT_FOUND."""
    for domain, quark, codes in (("LIBRARY", Gst.library_error_quark(), Gst.LibraryError),
                                 ("RESOURCE", Gst.resource_error_quark(), Gst.ResourceError),
                                 ("STREAM", Gst.stream_error_quark(), Gst.StreamError),
                                 ("CORE", Gst.core_error_quark(), Gst.CoreError)):
        if error.matches(quark, error.code):
            return f"{domain}/{codes(error.code).value_nick.replace('-', '_').upper()}"
    return "OTHER"


def uri_of(element) -> str:
    """The URI of an element, or of the element that contains it; empty if there is none."""
    while element and not element.find_property("uri"):
        element = element.get_parent()
    return element.get_property("uri") or "" if element else ""


def trouble_of(message):
    """The kind of an error message and its sentence, which may contain secrets. The kind is a result of kind_of(),
    ANSWER/CODE if a server refused, or CERTIFICATE."""
    error, details = message.parse_error()
    kind = kind_of(error)
    if kind == "CORE/MISSING_PLUGIN":
        return kind, "there is no video in it, or the plugin that decodes it is missing"
    if kind == "STREAM/TYPE_NOT_FOUND":
        return kind, "it is not a video, or GStreamer does not know its format"
    found = list(ANSWER.finditer(details or "")) if kind.startswith("RESOURCE/") else []
    if found:
        code, reason = found[-1][1] or found[-1][4], found[-1][2] or found[-1][3]
        answer = f"{code} {reason.strip()}"
        return f"ANSWER/{code}", (f"wrong user or password ({answer})" if code in ("401", "407")
                                  else f"the server answers {answer}")
    if kind == "RESOURCE/SEEK":  # souphttpsrc requests the rest of a live stream
        return kind, "no data arrived for too long, or the connection to the server was lost"
    if re.search(r"Failed to connect|reason error \(-5\)", details or "") and (uri := uri_of(message.src)):
        return about_connection(kind, uri, message.src, error.message)
    return kind, error.message


def about_connection(kind, uri, source, otherwise):
    """Connects like the source, and explains why this fails."""
    scheme = uri.partition(":")[0].lower()
    try:
        parts = urllib.parse.urlsplit(uri)
        host, port = parts.hostname, parts.port or PORTS[scheme]
    except (ValueError, KeyError):
        return kind, otherwise
    checked = next((source.get_property(name) for name in ("ssl-strict", "tls-validation-flags")
                    if source.find_property(name)), True)
    client = Gio.SocketClient.new()
    client.set_timeout(PATIENCE)
    client.set_tls(bool(checked) and scheme in ("https", "rtsps"))
    try:
        client.connect_to_host(host or "", port, None).close(None)
    except GLib.Error as error:
        if error.matches(Gio.tls_error_quark(), Gio.TlsError.BAD_CERTIFICATE):
            return "CERTIFICATE", "its certificate is not trusted; #certificate=any at the end of the URI accepts any"
        return kind, error.message
    return kind, "the connection to the server was lost"
