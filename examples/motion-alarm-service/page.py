# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of the wall: an HTTP server with the picture of all cameras, their names, their states and the clips.

    /             page.html, which requests the rest
    /state.json   the cameras, as state_of() makes them
    /wall.mjpg    the picture of the wall as Motion JPEG, which is encoded only while somebody is watching
    /clips/CAMERA/FILE"""

import http.server
import json
import pathlib
import re
import threading
import urllib.parse

from common import Failure

HTML = pathlib.Path(__file__).resolve().parent / "page.html"
VIEWERS = 16  # maximum number of viewers of the picture at a time
CLIPS = 50  # maximum number of clips of a camera on the page
PATIENCE = 10  # seconds without a picture until a viewer is disconnected; its browser shows that, and reconnects
TYPES = {"mp4": "video/mp4", "webm": "video/webm", "mkv": "video/x-matroska"}


def state_of(cameras, wall) -> dict:
    """The state that the page shows. Places are shares of the wall."""
    shown = {camera.key: wall.place(index) for index, camera in enumerate(wall.shown)} if wall else {}
    return {
        "wall": {"width": wall.settings.width, "height": wall.settings.height} if wall else None,
        "cameras": [
            {
                "name": camera.name,
                "title": camera.settings.title,
                "up": camera.up,
                "trouble": camera.trouble,
                "motion": camera.motion,
                "objects": camera.objects,
                "fps": round(camera.fps, 1),
                "place": (
                    [
                        part / whole
                        for part, whole in zip(shown[camera.name], 2 * (wall.settings.width, wall.settings.height))
                    ]
                    if camera.name in shown
                    else None
                ),
                "clips": (
                    [
                        {key: row[key] for key in ("file", "begin", "seconds", "complete")}
                        for row in reversed(camera.recorder.folder.rows[-CLIPS:])
                    ]
                    if camera.recorder
                    else None
                ),
            }
            for camera in cameras
        ],
    }


def range_of(header, size):
    """The first byte and the length that a request with this Range header gets from a file; None if the range is
    outside the file."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if not match or not any(match.groups()):
        return 0, size
    first, last = (int(each) if each else None for each in match.groups())
    if first is None:
        first, last = max(0, size - last), None
    last = min(size - 1, size - 1 if last is None else last)
    return (first, last - first + 1) if first <= last else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def begin(self, status, kind, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        for name, value in {
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; frame-ancestors 'self'",
            **headers,
        }.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def answer(self, kind, content, status=200):
        self.begin(status, kind, len(content))
        self.wfile.write(content)

    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        try:
            if path == "/":
                self.answer("text/html; charset=utf-8", HTML.read_bytes())
            elif path == "/state.json":
                self.answer("application/json", json.dumps(state_of(self.server.cameras, self.server.wall)).encode())
            elif path == "/wall.mjpg" and self.server.wall:
                self.send_wall()
            elif match := re.fullmatch("/clips/([^/]+)/([^/]+)", path):
                self.send_clip(*match.groups())
            else:
                self.answer("text/plain", b"there is no such page\n", 404)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def send_wall(self):
        with self.server.lock:
            if self.server.viewers >= VIEWERS:
                return self.answer("text/plain", b"too many look at the wall\n", 503)
            self.server.viewers += 1
            self.server.wall.watched(True)
        try:
            self.begin(200, "multipart/x-mixed-replace;boundary=picture")
            number = self.server.wall.picture[0]
            while True:
                number, jpeg = self.server.wall.picture_after(number, PATIENCE)
                if not jpeg:
                    return None
                self.wfile.write(
                    b"--picture\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b\r\n" % (len(jpeg), jpeg)
                )
        finally:
            with self.server.lock:
                self.server.viewers -= 1
                self.server.wall.watched(self.server.viewers > 0)

    def send_clip(self, name, file):
        recorder = next((each.recorder for each in self.server.cameras if each.name == name), None)
        try:
            if not recorder or file not in [row["file"] for row in recorder.folder.rows]:
                raise FileNotFoundError
            stream = open(pathlib.Path(recorder.folder.path, file), "rb")
        except OSError:
            return self.answer("text/plain", b"there is no such clip\n", 404)
        with stream:
            size, wanted = stream.seek(0, 2), self.headers.get("Range")
            part = range_of(wanted, size)
            if not part:
                return self.begin(416, "text/plain", 0, Content_Range=f"bytes */{size}")
            first, length = part
            more = {"Content_Range": f"bytes {first}-{first + length - 1}/{size}"} if length < size else {}
            self.begin(206 if more else 200, TYPES[file.rpartition(".")[2]], length, Accept_Ranges="bytes", **more)
            stream.seek(first)
            while length > 0 and (block := stream.read(min(length, 2**18))):
                self.wfile.write(block)
                length -= len(block)
        return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def serve(settings, cameras, wall):
    """Serves the page in threads. Raises a Failure if that is impossible."""
    try:
        server = Server((settings.host, settings.port), Handler)
    except (OSError, OverflowError) as error:
        raise Failure(
            f"cannot listen on {settings.host}:{settings.port}: {getattr(error, 'strerror', error)}"
        ) from error
    server.cameras, server.wall, server.viewers, server.lock = cameras, wall, 0, threading.Lock()
    threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
    return server
