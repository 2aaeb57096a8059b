#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches cameras for motion and objects with cudadiff. Publishes to MQTT (with Home Assistant's discovery) and Prometheus, shows a wall of all
cameras, and connects again to those that are lost. It runs until Ctrl-C or SIGTERM. README.md describes the configuration."""
import logging
import pathlib
import signal
import sys
import threading
import time
import warnings

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))  # the code that the examples share

import camera  # noqa: E402
import common  # noqa: E402
import config  # noqa: E402
import metrics  # noqa: E402
import mqtt  # noqa: E402
import snapshot  # noqa: E402
import wall  # noqa: E402


class Silence:
    """Takes the place of the publisher if there is no [mqtt]."""

    def event(self, *_):
        pass

    state = snapshot = event


def start(settings):
    """Starts all parts. Returns the cameras, the wall or None, and the publisher or None."""
    publisher = mqtt.Publisher(settings.mqtt, snapshot.jpeg_of) if settings.mqtt else None
    shown = [each for each in settings.cameras if each.wall]
    screen = wall.Wall(settings.wall, shown, settings.reconnect) if settings.wall else None
    cameras = [camera.Camera(each, settings.reconnect, publisher or Silence(), screen.show if screen and each.wall else None)
               for each in settings.cameras]
    if settings.metrics:
        metrics.serve(settings.metrics, cameras, screen, publisher)
    if publisher:
        publisher.start(cameras)
    for each in [screen] * bool(screen) + cameras:
        each.start()
    return cameras, screen, publisher


def run():
    parser = common.Parser(description=__doc__)
    parser.add_argument("configuration", help="a TOML file, such as cameras.toml beside this program")
    parser.add_argument("--check", action="store_true", help="only check the configuration")
    parser.add_argument("--verbose", action="store_true", help="also log each event")
    arguments = parser.parse_args()
    try:
        settings = config.load(arguments.configuration)
        for each in settings.cameras:
            camera.check(each)
        if settings.wall:
            wall.Wall(settings.wall, [each for each in settings.cameras if each.wall], settings.reconnect).build()
    except common.Failure as error:
        parser.error(str(error)) if common.Gst.ElementFactory.find("cudadiff") else sys.exit(f"{parser.prog}: {error}")
    if arguments.check:
        print(f"{len(settings.cameras)} cameras: {', '.join(each.key for each in settings.cameras)}")
        return
    logging.basicConfig(format="%(message)s", level=logging.INFO if arguments.verbose else logging.WARNING, stream=sys.stderr)
    logging.raiseExceptions = False  # a log that cannot be written is no reason to stop
    stop = threading.Event()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    cameras, screen, publisher = start(settings)
    stop.wait()
    threads = cameras + [screen] * bool(screen)
    for each in threads:
        each.stop()
    end = time.monotonic() + 5
    for each in threads:
        each.join(max(0, end - time.monotonic()))
    if publisher:
        publisher.stop()


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # for the array of regions; python3-gst-1.0 would avoid it
    common.main(run)
