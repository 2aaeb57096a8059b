# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTSP camera on a free port of 127.0.0.1 or ::1, for tests. It sends packets that were made earlier, only over TCP,
and then nothing more. Like cheap cameras, it sends no RTCP."""

import contextlib
import re
import socket
import socketserver
import threading

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

from servers import Server  # noqa: E402

METADATA = "m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\n"


class Track:
    """The output of a pipeline that ends with a payloader: `media`, its part of the SDP, and `packets`, each with the
    second at which it is due."""

    def __init__(self, description):
        Gst.init(None)
        pipeline = Gst.parse_launch(f"{description} ! appsink name=sink sync=false")
        sink, self.packets, caps = pipeline.get_by_name("sink"), [], None
        pipeline.set_state(Gst.State.PLAYING)
        while sample := sink.emit("pull-sample"):
            buffer, caps = sample.get_buffer(), caps or sample.get_caps()
            self.packets.append((buffer.pts, buffer.extract_dup(0, buffer.get_size())))
        pipeline.set_state(Gst.State.NULL)
        if not self.packets:
            raise RuntimeError(f"no packets of {description}")
        first = self.packets[0][0]  # x265enc begins at 1000 hours
        self.packets = [((pts - first) / Gst.SECOND, data) for pts, data in self.packets]
        self.media = sdp_of(dict(re.findall(r'([\w-]+)=\([a-z0-9]+\)("[^"]*"|[^,;]+)', caps.to_string())))


def sdp_of(fields):
    """The part of a track in an SDP, from its caps."""
    fields = {name: value.strip('"') for name, value in fields.items()}
    number, channels = fields["payload"], fields.get("encoding-params")
    known = "media", "payload", "clock-rate", "encoding-name", "encoding-params", "ssrc", "timestamp-offset"
    more = ";".join(f"{name}={value}" for name, value in fields.items()
                    if name not in known and name != "seqnum-offset" and name[:2] not in ("a-", "x-"))
    return (f"m={fields['media']} 0 RTP/AVP {number}\r\na=rtpmap:{number} {fields['encoding-name']}/"
            f"{fields['clock-rate']}{f'/{channels}' if channels else ''}\r\n"
            + (f"a=fmtp:{number} {more}\r\n" if more else ""))


def picture(count, rate="10/1", size=(320, 240)):
    return (f"videotestsrc pattern=ball num-buffers={count} ! "
            f"video/x-raw,format=I420,width={size[0]},height={size[1]},framerate={rate}")


# The encoder and the payloader of each codec. Between them, concat can insert pictures of another size.
CODECS = {
    "jpeg": ("jpegenc", "rtpjpegpay pt=26"),
    "h264": ("openh264enc", "h264parse config-interval=-1 ! rtph264pay pt=96 config-interval=-1"),
    "h265": ("x265enc tune=zerolatency speed-preset=ultrafast",
             "h265parse config-interval=-1 ! rtph265pay pt=96 config-interval=-1"),
}
SOUNDS = {
    "pcmu": "audiotestsrc num-buffers=40 ! audio/x-raw,rate=8000 ! mulawenc ! rtppcmupay",
    "pcma": "audiotestsrc num-buffers=40 ! audio/x-raw,rate=8000 ! alawenc ! rtppcmapay",
    "aac": "audiotestsrc num-buffers=40 ! avenc_aac ! aacparse ! rtpmp4gpay pt=97",
}


def has(codec):
    Gst.init(None)
    return bool(Gst.ElementFactory.find(CODECS[codec][0].partition(" ")[0]))


def video(codec, count, **more):
    encoder, payloader = CODECS[codec]
    return Track(f"{picture(count, **more)} ! {encoder} ! {payloader}")


def changing(codec, count, *sizes):
    """A video that changes its size."""
    encoder, payloader = CODECS[codec]
    parts = " ".join(f"{picture(count, size=size)} ! {encoder} ! all." for size in sizes)
    return Track(f"{parts} concat name=all ! {payloader}")


class Silent:
    """A track without data: the metadata of a camera that sees nothing."""

    media, packets = METADATA, []


class RtspCamera(Server):
    """`sessions`: the tracks of the sessions in order; the last ones repeat. `ends`: whether the connection ends with
    the last packet. `viewers`: more than this many get the status 453. `certificate`: a PEM file with a key, for TLS.
    `go_on`: after the first picture, the camera sends nothing until this is set."""

    def __init__(self, *sessions, viewers=99, certificate=None, ends=False, **options):
        self.sessions, self.viewers, self.ends = list(sessions), viewers, ends
        self.watching = self.played = self.refused = self.torn_down = 0
        self.lock, self.stopping, self.go_on = threading.Lock(), threading.Event(), threading.Event()
        self.go_on.set()
        camera = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                Session(camera, self).run()

        super().__init__(Handler, certificate=certificate, **options)
        self.uri = f"rtsp{'s' * bool(certificate)}://{self.place}/stream"

    def close(self):
        self.stopping.set()
        self.go_on.set()
        super().close()


class Session:

    def __init__(self, camera, handler):
        self.camera, self.handler, self.input, self.output = camera, handler, handler.rfile, handler.wfile
        self.writing, self.gone, self.channels, self.counted = threading.Lock(), threading.Event(), {}, False
        self.tracks = camera.sessions[min(camera.played, len(camera.sessions) - 1)]

    def run(self):
        try:
            while request := self.read():
                method, uri, headers = request
                self.answer(method, uri, headers)
                if method == "TEARDOWN":
                    return
        finally:
            self.gone.set()
            with self.camera.lock:
                self.camera.watching -= self.counted

    def read(self):
        """Reads a request; skips RTCP from the viewer."""
        while (first := self.input.read(1)) == b"$":
            self.input.read(int.from_bytes(self.input.read(3)[1:], "big"))
        if not first:
            return None
        method, uri, _ = (first + self.input.readline()).decode().split()
        headers = dict(line.decode().strip().split(": ", 1) for line in iter(self.input.readline, b"\r\n"))
        self.input.read(int(headers.get("Content-Length", 0)))
        return method, uri, headers

    def answer(self, method, uri, headers):
        status, more, body = "200 OK", {}, ""
        if method == "OPTIONS":
            more["Public"] = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER"
        elif method == "DESCRIBE":
            with self.camera.lock:
                self.counted = self.camera.watching < self.camera.viewers
                self.camera.watching += self.counted
                self.camera.refused += not self.counted
            if self.counted:
                more["Content-Type"] = "application/sdp"
                body = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\na=control:*\r\n" + "".join(
                    f"{track.media}a=control:track{number}\r\n" for number, track in enumerate(self.tracks))
            else:
                status = "453 Not Enough Bandwidth"
        elif method == "SETUP":
            if "TCP" in headers["Transport"]:
                number = int(uri.rpartition("track")[2])
                self.channels[number] = 2 * number
                more["Transport"] = f"RTP/AVP/TCP;unicast;interleaved={2 * number}-{2 * number + 1}"
            else:
                status = "461 Unsupported Transport"
        elif method == "TEARDOWN":
            self.camera.torn_down += 1
        lines = [f"RTSP/1.0 {status}", f"CSeq: {headers['CSeq']}", "Session: 1",
                 *(f"{name}: {value}" for name, value in more.items()), f"Content-Length: {len(body)}", "", body]
        self.write("\r\n".join(lines).encode())
        if method == "PLAY":
            self.camera.played += 1
            threading.Thread(target=self.play, daemon=True).start()

    def write(self, data):
        with self.writing:
            self.output.write(data)
            self.output.flush()

    def play(self):
        packets = sorted((when, self.channels[number], data) for number, track in enumerate(self.tracks)
                         for when, data in track.packets if number in self.channels)
        now = packets[0][0] if packets else 0
        with contextlib.suppress(OSError, ValueError):
            for when, channel, data in packets:
                if when > now:
                    self.camera.go_on.wait()
                self.gone.wait(max(0, when - now))
                now = max(now, when)
                if self.gone.is_set() or self.camera.stopping.is_set():
                    return
                self.write(b"$" + bytes([channel]) + len(data).to_bytes(2, "big") + data)
            if self.camera.ends:
                self.handler.request.shutdown(socket.SHUT_RDWR)
