#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests how motion-alarm, motion_alarm.py and motion-report read cameras: cameras_test.py MOTION_ALARM. The cameras are
on 127.0.0.1 and ::1. Exit status 77 without the bindings of GStreamer or NumPy.

No test depends on the speed of the machine. A camera sends a few pictures and then nothing, so a program that waits for
more pictures never prints what the test waits for."""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import programs
from programs import ALARM_PY, HANGS
import rtsp_camera
from rtsp_camera import RtspCamera, Silent, Track
from web_camera import RefusingRtsp, WebCamera, pictures

ALARM = [os.path.abspath(sys.argv.pop(1))]
EVERY = [*ALARM, "--every=0"]  # prints a line for every frame
REPORT = [str(programs.REPORT)]
PASSWORD = "a#%&1@*b"


class Case(programs.InFolder):
    def camera(self, **options):
        camera = WebCamera(pictures(), **options)
        self.addCleanup(camera.close)
        return camera

    def rtsp(self, *sessions, **options):
        camera = RtspCamera(*sessions, **options)
        self.addCleanup(camera.close)
        return camera

    def start(self, program, *arguments):
        errors = open(self.folder / "errors", "w+", encoding="utf-8")
        self.addCleanup(errors.close)
        process = subprocess.Popen([*program, *arguments], text=True, stdout=subprocess.PIPE, stderr=errors,
                                   cwd=self.folder)
        process.errors = errors
        watchdog = threading.Timer(HANGS, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def lines(self, process, count):
        """The first lines of JSON that a program prints. Fails if it ends earlier."""
        found = []
        while len(found) < count:
            line = process.stdout.readline()
            if not line:
                process.errors.seek(0)
                self.fail(f"it ended with {process.wait(HANGS)}: {process.errors.read()}")
            found.append(json.loads(line))
        return found

    def ends(self, process):
        """Ctrl-C ends the program cleanly."""
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(HANGS))

    def first_lines(self, program, uri, count=1):
        """The first lines of a program, which is then ended."""
        process = self.start(program, uri)
        found = self.lines(process, count)
        self.ends(process)
        return found

    def see_motion(self, camera, *paths):
        """Both alarms see motion in each of these paths."""
        for program in (ALARM, ALARM_PY):
            for path in paths:
                with self.subTest(program=program[-1], path=path):
                    self.assertEqual("begin", self.first_lines(program, camera.uri(path))[0]["event"])

    def says(self, program, *arguments):
        """The message of a program that fails."""
        done = subprocess.run([*program, *arguments], text=True, capture_output=True, timeout=HANGS, cwd=self.folder)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        return done.stderr


class MotionJpeg(Case):
    """The first picture appears immediately, whatever else the camera sends."""

    def test_the_first_picture(self):
        camera = self.camera()
        for how in ("", "&sound=before", "&sound=after", "&length=no", "&times=yes", "&type=image/jpg", "&space=no",
                    "&sound=before&length=no"):
            with self.subTest(how):
                line, = self.first_lines(EVERY, camera.uri(f"/video?pictures=1{how}"))
                self.assertEqual(("none", True), (line["event"], line["time"] is not None and "at" in line))

    def test_motion(self):
        self.see_motion(self.camera(), *(f"/video?pictures=3{how}" for how in ("", "&sound=before", "&rate=5")))

    def test_pictures_in_a_row(self):
        lines = self.first_lines(EVERY, self.camera().uri("/row?pictures=5"), 2)
        self.assertEqual(["none", "begin"], [line["event"] for line in lines])

    def test_a_report(self):
        camera = self.camera()
        for how in ("", "&sound=before", "&length=no"):
            with self.subTest(how):
                subprocess.run([*REPORT, f"--clip={camera.uri(f'/video?pictures=8&rate=10{how}')}",
                                f"--out={self.folder}", "--seconds=0.3"], check=True, timeout=HANGS,
                               stdout=subprocess.DEVNULL)
                self.assertGreaterEqual(len((self.folder / "frames.csv").read_text().splitlines()), 3)

    def test_passwords(self):
        """Basic and Digest accept passwords with any characters, plain or percent-encoded."""
        for scheme in ("Basic", "Digest"):
            camera = self.camera(password=PASSWORD, scheme=scheme)
            for password in (PASSWORD, "a%23%25&1%40*b"):
                for program in (EVERY, ALARM_PY):
                    with self.subTest(scheme=scheme, password=password, program=program[0]):
                        self.first_lines(program, camera.uri("/video?pictures=3", f"me:{password}"))


class Snapshots(Case):
    """A URL that answers with one picture is requested repeatedly."""

    def test_motion(self):
        camera = self.camera()
        self.see_motion(camera, "/snapshot#every=0.1", "/snapshot?length=no#every=0.1", "/snapshot")
        self.assertEqual({"/snapshot", "/snapshot?length=no"}, set(camera.asked))  # the server does not get the option

    def test_the_chosen_rate(self):
        """Without the option, three pictures would arrive in two seconds."""
        camera, begins = self.camera(), time.monotonic()
        process = self.start(EVERY, camera.uri("/snapshot#every=2"))
        self.lines(process, 3)
        waited = time.monotonic() - begins  # a busy machine only makes it longer
        self.ends(process)
        self.assertGreaterEqual(waited, 4)

    def test_a_report(self):
        camera = self.camera()
        done = subprocess.run([*REPORT, f"--clip={camera.uri('/snapshot#every=0.1')}", f"--out={self.folder}",
                               "--seconds=3"], text=True, stdout=subprocess.PIPE, timeout=HANGS)
        self.assertEqual(0, done.returncode, done.stdout)
        # 30 pictures, or fewer on a busy machine, and a header line.
        self.assertGreaterEqual(len((self.folder / "frames.csv").read_text().splitlines()), 4)

    def test_passwords(self):
        camera = self.camera(password=PASSWORD, scheme="Digest")
        self.first_lines(EVERY, camera.uri("/snapshot#every=0.1", f"me:{PASSWORD}"), 3)

    def test_a_camera_that_fails_later(self):
        camera = self.camera()
        for program in (ALARM, ALARM_PY):
            with self.subTest(program=program[-1]):
                camera.status = 200
                process = self.start(program, camera.uri("/snapshot#every=0.1"))
                self.lines(process, 1)
                camera.status = 500
                self.assertEqual(1, process.wait(HANGS))

    def test_wrong_options(self):
        for option, sentence in (*((f"every={wrong}", "#every= must be 0.04 to 86400 seconds")
                                   for wrong in ("x", "0", "1e9", "-1")),
                                 ("certificate=none",
                                  "#certificate= must be any; without it the certificate is checked")):
            for program in (ALARM, ALARM_PY, [*REPORT, "--clip"]):
                with self.subTest(option=option, program=program):
                    self.assertIn(sentence, self.says(program, f"http://127.0.0.1:9/x#{option}"))


class Refusals(Case):
    """Each program reports the answer of a server, or why there is no server."""

    def refuses(self, uri, sentence, every=False):
        """`every`: also test the programs in Python, which share their code."""
        for program in (ALARM, *([ALARM_PY, [*REPORT, f"--out={self.folder}", "--clip"]] if every else [])):
            with self.subTest(uri=uri, program=program[0]):
                said = self.says(program, uri)
                self.assertRegex(said, sentence)
                self.assertNotIn("secret", said)

    def test_http(self):
        camera = self.camera()
        for status, sentence in ((403, "the server answers 403 Forbidden"), (404, "the server answers 404 Not Found"),
                                 (503, "the server answers 503 Service Unavailable")):
            camera.status = status
            self.refuses(camera.uri(user="me:secret"), sentence)
        for scheme in ("Basic", "Digest"):
            camera = self.camera(password=PASSWORD, scheme=scheme)
            for user in ("", "me:secret"):
                self.refuses(camera.uri(user=user), r"wrong user or password \(401 Unauthorized\)",
                             every=user and scheme == "Digest")

    def test_rtsp(self):
        for status in ("401 Unauthorized", "403 Forbidden", "453 Not Enough Bandwidth", "503 Service Unavailable"):
            server = RefusingRtsp(status)
            self.addCleanup(server.close)
            self.refuses(f"rtsp://me:secret@{server.place}/x", fr"wrong user or password \({status}\)"
                         if status.startswith("401") else f"the server answers {status}", status.startswith("403"))

    def test_no_server(self):
        for scheme in ("http", "rtsp"):
            self.refuses(f"{scheme}://me:secret@127.0.0.1:9/x", "Could not connect to 127.0.0.1: Connection refused",
                         every=True)
            self.refuses(f"{scheme}://me:secret@camera.invalid/x", "Error resolving .camera.invalid")


class Rtsp(Case):
    """Streams as cameras send them. Each camera sends a few pictures and then nothing, and never RTCP."""

    def test_tracks_beside_the_video(self):
        """Tracks of sound, and metadata that never arrive, in any order, as in ONVIF's profiles S and T."""
        for codec, sound, order in (("h264", "pcmu", (0, 1, 2)), ("h264", "pcma", (1, 2, 0)),
                                    ("h265", "aac", (0, 1, 2)), ("h265", "aac", (2, 1, 0)),
                                    ("jpeg", "pcmu", (1, 0, 2))):
            if not rtsp_camera.has(codec):
                continue
            with self.subTest(codec=codec, sound=sound, order=order):
                tracks = rtsp_camera.video(codec, 15), Track(rtsp_camera.SOUNDS[sound]), Silent
                self.first_lines(EVERY, self.rtsp([tracks[index] for index in order]).uri, 2)

    def test_rates(self):
        """The first picture appears before the second one arrives, at 0.2 and 60 pictures per second."""
        for codec in filter(rtsp_camera.has, rtsp_camera.CODECS):
            with self.subTest(codec):
                self.first_lines(EVERY, self.rtsp([rtsp_camera.video(codec, 1)]).uri)
        camera = self.rtsp([rtsp_camera.video("jpeg", 2, rate="1/5")])
        camera.go_on.clear()
        process = self.start(EVERY, camera.uri)
        first = self.lines(process, 1)[0]
        camera.go_on.set()  # the next picture follows after five seconds
        self.assertGreater(self.lines(process, 1)[0]["time"] - first["time"], 4.9)
        self.ends(process)
        self.first_lines(EVERY, self.rtsp([rtsp_camera.video("jpeg", 90, rate="60/1")]).uri, 2)

    def test_another_size(self):
        for codec in filter(rtsp_camera.has, rtsp_camera.CODECS):
            with self.subTest(codec):
                camera = self.rtsp([rtsp_camera.changing(codec, 8, (320, 240), (640, 480))])
                process = self.start(EVERY, camera.uri)
                while not any(region["x"] + region["width"] > 320 for region in self.lines(process, 1)[0]["regions"]):
                    pass
                self.ends(process)

    def test_a_program_leaves(self):
        """When a program leaves, a camera that serves one viewer accepts the next program."""
        camera = self.rtsp([rtsp_camera.video("jpeg", 3)], viewers=1)
        for program in (EVERY, ALARM_PY, EVERY):
            self.first_lines(program, camera.uri)
        self.assertEqual((0, 3), (camera.refused, camera.torn_down))
        self.start(EVERY, camera.uri)
        while camera.played < 4:
            time.sleep(0.05)
        self.assertIn("the server answers 453 Not Enough Bandwidth", self.says(ALARM, camera.uri))


class Places(Case):
    """Addresses and certificates of cameras."""

    def test_ipv6(self):
        try:
            camera = self.camera(host="::1")
        except OSError as error:
            self.skipTest(f"no IPv6: {error}")
        rtsp = self.rtsp([rtsp_camera.video("jpeg", 3)], host="::1")
        for program in (EVERY, ALARM_PY):
            for uri in (camera.uri("/video?pictures=3", "me:secret"), rtsp.uri):
                self.first_lines(program, uri)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_a_certificate_that_nobody_signed(self):
        """It is refused, unless the URI accepts any certificate."""
        file = self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file, "-out",
                        self.folder / "part", "-days", "2", "-subj", "/CN=camera"], check=True, capture_output=True)
        file.write_bytes(file.read_bytes() + (self.folder / "part").read_bytes())
        camera, rtsp = self.camera(certificate=file), self.rtsp([rtsp_camera.video("jpeg", 3)], certificate=file)
        for program in (EVERY, ALARM_PY):
            with self.subTest(program[0]):
                for uri in (camera.uri(), rtsp.uri):
                    self.assertIn("its certificate is not trusted; #certificate=any at the end of the URI accepts any",
                                  self.says(program, uri))
                for uri in (camera.uri("/video?pictures=3#certificate=any"), f"{rtsp.uri}#certificate=any",
                            camera.uri("/snapshot#every=0.1&certificate=any")):
                    self.first_lines(program, uri)


if __name__ == "__main__":
    unittest.main()
