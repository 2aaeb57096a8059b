# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests cameras that send wrong data (garbage, another size, another format), and a clock that is changed.
docs/faults.md lists all faults and their tests."""

import datetime
import glob
import itertools
import random
import time
import unittest

from helpers import Case, launch, make_clip, wait_for

from servers import HttpServer


def picture(folder, width=320, height=240, form="I420", pattern="ball"):
    file = folder / f"{form}-{width}x{height}-{pattern}.jpg"
    launch(f"videotestsrc num-buffers=1 pattern={pattern} ! video/x-raw,format={form},width={width},height={height} ! "
           f"jpegenc ! filesink location={file}")
    return file.read_bytes()


class Camera(HttpServer):
    """Motion JPEG over HTTP. Each connection sends the items of `script`, which are pictures or other bytes, one every
    50 ms. Then it repeats the last two forever."""

    def __init__(self, script):
        self.script, self.connections = script, 0
        super().__init__()

    def answer(self, request):
        self.connections += 1
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace;boundary=picture")
        request.end_headers()
        for body in itertools.chain(self.script, itertools.cycle(self.script[-2:])):  # until the service disconnects
            request.wfile.write(b"--picture\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b\r\n"
                                % (len(body), body))
            time.sleep(0.05)


class Faults(Case):
    def watch(self, script, environment=None):
        """Starts a service with this camera (`door`) and one without faults (`yard`). Returns its output."""
        camera = Camera(script)
        self.addCleanup(camera.close)
        found, service = self.watched(f"""
[camera.door]
uri = "http://{camera.place}/stream"
source = {{ is-live = true, do-timestamp = true }}
[camera.yard]
uri = "test"
""", environment)
        found.expect("cudavision/door/status", b"online")
        found.expect("cudavision/yard/status", b"online")
        return camera, found, service

    def goes_on(self, service, script):
        """Frames from both cameras arrive after the end of the script."""
        for name in ("door", "yard"):
            count = service.metrics()["camera_frames_total", name]
            service.wait_metric("camera_frames_total", name, least=count + 20)
        service.wait_metric("camera_frames_total", "door", least=len(script))
        self.assertIsNone(service.process.poll())
        self.assertEqual(0, service.metrics()["camera_reconnects_total", "yard"])

    def test_garbage(self):
        """Some pictures are garbage, have a damaged middle, or declare a wrong size. Later ones are shown, or the
        camera is opened again."""
        numbers = random.Random(7)
        good = picture(self.folder)
        noise = [numbers.randbytes(numbers.randrange(1, 20000)) for _ in range(8)]
        torn = [good[: len(good) // 3] + numbers.randbytes(500) + good[2 * len(good) // 3 :] for _ in range(8)]
        at = good.index(b"\xff\xc0") + 5  # height and width in the frame header
        lies = [good[:at] + numbers.randbytes(4) + good[at + 4 :] for _ in range(8)]
        camera, found, service = self.watch([good] * 10 + noise + [good] * 5 + torn + [good] * 5 + lies + [good] * 5)
        wait_for("frames after the garbage",
                 lambda: camera.connections > 1 or service.metrics()["camera_frames_total", "door"] >= 25)
        self.goes_on(service, [])
        self.assertEqual(0, service.stop())

    def test_another_size_and_format(self):
        """The camera is not opened again. Motion is found in the new pictures."""
        first, second = picture(self.folder), picture(self.folder, 640, 360, "Y444")
        gray, black = picture(self.folder, 96, 64, "GRAY8"), picture(self.folder, 640, 360, "Y444", "black")
        script = [first] * 20 + [gray] * 20 + [second, black] * 10
        camera, found, service = self.watch(script)
        self.goes_on(service, script)
        begun = len([event for event in found.events("door") if event["event"] == "begin"])
        wait_for("motion in the last pictures", lambda: found.last.get("cudavision/door/motion") == b"ON" or begun)
        self.assertEqual((1, 0), (camera.connections, service.metrics()["camera_reconnects_total", "door"]))
        self.assertEqual(0, service.stop())

    def test_a_clock_that_is_set(self):
        """The clock of the machine goes back one hour, and then 30 days forward. No frame is late, no camera is lost,
        and events have the time of the clock."""
        faketime = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not faketime:
            self.skipTest("no faketime")
        shift = self.folder / "shift"
        shift.write_text("+0\n")
        camera, found, service = self.watch(
            [picture(self.folder)] * 20,
            {"LD_PRELOAD": faketime[0], "FAKETIME_TIMESTAMP_FILE": str(shift), "FAKETIME_NO_CACHE": "1",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        for text, moved in (("-1h", datetime.timedelta(hours=-1)), ("+30d", datetime.timedelta(days=30))):
            shift.write_text(text + "\n")
            seen = len(found.events("yard"))
            self.goes_on(service, [])
            wait_for(f"an event after {text}", lambda: len(found.events("yard")) > seen + 1)
            at = datetime.datetime.fromisoformat(found.events("yard")[-1]["at"])
            away = at - datetime.datetime.now(datetime.timezone.utc) - moved
            self.assertLess(abs(away), datetime.timedelta(minutes=20), text)
        self.assertEqual(0, service.metrics()["camera_reconnects_total", "door"])
        self.assertEqual((1, b"online"), (camera.connections, found.last["cudavision/door/status"]))
        self.assertEqual(0, service.stop())

    def test_a_clip_that_was_cut_off(self):
        """The second half of the file is missing."""
        whole, half = self.folder / "whole.mkv", self.folder / "half.mkv"
        make_clip(whole, "matroskamux")
        half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
        found, service = self.watched(f'[camera.whole]\nuri = "{whole}"\n[camera.half]\nuri = "{half}"\n')
        said = {name: wait_for(f"the end of {name}", lambda: [text for topic, text, _ in list(found.messages)
                                                              if topic == f"cudavision/{name}/problem"
                                                              and text.startswith(b"lost: ")])[0]
                for name in ("whole", "half")}
        self.assertEqual(b"lost: the stream ended", said["whole"])
        self.assertRegex(said["half"], rb"^lost: the stream ended: its pictures end at [1-5]\.\d s, "
                         rb"but its container declares 6\.5 s$")
        self.assertEqual(0, service.stop())


if __name__ == "__main__":
    unittest.main()
