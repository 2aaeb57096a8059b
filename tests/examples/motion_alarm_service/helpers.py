# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of motion-alarm-service share this module: a broker, a subscriber, cameras and the service, each on free
ports of 127.0.0.1. Every wait has an end, but no test depends on the speed of the machine."""

import atexit
import collections
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
import urllib.request
from unittest import mock

import paho.mqtt.client as paho
from prometheus_client.parser import text_string_to_metric_families

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import programs  # noqa: E402
from programs import launch  # noqa: E402
from servers import free_port, listens  # noqa: E402
from web_camera import WebCamera  # noqa: E402
from web_camera import pictures as web_pictures  # noqa: E402

programs.use("motion-alarm-service")
import camera  # noqa: E402
import config  # noqa: E402

EXAMPLE = programs.EXAMPLES / "motion-alarm-service"
PROGRAM = EXAMPLE / "motion_alarm_service.py"
MOSQUITTO = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
HANGS = 900  # longer than anything takes on the busiest machine, in seconds
FOREVER = 3600  # the time after which the service gives up on a silent camera
SECRET = "secret"  # part of every password: must not appear in the service's output


@contextlib.contextmanager
def taken_port():
    """A port at which another process listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def wait_for(what, condition):
    """Waits until `condition` returns a true value. Returns this value."""
    end = time.monotonic() + HANGS
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {HANGS} s: {what}")
        time.sleep(0.05)
    return found


def make_clip(file, muxer="avimux"):
    """Makes a clip of one second of black, three seconds of a ball on black, two of black, and half a second of white,
    at 15 frames per second. It contains motion, objects and a change of the light."""
    sources = (f"videotestsrc pattern={pattern} num-buffers={count} ! "
               "video/x-raw,format=I420,width=320,height=240,framerate=15/1 ! mix."
               for pattern, count in (("black", 15), ("ball", 45), ("black", 30), ("white", 8)))
    launch(f"concat name=mix ! jpegenc ! {muxer} ! filesink location={file} {' '.join(sources)}")


@functools.cache
def the_clip():
    """The path of a clip of make_clip(), which all tests of this process share."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    make_clip(f"{folder.name}/clip.avi")
    return f"{folder.name}/clip.avi"


def listener(**given):
    """A listener to a camera with these functions. It ignores everything else."""
    return types.SimpleNamespace(**{**dict.fromkeys(("event", "state", "snapshot", "clip"), lambda *_: None), **given})


class Broker:
    """A mosquitto without persistence: retained messages are lost when it ends."""

    def __init__(self, folder, *lines):
        self.port, self.file = free_port(), folder / "mosquitto.conf"
        self.file.write_text("\n".join([f"listener {self.port} 127.0.0.1", *(lines or ["allow_anonymous true"]),
                                        "user root", ""]))
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.file], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for("mosquitto listens", lambda: listens(self.port))

    def kill(self):
        self.process.kill()
        self.process.wait()


class Subscriber:
    """Keeps all received messages: `messages` in their order, `last` by topic."""

    def __init__(self, port):
        self.messages, self.last = [], {}
        version = (paho.CallbackAPIVersion.VERSION2,) if hasattr(paho, "CallbackAPIVersion") else ()
        self.client = paho.Client(*version)
        self.client.on_message = self.on_message
        self.client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def on_message(self, _, __, message):
        self.messages.append((message.topic, bytes(message.payload), message.retain))
        self.last[message.topic] = bytes(message.payload)

    def events(self, camera):
        return [json.loads(payload) for topic, payload, _ in list(self.messages)
                if topic == f"cudavision/{camera}/event"]

    def expect(self, topic, payload):
        wait_for(f"{topic} is {payload!r}, not {self.last.get(topic)!r}", lambda: self.last.get(topic) == payload)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class RtspCamera:
    """The server in its own process, so that it can be killed and stopped."""

    def __init__(self, color):
        self.port, self.color = free_port(), color
        self.start()
        self.uri = f"rtsp://me:{SECRET}@127.0.0.1:{self.port}/camera"

    def start(self):
        self.process = subprocess.Popen([sys.executable, HERE / "rtsp_server.py", str(self.port), self.color],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise unittest.SkipTest("no gir1.2-gst-rtsp-server-1.0")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Service:
    """The program with a configuration. `tables` are lines of TOML, `timeout` belongs to a camera, and `prefix` is a
    command that runs it. It is killed at the end of the test if it still runs."""

    def __init__(self, folder, tables, environment=None, timeout=FOREVER, prefix=()):
        self.port, self.log_file = free_port(), folder / "log"
        file = folder / "cameras.toml"
        file.write_text(
            f"[metrics]\nport = {self.port}\n[reconnect]\nfirst = 0.2\nmost = 1\ntimeout = {timeout}\n{tables}",
            encoding="utf-8")
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen([*prefix, PROGRAM, "--verbose", file], stderr=log, stdout=log,
                                            env={**os.environ, **(environment or {})})

    @property
    def log(self):
        return self.log_file.read_text(encoding="utf-8")

    def text_of_metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=HANGS) as answer:
            return answer.read().decode()

    def metrics(self):
        """The metrics of the service: (name, labels…) → value; empty before it listens."""
        try:
            text = self.text_of_metrics()
        except OSError:
            return collections.defaultdict(float)
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples
                   if sample.name.startswith("cudavision_"))
        return collections.defaultdict(float, {
            (sample.name.removeprefix("cudavision_"), *sample.labels.values()): sample.value for sample in samples})

    def wait_metric(self, *key, least=1):
        wait_for(f"{key} is {least} or more", lambda: self.metrics()[key] >= least)

    def stop(self, number=signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(HANGS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the service does not end") from None


def start_camera(test, source, told_to, clips=None, **settings):
    """Starts a camera in this process. It analyses all frames, unless `settings` say otherwise. Its source is a
    description with an element `source`. `clips`: a config.Recording, or None. Returns the camera and that element,
    which plays. Both end with the test."""
    door = camera.Camera(config.Camera(**{"uri": "rtsp://camera/x", "key": "door", "fps": 0, **settings}),
                         config.Reconnect(timeout=FOREVER), told_to, recording=clips)
    with mock.patch.object(camera.inputs, "source_of", lambda uri: (source, {})):
        door.start()
        test.addCleanup(door.join, HANGS)
        test.addCleanup(door.stop)
        wait_for("the pipeline", lambda: door.sink)
    pushed = door.sink.get_parent().get_by_name("source")
    wait_for("its source plays", lambda: pushed.get_state(0).state == programs.common.Gst.State.PLAYING)
    return door, pushed


class Case(programs.InFolder):
    maxDiff = None

    def broker(self, *lines):
        broker = Broker(self.folder, *lines)
        self.addCleanup(broker.kill)
        return broker

    def subscriber(self, broker):
        subscriber = Subscriber(broker.port)
        self.addCleanup(subscriber.close)
        return subscriber

    def rtsp(self, color="0xff4040ff"):
        camera = RtspCamera(color)
        self.addCleanup(camera.kill)
        return camera

    def web(self, files=None, **options):
        """A WebCamera that shows a ball unless `files` are given."""
        camera = WebCamera(files or web_pictures(), **options)
        self.addCleanup(camera.close)
        return camera

    def show(self, jpeg, width, height):
        """Decodes a JPEG of this size."""
        (self.folder / "shown.jpg").write_bytes(jpeg)
        launch(f"filesrc location={self.folder}/shown.jpg ! jpegdec ! video/x-raw,width={width},height={height} "
               "! fakesink")

    def service(self, tables, environment=None, **options):
        service = Service(self.folder, tables, environment, **options)
        self.addCleanup(self.no_passwords, service)
        self.addCleanup(service.stop, signal.SIGKILL)
        return service

    def watched(self, tables, environment=None, **options):
        """A subscriber to a broker, and a service that publishes there."""
        broker = self.broker()
        found = self.subscriber(broker)
        return found, self.service(f"[mqtt]\nport = {broker.port}\n{tables}", environment, **options)

    def no_passwords(self, service):
        print(service.log)  # unittest --buffer shows it if the test fails
        self.assertNotIn(SECRET, service.log)
        self.assertNotIn("Traceback", service.log)
        self.assertNotIn("CRITICAL", service.log)
