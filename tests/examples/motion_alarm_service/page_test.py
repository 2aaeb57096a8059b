# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the page of the wall: names, states, the picture of all cameras, and clips."""

import collections
import http.client
import json
import socket
import types
import unittest
import urllib.error
import urllib.request

from helpers import HANGS, SECRET, Case, free_port, launch, wait_for

import browser
import page
import programs


class Units(unittest.TestCase):
    def test_ranges(self):
        for header, expected in {
            "bytes=10-19": (10, 10), "bytes=90-200": (90, 10), "bytes=-30": (70, 30), "bytes=100-": None,
            "bytes=20-10": None, **dict.fromkeys((None, "bytes=0-", "bytes=-200", "bytes=-", "lines=1-2",
                                                  "bytes=0-1,5-6"), (0, 100))}.items():
            self.assertEqual(expected, page.range_of(header, 100), header)
        self.assertIsNone(page.range_of("bytes=0-", 0))


class Page(Case):
    def watch(self, tables):
        """A service with the page, a wall and recordings. `tables` begin inside the recording table."""
        return self.service(f"[page]\nport = {self.port}\n[wall]\nwidth = 640\nheight = 240\n"
                            f'[recording]\nfolder = "{self.folder}/clips"{tables}')

    def get(self, path, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=HANGS) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def state(self):
        try:
            return {each["name"]: each for each in json.loads(self.get("/state.json")[2])["cameras"]}
        except urllib.error.URLError:  # it does not listen yet
            return collections.defaultdict(dict)

    def picture(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS)
        self.addCleanup(connection.close)
        connection.request("GET", "/wall.mjpg")
        answer = connection.getresponse()
        self.assertEqual("multipart/x-mixed-replace;boundary=picture", answer.getheader("Content-Type"))
        self.assertEqual((b"--picture\r\n", b"Content-Type: image/jpeg\r\n"), (answer.readline(), answer.readline()))
        length = int(answer.readline().split(b":")[1])
        self.assertEqual(b"\r\n", answer.readline())
        return answer.read(length)

    def test_the_page(self):
        door, self.port = self.rtsp(), free_port()
        service = self.watch(f"""
longest = 5
[camera.door]
title = 'The <b>door</b> & "yard"'
uri = "{door.uri}"
recording = true
[camera.gone]
uri = "rtsp://me:{SECRET}@127.0.0.1:9/x"
[camera.hidden]
uri = "test"
wall = false
""")
        wait_for("a clip", lambda: self.state()["door"].get("clips"))
        state = self.state()
        self.assertEqual(['The <b>door</b> & "yard"', "gone", "hidden"], [each["title"] for each in state.values()])
        self.assertEqual([[0, 0, 0.5, 1], [0.5, 0, 0.5, 1], None], [each["place"] for each in state.values()])
        self.assertTrue(state["door"]["up"] and state["door"]["motion"] and not state["gone"]["up"])
        self.assertIn("is it switched on and connected, and is 127.0.0.1:9 right?", state["gone"]["trouble"])
        self.assertIsNone(state["gone"]["clips"])
        status, headers, html = self.get("/")
        self.assertEqual((200, "text/html; charset=utf-8"), (status, headers["Content-Type"]))
        self.assertNotIn(b"http://", html)  # the page loads nothing from the network
        self.assertNotIn(b"https://", html)
        # Anybody can get the picture, even after a while without viewers.
        for _ in range(2):
            self.show(self.picture(), 640, 240)
        # Clips can be requested whole and in part, as players do. Other files cannot.
        clip = state["door"]["clips"][-1]["file"]
        content = (self.folder / "clips" / "door" / clip).read_bytes()
        status, headers, body = self.get(f"/clips/door/{clip.replace('+', '%2B')}")
        self.assertEqual((200, "video/x-matroska", content), (status, headers["Content-Type"], body))
        status, headers, body = self.get(f"/clips/door/{clip}", Range="bytes=100-199")
        self.assertEqual((206, f"bytes 100-199/{len(content)}", content[100:200]),
                         (status, headers["Content-Range"], body))
        self.assertEqual(416, self.get(f"/clips/door/{clip}", Range=f"bytes={len(content)}-")[0])
        for path in ("/clips/door/clips.json", f"/clips/gone/{clip}", "/clips/door/..%2Fdoor%2F" + clip,
                     "/clips/../cameras.toml", "/cameras.toml", "/clips/door/%2Fetc%2Fpasswd", "/no"):
            self.assertEqual(404, self.get(path)[0], path)
        self.assertNotIn(SECRET.encode(), html + self.get("/state.json")[2])
        self.assertEqual(0, service.stop())

    def test_hostile_requests(self):
        """Each request is refused, and the page still works afterwards."""
        self.port = free_port()
        page.serve(types.SimpleNamespace(host="127.0.0.1", port=self.port), [], None)
        for request, status in ((b"POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n", b"501"),
                                (b"DELETE /clips/door/x HTTP/1.1\r\n\r\n", b"501"),
                                (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"414"),
                                (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", b"431"),
                                (b"GET http://[ HTTP/1.1\r\n\r\n", b"404"),
                                (b"GET /clips/../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
                                (b"GET /clips/%00/%00 HTTP/1.1\r\n\r\n", b"404")):
            with socket.create_connection(("127.0.0.1", self.port), HANGS) as client:
                client.sendall(request)
                line = client.makefile("rb").readline()
            self.assertIn(status, line, request[:40])
            self.assertEqual(200, self.get("/")[0])

    @unittest.skipIf(browser.missing, f"no {browser.missing} (WITH=browser tests/run.sh installs it)")
    @unittest.skipUnless(programs.has("openh264enc"), "no openh264enc")
    def test_in_a_browser(self):
        clip, self.port = self.folder / "clip.mp4", free_port()
        launch("videotestsrc pattern=ball num-buffers=150 ! "
               "video/x-raw,format=I420,width=320,height=240,framerate=15/1 ! openh264enc gop-size=15 ! h264parse ! "
               f"mp4mux ! filesink location={clip}")
        service = self.watch(f"""
[camera.ball]
title = 'A <img src=x onerror="document.title=1"> ball'
uri = "{clip}"
recording = true
[camera.gone]
title = "Yard"
uri = "rtsp://127.0.0.1:9/x"
""")
        wait_for("a clip", lambda: self.state()["ball"].get("clips"))
        chromium = browser.start(self.folder, "1100,900", "none")  # the picture of the wall has no end
        self.addCleanup(chromium.quit)
        chromium.get(f"http://127.0.0.1:{self.port}/")
        ask = lambda script: chromium.execute_script(f"return {script}")  # noqa: E731
        wait_for("the picture", lambda: ask("document.querySelector('#wall img')?.naturalWidth") == 640)
        names = "[...document.querySelectorAll('#wall a')].map(each => each.textContent)"
        wait_for("the names", lambda: ask(names) == ['A <img src=x onerror="document.title=1"> ball', "Yard"])
        self.assertIn("is it switched on and connected",
                      ask("document.querySelector('#camera-gone .trouble').textContent"))
        click = "document.querySelector('#camera-ball button')?.click(), document.querySelector('dialog').open"
        wait_for("the clip", lambda: ask(click))
        wait_for("it plays", lambda: ask("document.querySelector('video').currentTime") > 0.1)
        self.assertEqual("Cameras", chromium.title)
        self.assertEqual([], [line for line in chromium.get_log("browser") if "favicon" not in line["message"]])
        service.stop()
        wait_for("it says so", lambda: not ask("document.getElementById('gone').hidden"))


if __name__ == "__main__":
    unittest.main()
