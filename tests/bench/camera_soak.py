#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets motion-alarm-service watch many cameras for minutes. Three are bad:

  camera_soak.py CLIP [--cameras=16] [--minutes=10] [--preset=outdoor] [--h264=FILE]

CLIP is made into 1920×1080, 25 frames a second, H.264, as by camera_cost.py (--h264 keeps that file for the next run).
A server sends it by RTSP over TCP in a loop. The last three cameras are
  stalls    in 20 of 60 seconds it sends nothing
  garbage   in 20 of 60 seconds bytes of its frames are changed by chance
  resizes   every 24 seconds it changes from 1920×1080 to 1280×720, or back
A line each ten seconds says: frames a second that all cameras sent, that were analysed, and that were left out decoded
and encoded; processors that the service and the server used; memory of the service (proportional set size). At the end:
the latencies of MQTT messages, what the service said about each camera (its log and the topic `problem`), and what is
wrong. Exit status: 0; 1 if a good camera was lost, a bad one did not come back, the service failed, or memory grew; 77
if something is missing. GStreamer must find the plugin (GST_PLUGIN_PATH)."""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import camera_cost
from camera_cost import GLib, Gst, GstRtspServer
from machine import machine

BAD = "stalls", "garbage", "resizes"
PERIOD, BAD_SECONDS = 60, 20
STEP = 10  # seconds of a line
GROWTH = 1.1, 24  # memory may grow by this factor and so many MiB after a third of the time
def shrink(file, small):
    """Appends the clip in 1280×720 to itself."""
    pipeline = Gst.parse_launch(
        f"filesrc location={file} ! h264parse ! avdec_h264 ! videoscale ! video/x-raw,width=1280,height=720 "
        "! openh264enc bitrate=2000000 gop-size=50 complexity=low ! h264parse config-interval=-1 "
        f"! video/x-h264,stream-format=byte-stream,alignment=au ! filesink location={small}")
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    pathlib.Path(small).write_bytes(pathlib.Path(file).read_bytes() + pathlib.Path(small).read_bytes())


def is_bad():
    return time.monotonic() % PERIOD < BAD_SECONDS


class Stall:
    """Leaves all frames out while it is bad, and then those before a key frame."""

    def __init__(self):
        self.waits = False

    def __call__(self, key):
        self.waits = is_bad() or (self.waits and not key)
        return self.waits


def spoil(element):
    element.set_property("probability", 0.01 if is_bad() else 0.0)
    return True


def on_media(media, name, frames):
    camera_cost.feed(media, frames, held=Stall() if name == "stalls" else lambda key: False)
    if name == "garbage":
        GLib.timeout_add(500, spoil, media.get_element().get_by_name("spoil"))


def add_bad(server, file, sizes):
    for name in BAD:
        frames = camera_cost.frames_of(sizes if name == "resizes" else file)
        factory = GstRtspServer.RTSPMediaFactory(shared=True)
        spoiled = "! breakmydata name=spoil skip=64 probability=0 " if name == "garbage" else ""
        factory.set_launch(f"( {camera_cost.STREAM} {spoiled}! {camera_cost.PAY} )")
        factory.connect("media-configure", lambda _, media, name=name, frames=frames: on_media(media, name, frames))
        server.get_mount_points().add_factory(f"/{name}", factory)


def configuration(arguments, port, broker, metrics):
    names = [f"good{number}" for number in range(1, arguments.cameras - len(BAD) + 1)] + list(BAD)
    text = (f"[mqtt]\nport = {broker}\ndiscovery = \"\"\n[metrics]\nport = {metrics}\n[reconnect]\ntimeout = "
            "10\nmost = 5\n")
    for name in names:
        uri = f"rtsp://127.0.0.1:{port}/{name if name in BAD else 'camera'}"
        text += (f'[camera.{name}]\nuri = "{uri}"\nsource = {{ protocols = "tcp", latency = 100 }}\n'
                 + camera_cost.settings_of(name, arguments.preset))
    return names, text


def numbers(port):
    """(metric, camera, stage or event …) → value."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    found = collections.defaultdict(float)
    for name, labels, value in re.findall(r"^cudavision_camera_(\w+)\{(.*)\} (\S+)$", text, re.M):
        found[(name, *re.findall(r'"(.*?)"', labels))] = float(value)
    return found


class Watch:
    """What is seen of a service in all steps."""

    def __init__(self, process, server, port, names):
        self.process, self.server, self.port, self.names = process, server, port, names
        self.memory, self.reconnects, self.down = [], {}, collections.Counter()

    def step(self, seconds, before):
        """Waits for some seconds, and prints what happened in them. Returns the numbers."""
        used = [camera_cost.seconds_of(each.pid) for each in (self.process, self.server)]
        began = time.monotonic()
        time.sleep(seconds)
        if self.process.poll() is not None:
            sys.exit(f"the service ended with {self.process.returncode}")
        now, took = numbers(self.port), time.monotonic() - began
        used = [camera_cost.seconds_of(each.pid) - old for each, old in zip((self.process, self.server), used)]
        self.memory.append(camera_cost.memory_of(self.process.pid))
        self.down.update(name for name in self.names if not now["up", name])

        def rate(name, *stage):
            return sum(now[name, each, *stage] - before[name, each, *stage] for each in self.names) / took

        print(f"{25 * len(self.names):6} {rate('frames_total'):9.0f} {rate('dropped_total', 'decoded'):8.0f} "
              f"{rate('dropped_total', 'encoded'):8.0f} "
              f"{used[0] / took:8.2f} {used[1] / took:7.2f} {self.memory[-1]:7.0f} {os.getloadavg()[0]:6.1f} "
              f"{' '.join(name for name in self.names if not now['up', name])}", flush=True)
        return now


def verdicts(watch, now, log):
    """Sentences about what is wrong."""
    for name in watch.names:
        if name not in BAD and now["reconnects_total", name]:
            yield f"{name} was lost"
        if not now["frames_total", name]:
            yield f"no frame came from {name}"
    if found := re.search(r"^.*(Traceback|CRITICAL)(.*\n){1,20}", log, re.M):
        yield f"the service's log has an error of the program:\n{found[0]}"
    settled = watch.memory[len(watch.memory) // 3:]
    if len(settled) > 1 and settled[-1] > GROWTH[0] * settled[0] + GROWTH[1]:
        yield f"memory grew from {settled[0]:.0f} to {settled[-1]:.0f} MiB"


def run(arguments, folder, mosquitto):
    file = arguments.h264 or os.path.join(folder, "clip.h264")
    numbers_file = pathlib.Path(f"{file}.json")
    if not numbers_file.exists():
        numbers_file.write_text(json.dumps(camera_cost.make(arguments.clip, file)))
    if not os.path.exists(f"{file}.sizes"):
        shrink(file, f"{file}.sizes")
    port, broker, metrics = (camera_cost.free_port() for _ in range(3))
    with camera_cost.servers(mosquitto, folder, broker, [__file__, "--serve", file, str(port), numbers_file.read_text(),
                                                         f"{file}.sizes"]) as server:
        latencies = camera_cost.Latencies(broker, server)
        problems = collections.defaultdict(list)
        latencies.client.message_callback_add(
            "cudavision/+/problem",
            lambda _, __, message: problems[message.topic.split("/")[1]].append(message.payload.decode()))
        latencies.client.subscribe("cudavision/+/problem", qos=1)
        names, text = configuration(arguments, port, broker, metrics)
        toml = pathlib.Path(folder) / "cameras.toml"
        toml.write_text(text)
        with open(os.path.join(folder, "log"), "wb") as log:
            process = subprocess.Popen([sys.executable, camera_cost.SERVICE, toml], stderr=log)
        try:
            time.sleep(camera_cost.SETTLE)
            watch, now = Watch(process, server, metrics, names), numbers(metrics)
            print(f"{machine()}; {len(names)} cameras, preset={arguments.preset}\n"
                  "  sent  analysed  decoded  encoded  service  server  memory   load\n"
                  "  /s         /s  dropped  dropped     CPUs    CPUs     MiB          not there")
            latencies.found.clear()
            for _ in range(max(1, round(60 * arguments.minutes / STEP))):
                now = watch.step(STEP, now)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
        latencies.stop()
        said = pathlib.Path(folder, "log").read_text(encoding="utf-8", errors="replace")
    found = sorted(1000 * each for each in latencies.found)
    if found:
        print(f"\nlatency of {len(found)} messages of good cameras: median {statistics.median(found):.0f} ms, "
              f"99 % {found[int(0.99 * (len(found) - 1))]:.0f} ms")
    for name in names:
        print(f"{name}: {now['frames_total', name]:.0f} frames, {now['dropped_total', name, 'decoded']:.0f} and "
              f"{now['dropped_total', name, 'encoded']:.0f} left out "
              f"decoded and encoded, {now['reconnects_total', name]:.0f} reconnects, not there in {watch.down[name]} "
              f"of {len(watch.memory)} lines; said: "
              f"{'; '.join(dict.fromkeys(each for each in problems[name] if each != 'none')) or 'nothing'}")
    lines = said.splitlines()
    print(f"the log has {len(lines)} lines; the first and last of them:",
          *(f"  {line[:200]}" for line in [*lines[:10], *lines[10:][-10:]]), sep="\n")
    wrong = list(verdicts(watch, now, said))
    print(*wrong or ["nothing is wrong"], sep="\n")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", nargs="?")
    parser.add_argument("--cameras", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--preset", default="outdoor")
    parser.add_argument("--h264", help="keep the clip that is sent in this file")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    Gst.init(None)
    if arguments.serve:
        file, port, new, sizes = arguments.serve
        return camera_cost.serve(file, port, json.loads(new), lambda server: add_bad(server, file, sizes))
    mosquitto = camera_cost.mosquitto()
    if not arguments.clip or not mosquitto or not all(map(Gst.ElementFactory.find, ("openh264enc", "breakmydata"))):
        print("skipped: no clip, mosquitto, openh264enc or breakmydata", file=sys.stderr)
        return 77
    folder = tempfile.mkdtemp()
    try:
        return run(arguments, folder, mosquitto)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
