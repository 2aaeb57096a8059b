# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests cameras that are lost and come back, the wall during the loss, and the metrics of both."""

import signal
import unittest

from helpers import SECRET, Case, launch, wait_for

import rtsp_camera
from web_camera import pictures

BLUE = "0xff0000ff"


class Wall:
    """The pictures of a wall of two cameras, 640x240, side by side, which the service saves in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.table = f"""
[wall]
width = 640
height = 240
fps = 10
columns = 2
hold = 2.5
sink = "jpegenc ! multifilesink location={folder}/wall-%06d.jpg"
"""

    def count(self):
        """The number of pictures so far."""
        return max((int(file.stem.split("-")[1]) for file in self.folder.glob("wall-*.jpg")), default=0)

    def picture(self, number=None):
        """The pixels of a picture, or of the last complete one: for each camera a list of (R, G, B)."""
        if number is None:
            number = wait_for("two pictures", self.count) - 1
        file, raw = self.folder / f"wall-{number:06d}.jpg", self.folder / "raw"
        launch(f"filesrc location={file} ! jpegdec ! videoconvert ! video/x-raw,format=RGB,width=640,height=240 ! "
               f"filesink location={raw}")
        data = raw.read_bytes()
        rows = [data[start : start + 640 * 3] for start in range(0, len(data), 640 * 3)]
        pixels = [[row[x : x + 3] for x in range(0, 640 * 3, 3)] for row in rows]
        return [[pixel for row in pixels for pixel in row[x : x + 320]] for x in (0, 320)]

    def kind(self, number=None):
        """What the first place of a picture shows: `camera`, `no signal` or something else."""
        pixels = self.picture(number)[0]
        blue = sum(pixel[2] > 150 and pixel[0] < 100 for pixel in pixels) / len(pixels)
        white = sum(min(pixel) > 150 for pixel in pixels)
        if blue > 0.8:
            return "camera"
        return "no signal" if blue == 0 and 50 < white < 5000 else f"blue {blue}, white {white}"


class Sources(Case):
    def test_rtsp_killed_and_back_beside_the_wall(self):
        door, wall = self.rtsp(BLUE), Wall(self.folder)
        found, service = self.watched(wall.table + f"""
[camera.door]
uri = "{door.uri}"
source = {{ protocols = "tcp", latency = 100 }}
[camera.yard]
uri = "test"
""")
        found.expect("cudavision/door/motion", b"ON")
        found.expect("cudavision/door/status", b"online")
        wait_for("the camera on the wall", lambda: wall.kind() == "camera")
        door.kill()
        found.expect("cudavision/door/status", b"offline")
        found.expect("cudavision/door/motion", b"OFF")
        found.expect("cudavision/door/objects", b"0")
        wait_for("what to do",
                 lambda: b"is it switched on and connected" in found.last.get("cudavision/door/problem", b""))
        names = [event["event"] for event in found.events("door")]
        self.assertEqual((names.count("begin"), names.count("enter")), (names.count("end"), names.count("leave")))
        wait_for("no signal on the wall", lambda: wall.kind() == "no signal")
        last = next(number for number in range(wall.count() - 1, 0, -1) if wall.kind(number) == "camera")
        # The last picture stayed for 2.5 s: 25 pictures, or fewer on a busy machine. The ball moves in all others.
        self.assertEqual(wall.picture(last)[0], wall.picture(last - 5)[0])
        yard = wall.picture()[1]
        wait_for("the other camera moves on the wall", lambda: wall.picture()[1] != yard)
        self.assertEqual((1, 0), tuple(service.metrics()["camera_up", name] for name in ("yard", "door")))
        wait_for("tries", lambda: service.metrics()["camera_reconnects_total", "door"] >= 2)
        door.start()
        found.expect("cudavision/door/status", b"online")
        found.expect("cudavision/door/problem", b"none")
        wait_for("the camera on the wall again", lambda: wall.kind() == "camera")
        self.assertEqual(0, service.metrics()["camera_reconnects_total", "yard"])
        service.wait_metric("camera_fps", "door", least=0.01)
        self.assertEqual(0, service.stop())
        self.assertFalse([topic for topic, payload, _ in found.messages
                          if SECRET in topic or SECRET.encode() in payload])

    def test_rtsp_hangs(self):
        door = self.rtsp(BLUE)
        timeout = 1
        while True:  # a busy machine may need longer for the first frame
            timeout *= 2
            service = self.service(f'[camera.door]\nuri = "{door.uri}"\n', timeout=timeout)
            tried = lambda: service.metrics()["camera_up", "door"] or "door: lost: " in service.log  # noqa: E731
            wait_for("a first try", tried)
            if "door: lost: " not in service.log:
                break
            service.stop(signal.SIGKILL)
            service.log_file.unlink()
        door.signal(signal.SIGSTOP)
        wait_for("the loss", lambda: service.metrics()["camera_up", "door"] == 0)
        lost = f"door: lost: no frame arrived for {timeout} s: check its power and its cable"
        wait_for("the line of the log", lambda: lost in service.log)
        service.wait_metric("camera_reconnects_total", "door")
        door.signal(signal.SIGCONT)
        service.wait_metric("camera_up", "door")
        self.assertEqual(0, service.stop())

    def test_a_zone_that_leaves_the_picture_is_no_loss(self):
        """The size of the picture is known only after the camera is opened."""
        door = self.rtsp(BLUE)
        found, service = self.watched(f"""
[camera.door]
uri = "{door.uri}"
[camera.door.cudadiff]
zones = "way in: 0,0 640,0 640,100"
""")
        problem = ("wrong configuration: [camera.door.cudadiff]: zones has way in (0,0 640,0 640,100), "
                   "which leaves the frame of 320×240 at 640,0")
        found.expect("cudavision/door/problem", problem.encode())
        wait_for("the line of the log", lambda: f"door: {problem}; the next attempt is in 1.0 s" in service.log)
        self.assertNotIn("door: lost", service.log)
        self.assertEqual(0, service.stop())

    def test_rtsp_with_another_codec(self):
        """A camera that serves one viewer restarts with another codec and another size. It sends no RTCP."""
        codecs = [codec for codec in ("h264", "h265") if rtsp_camera.has(codec)] + ["jpeg"]
        sizes = (320, 240), (640, 480), (160, 128)
        sessions = [[rtsp_camera.video(codec, 10, size=size)] for codec, size in zip(codecs, sizes)]
        door = rtsp_camera.RtspCamera(*sessions, viewers=1, ends=True)
        self.addCleanup(door.close)
        service = self.service(f'[camera.door]\nuri = "{door.uri}"\n')
        wait_for("a session of each codec", lambda: door.played > len(codecs))
        service.wait_metric("camera_frames_total", "door", least=5 * len(codecs))
        service.wait_metric("camera_reconnects_total", "door", least=len(codecs))
        self.assertEqual(0, door.refused)
        self.assertEqual(0, service.stop())

    def test_http_ends_and_a_wrong_password(self):
        door = self.rtsp(BLUE)
        launch(f"audiotestsrc num-buffers=20 ! wavenc ! filesink location={self.folder}/sound.wav")
        camera = self.web(pictures(20))
        uri = camera.uri(f"/video?pictures=20&end=yes&pwd={SECRET}", f"me:{SECRET}")
        service = self.service(f"""
[camera.yard]
uri = "{uri}"
source = {{ is-live = true, do-timestamp = true }}
[camera.door]
uri = "{door.uri.replace('me:', 'you:')}"
[camera.nowhere]
uri = "rtsp://me:${{DOOR_PASSWORD}}@127.0.0.1:9/x?password={SECRET}"
[camera.sound]
uri = "{self.folder}/sound.wav"
""", {"DOOR_PASSWORD": SECRET})
        wait_for("three connections", lambda: len(camera.asked) >= 3)
        self.assertIn(SECRET, camera.asked[0])  # the camera gets it
        service.wait_metric("camera_frames_total", "yard", least=25)
        service.wait_metric("camera_reconnects_total", "yard", least=2)
        for name in ("door", "nowhere", "sound"):
            service.wait_metric("camera_reconnects_total", name)
            self.assertEqual(0, service.metrics()["camera_frames_total", name])
        wait_for("the line of the log", lambda: "sound: lost: there is no video in it" in service.log)
        self.assertRegex(service.log, "door: lost: .*: correct the user and the password in its uri;")
        self.assertRegex(service.log,
                         "nowhere: lost: .*: is it switched on and connected, and is 127.0.0.1:9 right[?];")
        text = service.text_of_metrics()
        self.assertNotIn(SECRET, text)
        self.assertEqual({"yard", "door", "nowhere", "sound"},
                         {key[1] for key in service.metrics() if key[0] == "camera_up"})
        self.assertLessEqual({f"cudavision_camera_{name}" for name in ("frames_total", "fps", "up", "motion", "objects",
                                                                       "reconnects_total", "events_total")},
                             {line.split("{")[0] for line in text.splitlines()})
        self.assertEqual(0, service.stop())


if __name__ == "__main__":
    unittest.main()
