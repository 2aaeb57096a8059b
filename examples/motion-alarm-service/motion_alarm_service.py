#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches cameras for motion and objects with cudadiff. Publishes to MQTT (with Home Assistant's discovery) and
Prometheus, shows a wall of all cameras, and reconnects to lost cameras. It runs until Ctrl-C or SIGTERM.
README.md describes the configuration."""

import logging
import pathlib
import signal
import sys
import threading
import time
import warnings

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))  # the code that the examples share

import camera  # noqa: E402
import checks  # noqa: E402
import common  # noqa: E402
import config  # noqa: E402
import listeners  # noqa: E402
import metrics  # noqa: E402
import mqtt  # noqa: E402
import page  # noqa: E402
import snapshot  # noqa: E402
import wall  # noqa: E402
from supervised import Supervised, gpu_contexts  # noqa: E402


try:
    import onvif_device
    no_soapbar = ""
except ImportError as error:
    no_soapbar = str(error)

TIDY = 600  # interval in seconds for removing clips that are too old
NO_SOAPBAR = (
    "[onvif] needs soapbar, which this Python does not have ({}): make a virtual environment with "
    "`python3 -m venv --system-site-packages FOLDER`, run `FOLDER/bin/pip install -r "
    "examples/motion-alarm-service/requirements.txt`, and run this program with FOLDER/bin/python"
)


def load(file):
    """Reads and checks the configuration, as far as possible without opening a camera. Returns the settings and
    warnings. Raises a Failure if something is wrong."""
    settings = config.load(file)
    return settings, [warning for each in settings.cameras for warning in checks.check(each)]


def make(settings):
    """Makes the cameras, the wall or None, the publisher or None, and the ONVIF devices or None. Raises a Failure if
    one of them cannot be made."""
    if settings.metrics:
        metrics.check()
    if settings.onvif and no_soapbar:
        raise common.Failure(NO_SOAPBAR.format(no_soapbar))
    devices = onvif_device.Devices(settings.onvif) if settings.onvif else None
    publisher = mqtt.Publisher(settings.mqtt, snapshot.Encoder(lambda: Supervised.contexts)) if settings.mqtt else None
    screen = (
        wall.Wall(settings.wall, [each for each in settings.cameras if each.wall], settings.reconnect,
                  bool(settings.page))
        if settings.wall
        else None
    )
    if screen:
        screen.build()
    listener = listeners.Everyone(filter(None, (publisher, devices)))
    cameras = [
        camera.Camera(
            each,
            settings.reconnect,
            listener,
            screen.show if screen and each.wall else None,
            settings.recording,
        )
        for each in settings.cameras
    ]
    for each in filter(None, (camera.recorder for camera in cameras)):
        each.folder.check()
    return cameras, screen, publisher, devices


def waited(stop, seconds):
    """Like stop.wait(seconds), in short pieces, because Python handles a signal only between two waits."""
    end = time.monotonic() + seconds
    while not stop.is_set() and time.monotonic() < end:
        stop.wait(min(1, max(0, end - time.monotonic())))
    return stop.is_set()


def watch(cameras, screen, publisher, stop):
    """Runs until the event `stop`, and ends everything within eleven seconds: five for the pipelines, six for the
    publisher. systemd allows 15 (motion-alarm.service)."""
    Supervised.contexts = gpu_contexts()
    threads = [screen] * bool(screen) + cameras
    recorders = [each.recorder for each in cameras if each.recorder]
    for each in recorders:
        each.open()
    if publisher:
        publisher.start(cameras)
    for each in threads:
        each.start()
    while not waited(stop, TIDY):
        for each in recorders:
            each.folder.tidy()
    for each in threads:
        each.stop()
    end = time.monotonic() + 5
    for each in threads:
        each.join(max(0, end - time.monotonic()))
    for each in recorders:
        each.wait(max(0, end - time.monotonic()))
    if publisher:
        publisher.stop()


def run():
    parser = common.Parser(description=__doc__)
    parser.add_argument("configuration", help="a TOML file, such as cameras.toml beside this program")
    parser.add_argument("--check", action="store_true", help="only check the configuration, without opening a camera")
    parser.add_argument("--verbose", action="store_true", help="also log each event")
    arguments = parser.parse_args()
    common.parse("cudadiff ! fakesink")  # fails if the plugin is not found
    try:
        settings, notes = load(arguments.configuration)
        cameras, screen, publisher, devices = make(settings)
    except common.Failure as error:
        parser.error(str(error))
    if arguments.check:
        for warning in notes:
            print(warning, file=sys.stderr)
        print(f"{len(cameras)} cameras: {', '.join(each.name for each in cameras)}")
        return
    logging.basicConfig(
        format="%(message)s", level=logging.INFO if arguments.verbose else logging.WARNING, stream=sys.stderr
    )
    logging.raiseExceptions = False  # a log that cannot be written is not a reason to stop
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if settings.metrics:
        metrics.serve(settings.metrics, cameras, screen, publisher)
    if settings.page:
        page.serve(settings.page, cameras, screen)
    if devices:
        devices.serve(cameras)
    watch(cameras, screen, publisher, stop)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # caused by the array of regions if there is no python3-gst-1.0
    common.main(run)
