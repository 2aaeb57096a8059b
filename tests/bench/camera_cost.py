#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of motion-alarm-service for each RTSP camera (H.264, 25 frames per second), compared with the
decoder alone in the same run.

  camera_cost.py CLIP [--cameras=1,4] [--width=1920] [--seconds=30] [--fps=FPS]

CLIP is scaled to `width` and a height of 9/16 of it, and encoded at 25 frames per second in H.264 (4 Mbit/s for 1080p).
A white square appears every two seconds at another place. A separate server sends the clip in a loop. For each number
of cameras, one process only decodes them (uridecodebin ! fakesink), then the service watches them, with `fps` if it is
given. The table has:
- CPU time (user and system) of the process per frame of the cameras, and what the service adds, relative to the
  decoder;
- memory: the proportional set size at the end, and what each camera adds to the process with the fewest cameras;
- latency: from the time when the server hands a frame to RTP until the MQTT client has the message about it (the object
  `enter`s its zone).
The line above the table shows the load of the machine: other work lengthens latencies, and CPU times to a lesser
extent. GST_PLUGIN_PATH must point to the plugin. Exit status 77 without mosquitto, paho-mqtt, GStreamer's RTSP server
or openh264enc."""
import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

try:
    import gi
    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import GLib, Gst, GstApp  # noqa: F401: GstApp gives appsink its signals
except (ImportError, ValueError) as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(77)
try:
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GstRtspServer
    import paho.mqtt.client as paho
    missing = ""
except (ImportError, ValueError) as error:
    missing = error
from machine import machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/examples"))
from servers import free_port  # noqa: E402

SERVICE = ROOT / "examples/motion-alarm-service/motion_alarm_service.py"
SOURCE = {"protocols": "tcp", "latency": 0}
HANGS = 600  # longer than anything takes on the busiest machine, in seconds
SETTLE = 8  # seconds after the first frame until all cameras decode and the background is established


@dataclasses.dataclass(frozen=True)
class Scene:
    """The frames of a camera and the white square in them. Lengths are in pixels."""
    width: int = 1920

    def scaled(self, length):
        """Scales a length in a frame of 1920 × 1080."""
        return length * self.width // 1920

    @property
    def height(self):
        return self.scaled(1080)

    @property
    def side(self):
        return self.scaled(160)

    @property
    def top(self):
        return self.scaled(40)

    @property
    def caps(self):
        return (f"video/x-raw,format=I420,width={self.width},height={self.height},framerate=25/1,"
                "pixel-aspect-ratio=1/1")

    def left(self, number):
        """The left edge of the square in a frame, or None. Every two seconds it appears at another place and moves to
        the right for a second."""
        period, step = divmod(number, 50)
        return None if step < 25 else self.scaled(60 + 140 * (period % 12) + 4 * (step - 25))


def make(clip, file, scene=Scene(), seconds=24):
    """Encodes the clip with the square. Returns the numbers of the frames where the square is new."""
    count, white, width = 25 * seconds, b"\xeb" * scene.side, scene.width
    source = Gst.parse_launch(f"uridecodebin uri={pathlib.Path(clip).absolute().as_uri()} caps=video/x-raw ! "
                              "videoconvert ! videoscale "
                              f"! videorate ! {scene.caps} ! appsink name=sink sync=false max-buffers=4")
    encoder = Gst.parse_launch(f"appsrc name=in format=time block=true max-buffers=4 caps={scene.caps} ! "
                               f"openh264enc bitrate={scene.scaled(scene.scaled(4000000))} gop-size=50 complexity=low "
                               "! h264parse ! video/x-h264,stream-format=byte-stream,alignment=au "
                               "! appsink name=out sync=false")
    for each in (source, encoder):
        each.set_state(Gst.State.PLAYING)
    for number in range(count):
        sample = source.get_by_name("sink").emit("pull-sample")
        if not sample:
            sys.exit(f"{clip} is shorter than {seconds} s")
        frame = bytearray(sample.get_buffer().extract_dup(0, sample.get_buffer().get_size()))
        if (left := scene.left(number)) is not None:
            for row in range(scene.top, scene.top + scene.side):
                frame[width * row + left : width * row + left + scene.side] = white
        buffer = Gst.Buffer.new_wrapped(bytes(frame))
        buffer.pts = number * Gst.SECOND // 25
        encoder.get_by_name("in").emit("push-buffer", buffer)
    encoder.get_by_name("in").emit("end-of-stream")
    there = []  # one value per encoded frame; the encoder may skip frames
    with open(file, "wb") as output:
        while sample := encoder.get_by_name("out").emit("try-pull-sample", HANGS * Gst.SECOND):
            buffer = sample.get_buffer()
            output.write(buffer.extract_dup(0, buffer.get_size()))
            there.append(scene.left(round(buffer.pts * 25 / Gst.SECOND)) is not None)
    if not encoder.get_by_name("out").get_property("eos"):
        sys.exit(f"the encoder failed, or gave nothing for {HANGS} s")
    for each in (source, encoder):
        each.set_state(Gst.State.NULL)
    return [index for index in range(len(there)) if there[index] and not there[index - 1]]


STREAM = ("appsrc name=source is-live=true format=time do-timestamp=true block=true max-buffers=2 "
          "caps=video/x-h264,stream-format=byte-stream,alignment=au,framerate=25/1")
PAY = "rtph264pay config-interval=-1 name=pay0"


def frames_of(file):
    """The encoded frames of an H.264 stream, as bytes."""
    pipeline = Gst.parse_launch(f"filesrc location={file} ! h264parse ! "
                                "video/x-h264,stream-format=byte-stream,alignment=au ! appsink name=sink sync=false")
    pipeline.set_state(Gst.State.PLAYING)
    frames = []
    while sample := pipeline.get_by_name("sink").emit("pull-sample"):
        buffer = sample.get_buffer()
        frames.append(buffer.extract_dup(0, buffer.get_size()))
    pipeline.set_state(Gst.State.NULL)
    return frames


def feed(media, frames, sent):
    """Pushes frames into the STREAM of a media at 25 per second, in a loop until it ends. Calls sent(number) for each
    one."""
    source = media.get_element().get_by_name("source")

    def push():
        due = time.monotonic()
        for number in itertools.cycle(range(len(frames))):
            time.sleep(max(0, due - time.monotonic()))
            due += 1 / 25
            sent(number)
            if source.emit("push-buffer", Gst.Buffer.new_wrapped(frames[number])) != Gst.FlowReturn.OK:
                return

    threading.Thread(target=push, daemon=True).start()


def serve(file, port, new):
    """Sends the clip to all clients. Prints a line when a frame with one of the numbers `new` is handed to the
    payloader."""
    frames, wanted = frames_of(file), set(new)
    server = GstRtspServer.RTSPServer(address="127.0.0.1", service=port)
    factory = GstRtspServer.RTSPMediaFactory(shared=True)
    factory.set_launch(f"( {STREAM} ! {PAY} )")

    def sent(number):
        if number in wanted:
            print(time.monotonic(), flush=True)

    factory.connect("media-configure", lambda _, media: feed(media, frames, sent))
    server.get_mount_points().add_factory("/camera", factory)
    server.attach(None)
    print("ready", flush=True)
    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.HUP, lambda *_: os._exit(0))
    GLib.MainLoop().run()


def decode(uri, cameras):
    """Decodes cameras. For each line of stdin, prints a line with the number of frames."""
    counts, pipelines = [0] * cameras, []
    for index in range(cameras):
        pipeline = Gst.parse_launch(f"uridecodebin name=source uri={uri} caps=video/x-raw(ANY) "
                                    "expose-all-streams=false ! queue "
                                    "! fakesink name=sink sync=false")
        pipeline.get_by_name("source").connect("source-setup", lambda _, source: [
            Gst.util_set_object_arg(source, name, str(value)) for name, value in SOURCE.items()])
        pipelines.append(pipeline)
        pipeline.set_state(Gst.State.PLAYING)
    for _ in sys.stdin:
        counts = [each.get_by_name("sink").get_property("stats").get_value("rendered") for each in pipelines]
        print(sum(counts), flush=True)


def seconds_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def mosquitto():
    """The path of the broker, or None."""
    return shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")


def measure(process, frames, seconds, cameras, begin=lambda: None):
    """Lets a process settle, then calls begin(). frames() returns the numbers of used and skipped frames. Returns the
    CPU time per frame of the cameras in ms, the used frames per second, the memory, and the skipped frames."""
    last = time.monotonic() + HANGS
    while not frames()[0]:
        if process.poll() is not None or time.monotonic() > last:
            sys.exit(f"no frame came in {HANGS} s")
        time.sleep(0.2)
    time.sleep(SETTLE)
    began, before, (count, left_out) = time.monotonic(), seconds_of(process.pid), frames()
    begin()
    time.sleep(seconds)
    cpu, (came, dropped), took = seconds_of(process.pid) - before, frames(), time.monotonic() - began
    if came == count:
        sys.exit("no frame came")
    return 1000 * cpu / (25 * cameras * took), (came - count) / took, memory_of(process.pid), dropped - left_out


def run_decoder(uri, cameras, seconds):
    process = subprocess.Popen([sys.executable, __file__, "--decode", uri, f"--cameras={cameras}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def frames():
        process.stdin.write("\n")
        process.stdin.flush()
        return int(process.stdout.readline()), 0

    try:
        return measure(process, frames, seconds, cameras)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def servers(broker, folder, port, command):
    """Runs the broker at a port, and the server of the cameras with this Python command. Yields the process of the
    server."""
    configuration = pathlib.Path(folder) / "mosquitto.conf"
    configuration.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n")
    processes = [subprocess.Popen([broker, "-c", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
                 subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)]
    try:
        if processes[1].stdout.readline() != "ready\n":
            sys.exit("the server does not start")
        yield processes[1]
    finally:
        for each in processes:
            each.kill()
            each.wait()


class Latencies:
    """Latencies of messages about the square, from the times when the server (a process) sent its first frames."""

    def __init__(self, port, server, scene=Scene()):
        self.scene, self.sent, self.found = scene, [], []
        threading.Thread(target=lambda: [self.sent.append(float(line)) for line in server.stdout], daemon=True).start()
        version = (paho.CallbackAPIVersion.VERSION2,) if hasattr(paho, "CallbackAPIVersion") else ()
        self.client = paho.Client(*version)
        self.client.on_message = self.on_message
        self.client.on_connect = lambda client, *_: client.subscribe("cudavision/+/event", qos=1)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def on_message(self, _, __, message):
        now, event, side = time.monotonic(), json.loads(message.payload), self.scene.side
        if (event["event"] == "enter" and self.sent and abs(event["y"] - self.scene.top) < 0.15 * side
            and abs(event["width"] - side) < 0.3 * side > abs(event["height"] - side)):
            self.found.append(now - self.sent[-1])

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


def run_service(uri, cameras, seconds, fps, folder, broker, latencies):
    """Watches cameras. The square enters the zone. Returns the result of measure()."""
    port = free_port()
    text = f"[mqtt]\nport = {broker}\ndiscovery = \"\"\n[metrics]\nport = {port}\n"
    for index in range(cameras):
        text += f"""
[camera.camera{index}]
uri = "{uri}"
source = {{ protocols = "tcp", latency = 0 }}
{"" if fps is None else f"fps = {fps}"}
[camera.camera{index}.cudadiff]
preset = "outdoor"
zones = "top: 0.0,0.0 1.0,0.0 1.0,0.25 0.0,0.25"
track-min-frames = 1
track-hold = 0.2
"""
    file = pathlib.Path(folder) / f"cameras{cameras}.toml"
    file.write_text(text)
    process = subprocess.Popen([sys.executable, SERVICE, file])

    def frames():
        lines = subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/metrics"], capture_output=True, text=True,
                               check=False).stdout.splitlines()  # nothing before the service answers
        return [int(sum(float(line.split()[1]) for line in lines
                        if line.startswith(f"cudavision_camera_{name}_total{{"))) for name in ("frames", "dropped")]

    try:
        return measure(process, frames, seconds, cameras, latencies.found.clear)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def can_run(clip):
    if clip and mosquitto() and Gst.ElementFactory.find("openh264enc") and not missing:
        return True
    print(f"skipped: {missing or 'no clip, no mosquitto or no openh264enc'}", file=sys.stderr)
    return False


@contextlib.contextmanager
def cameras_of(clip, scene=Scene()):
    """Runs a server that sends the clip in frames of a scene, and a broker. Yields the URI, a folder for files, the
    port of the broker, and the Latencies."""
    with tempfile.TemporaryDirectory() as folder:
        file, port, broker = os.path.join(folder, "clip.h264"), free_port(), free_port()
        new = make(clip, file, scene)
        with servers(mosquitto(), folder, broker, [__file__, "--serve", file, str(port), json.dumps(new)]) as server:
            latencies = Latencies(broker, server, scene)
            yield f"rtsp://127.0.0.1:{port}/camera", folder, broker, latencies
            latencies.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", nargs="?")
    parser.add_argument("--cameras", default="1,4")
    parser.add_argument("--width", default=1920, type=int, help="width of the frames, a multiple of 32 (1920)")
    parser.add_argument("--seconds", default=30, type=int)
    parser.add_argument("--fps", type=float, help="`fps` in the settings of the cameras")
    parser.add_argument("--decode")
    parser.add_argument("--serve", nargs=3)
    arguments = parser.parse_args()
    Gst.init(None)
    if arguments.decode:
        return decode(arguments.decode, int(arguments.cameras))
    if arguments.serve:
        return serve(*arguments.serve[:2], json.loads(arguments.serve[2]))
    if not can_run(arguments.clip):
        return 77
    with cameras_of(arguments.clip, Scene(arguments.width)) as (uri, folder, broker, latencies):
        compare(uri, folder, broker, latencies, arguments)
    return 0


def compare(uri, folder, broker, latencies, arguments):
    print(f"{machine()}; {arguments.seconds} s each\n")
    print("| cameras | frames/s: decoder, service | CPU ms a frame: decoder, service | motion ÷ decoder | memory MiB: "
          "decoder, service "
          "| latency ms: median, 99 % | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for cameras in map(int, arguments.cameras.split(",")):
        decoder = run_decoder(uri, cameras, arguments.seconds)
        service = run_service(uri, cameras, arguments.seconds, arguments.fps, folder, broker, latencies)
        found = sorted(1000 * each for each in latencies.found)
        latency = (f"{statistics.median(found):.0f}, {found[min(len(found) - 1, int(0.99 * len(found)))]:.0f} (of "
                   f"{len(found)})" if found else "–")
        print(f"| {cameras} | {decoder[1]:.0f}, {service[1]:.0f} | {decoder[0]:.2f}, {service[0]:.2f} | "
              f"{service[0] / decoder[0] - 1:.2f} "
              f"| {decoder[2]:.0f}, {service[2]:.0f} | {latency} | {os.getloadavg()[0]:.1f} |", flush=True)
    latencies.stop()


if __name__ == "__main__":
    sys.exit(main())
