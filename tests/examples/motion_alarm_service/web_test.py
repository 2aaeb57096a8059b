# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests HTTP cameras: Motion JPEG and snapshot URLs."""

import glob
import os
import unittest
import urllib.request
from unittest import mock

from helpers import SECRET, Case, wait_for

import camera
import checks
import common
import config
from rtsp_camera import RtspCamera, video

NAMES = glob.glob("/usr/lib/*/libnss_wrapper.so")
PASSWORD = f"a#%&1@*b{SECRET}"


class Web(Case):
    def test_motion_jpeg(self):
        """A camera that sends three pictures and then nothing is online with the first one. It may have any framerate,
        sound, and properties of its source."""
        web, digest = self.web(), self.web(password=PASSWORD, scheme="Digest")
        live = "source = { is-live = true, do-timestamp = true }"
        cameras = {
            **{f"rate{rate}": (web.uri(f"/video?pictures=3&rate={rate}"), "") for rate in (1, 5, 25)},
            "live": (web.uri("/video?pictures=3&rate=5"), live),
            "sound": (web.uri("/video?pictures=3&rate=25&sound=before"), ""),
            "talk": (web.uri("/video?pictures=3&rate=25&sound=after"), live),
            "digest": (digest.uri("/video?pictures=3", f"me:{PASSWORD}"), ""),
        }
        service = self.service("".join(f"[camera.{name}]\nuri = '{uri}'\n{more}\n"
                                       for name, (uri, more) in cameras.items()))
        for name in cameras:
            service.wait_metric("camera_frames_total", name)  # a busy machine may skip the others
            self.assertEqual(0, service.metrics()["camera_reconnects_total", name])
        self.assertEqual(0, service.stop())

    def test_a_snapshot_url(self):
        """The camera is online while it answers, and offline otherwise. Its motion is recorded."""
        web = self.web(password=PASSWORD)
        service = self.service(f"""
[recording]
folder = "{self.folder}/clips"
before = 0
after = 0
[camera.door]
uri = '{web.uri("/snapshot#every=0.1", f"me:{PASSWORD}")}'
recording = true
[camera.door.cudadiff]
gap = 0.3
""")
        service.wait_metric("camera_frames_total", "door", least=20)
        found = service.metrics()
        self.assertEqual((1, 0), (found["camera_up", "door"], found["camera_reconnects_total", "door"]))
        web.status = 500
        wait_for("the loss", lambda: service.metrics()["camera_up", "door"] == 0)
        wait_for("why", lambda: "door: lost: the server answers 500 Internal Server Error: it is switched on, but "
                 "refuses the request" in service.log)
        service.wait_metric("camera_clips_total", "door")
        web.status = 200
        service.wait_metric("camera_up", "door")
        web.password = "another"
        wait_for("the line of the log", lambda: "lost: wrong user or password (401 Unauthorized): correct the user and "
                 "the password in its uri" in service.log)
        self.assertEqual(0, service.stop())

    def test_a_camera_for_one_viewer(self):
        """The service opens one connection, even if it records and shows the camera. If another viewer has the only
        connection, it explains this."""
        web = self.web(viewers=1)
        other = urllib.request.urlopen(web.uri())
        service = self.service(f"""
[wall]
sink = "fakesink"
[recording]
folder = "{self.folder}/clips"
[camera.door]
uri = "{web.uri()}"
recording = true
""")
        wait_for("why", lambda: "door: lost: the server answers 503 Service Unavailable: has it reached its maximum "
                 "number of viewers?" in service.log)
        other.close()
        service.wait_metric("camera_up", "door")
        refused = web.refused
        service.wait_metric("camera_frames_total", "door", least=20)
        self.assertEqual(refused, web.refused)
        self.assertEqual(0, service.stop())

    @unittest.skipUnless(NAMES, "no libnss-wrapper")
    def test_a_name_that_resolves_late(self):
        """After a power failure, the service may start before the name server."""
        web, names = self.web(), self.folder / "hosts"
        rtsp = RtspCamera([video("jpeg", 3)])
        self.addCleanup(rtsp.close)
        names.write_text("127.0.0.1 other.test\n")
        os.utime(names, (0, 0))  # the library reads the file again if its time in seconds changes
        uris = {"door": web.uri("/video?pictures=3"), "yard": web.uri("/snapshot"), "hall": rtsp.uri}
        service = self.service("".join(f"[camera.{name}]\nuri = '{uri.replace('127.0.0.1', 'camera.test')}'\n"
                                       for name, uri in uris.items()),
                               {"LD_PRELOAD": NAMES[0], "NSS_WRAPPER_HOSTS": str(names)})
        for name in uris:
            wait_for("why", lambda: f"{name}: lost: Error resolving “camera.test”: " in service.log)
        names.write_text("127.0.0.1 camera.test\n")
        for name in uris:
            service.wait_metric("camera_frames_total", name)
        self.assertEqual(0, service.stop())

    def test_a_long_interval(self):
        """The camera is not lost between the pictures that the service requests."""
        for uri, interval in {"http://127.0.0.1:9/x#every=120": 120, "http://127.0.0.1:9/x": 0, "test": 0}.items():
            settings = config.Camera(uri=uri, key="door")
            self.assertEqual(interval, camera.Camera(settings, config.Reconnect(), mock.Mock()).interval)

    def test_wrong_options(self):
        with self.assertRaisesRegex(common.Failure, r"^uri in \[camera.door\]: #every= must be 0.04 to 86400 s"):
            checks.check(config.Camera(uri="http://127.0.0.1:9/x#every=0", key="door"))


if __name__ == "__main__":
    unittest.main()
