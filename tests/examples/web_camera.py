# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP camera on a free port of 127.0.0.1 or ::1, for tests: Motion JPEG at /video, single pictures at /snapshot,
and consecutive pictures without parts at /row. Options in the query: pictures=2 (then it sends nothing more, and ends
the answer only with end=yes), rate=25 per second, sound=before or after each picture, length=no, times=yes, space=no
after a colon, type=image/jpg. There is also an RTSP server that refuses all requests."""

import base64
import functools
import hashlib
import pathlib
import socketserver
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from servers import HttpServer, Server

USER, REALM = "me", "camera"


@functools.cache
def pictures(count=12):
    """JPEG files: black, then a moving ball on black. Each has a comment that makes it larger than 2 KiB. GStreamer
    examines smaller files only when more data follows, and real cameras have none."""
    comment = b"\xff\xfe\x10\x02" + bytes(4096)
    caps = "video/x-raw,format=I420,width=320,height=240,framerate=25/1"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gst-launch-1.0", "-q", "concat", "name=all", "!", "jpegenc", "!", "multifilesink",
                        f"location={folder}/%03d.jpg", "videotestsrc", "pattern=black", "num-buffers=1", "!", caps,
                        "!", "all.", "videotestsrc", "pattern=ball", f"num-buffers={count - 1}", "!", caps, "!",
                        "all."], check=True)
        files = [file.read_bytes() for file in sorted(pathlib.Path(folder).iterdir())]
    return [file[:2] + comment + file[2:] for file in files]


class RefusingRtsp(Server):
    """An RTSP server that refuses each stream with a status and its text."""

    def __init__(self, status):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while request := [line.strip() for line in iter(self.rfile.readline, b"\r\n") if line]:
                    if not request[0]:
                        return
                    number = next(line for line in request if line.lower().startswith(b"cseq")).decode()
                    answer = "200 OK" if request[0].startswith(b"OPTIONS") else status
                    more = f'\r\nWWW-Authenticate: Basic realm="{REALM}"' if status.startswith("401") else ""
                    self.wfile.write(f"RTSP/1.0 {answer}\r\n{number}{more}\r\n\r\n".encode())

        super().__init__(Handler)


class WebCamera(HttpServer):
    """`password`: required with `scheme` (Basic or Digest); empty: none. `status`: of each answer. `certificate`: a PEM
    file with a key, for TLS. `viewers`: more than this many get the status 503."""

    def __init__(self, files, password="", scheme="Basic", certificate=None, viewers=99, **options):
        self.files, self.password, self.scheme, self.viewers = files, password, scheme, viewers
        self.status, self.asked, self.refused, self.watching = 200, [], 0, 0
        self.stopping, self.lock = threading.Event(), threading.Lock()
        self.scheme_of_uri = "https" if certificate else "http"
        super().__init__(certificate=certificate, **options)

    def uri(self, path="/video", user=""):
        return f"{self.scheme_of_uri}://{user}{'@' * bool(user)}{self.place}{path}"

    def close(self):
        self.stopping.set()
        super().close()

    def allowed(self, request):
        given = request.headers.get("Authorization", "")
        if not self.password:
            return True
        if self.scheme == "Basic":
            return given == "Basic " + base64.b64encode(f"{USER}:{self.password}".encode()).decode()
        if not given.startswith("Digest "):
            return False
        fields = urllib.request.parse_keqv_list(urllib.request.parse_http_list(given.removeprefix("Digest ")))

        def digest(*texts):
            return hashlib.md5(":".join(texts).encode()).hexdigest()

        return fields["response"] == digest(
            digest(USER, REALM, self.password), fields["nonce"], fields["nc"], fields["cnonce"], fields["qop"],
            digest("GET", fields["uri"]))

    def answer(self, request):
        parts = urllib.parse.urlsplit(request.path)
        how = dict(urllib.parse.parse_qsl(parts.query))
        if not self.allowed(request):
            request.send_response(401)
            more = ', nonce="abc", qop="auth", algorithm=MD5' if self.scheme == "Digest" else ""
            request.send_header("WWW-Authenticate", f'{self.scheme} realm="{REALM}"{more}')
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        with self.lock:
            self.asked.append(request.path)
            full = self.watching >= self.viewers
            self.watching += not full
            self.refused += full
        if full or self.status != 200:
            request.send_error(503 if full else self.status)
        if full:
            return
        try:
            if self.status == 200:
                getattr(self, "send_" + parts.path.strip("/"))(request, how)
        finally:
            with self.lock:
                self.watching -= 1

    def send_snapshot(self, request, how):
        picture = self.files[len(self.asked) % len(self.files)]
        request.send_response(200)
        request.send_header("Content-Type", "image/jpeg")
        if how.get("length") != "no":
            request.send_header("Content-Length", str(len(picture)))
        request.end_headers()
        request.wfile.write(picture)

    def send_row(self, request, how):
        request.send_response(200)
        request.end_headers()
        self.send(request, how, lambda picture: [picture])

    def send_video(self, request, how):
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace;boundary=part")
        request.end_headers()
        sound = [self.part("audio/basic", b"\xff" * 800, how)]

        def parts(picture):
            return [*(sound if how.get("sound") == "before" else []),
                    self.part(how.get("type", "image/jpeg"), picture, how),
                    *(sound if how.get("sound") == "after" else [])]

        self.send(request, how, parts)

    def part(self, kind, data, how):
        length = "" if how.get("length") == "no" else f"Content-Length: {len(data)}\r\n"
        times = "X-Timestamp: 1764301200.040000\r\n" if how.get("times") else ""
        space = " " * (how.get("space") != "no")
        return f"--part\r\nContent-Type:{space}{kind}\r\n{length}{times}\r\n".encode() + data + b"\r\n"

    def send(self, request, how, parts):
        """`pictures`. If nothing else marks the end of the last one, the start of another one follows."""
        count, rate = int(how.get("pictures", 0)), float(how.get("rate", 25))
        number = 0
        while not self.stopping.is_set() and (not count or number < count):
            for part in parts(self.files[number % len(self.files)]):
                request.wfile.write(part)
            number += 1
            self.stopping.wait(1 / rate if number < count or not count else 0)
        if how.get("length") == "no":
            request.wfile.write(b"--part\r\n")
        if how.get("end") != "yes":
            self.stopping.wait()
