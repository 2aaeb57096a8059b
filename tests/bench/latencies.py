#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the latency of elements and of the camera service (median, 99 %, 99.9 % and worst), and how many frames are
lost.

  latencies.py CLIP [--cameras=16] [--width=1920] [--seconds=3600] [--only=service]
               [--timing=build/tests/bench/pipeline_timing]

The rows are measured one after the other, for `seconds` each; --only selects rows:
- element: from a frame's entry into cudagaussian and cudadiff to its exit; live 1080p at 25 frames per second;
- motion to message: from the time when the first frame with motion enters cudadiff to its message on the bus;
- service: from the time when a server hands a frame to RTP to the MQTT message about it, with this many cameras (see
  camera_cost.py: `width` × 9/16 of it, 25 frames per second, H.264, CLIP with a square that appears every two seconds).
Lost frames of an element are frames that the source sent in this time and that did not leave the element. Lost frames
of the service are frames that its metrics report as skipped, and frames missing from 25 per second for each camera; a
few missing frames, at both ends, are not lost. The rows of elements need no CLIP. GST_PLUGIN_PATH must point to the
plugin.
Exit status: 0; 1 if a pipeline failed, with one sentence on stderr; 77 if something is missing (the program of
--timing; for the service see camera_cost.py)."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import camera_cost
from camera_cost import HANGS, Gst
from machine import machine

RATE = 25
FORMAT = f"video/x-raw,format=NV12,width=1920,height=1080,framerate={RATE}/1"


def row(name, found, lost):
    """`found`: in seconds, in any order."""
    values = sorted(1000 * each for each in found)
    shares = [values[int((len(values) - 1) * share)] for share in (0.5, 0.99, 0.999, 1)] if values else []
    print(f"| {name} | {len(values)} | {' | '.join(f'{each:.2f}' for each in shares) or '– | – | – | –'} | {lost} | "
          f"{os.getloadavg()[0]:.1f} |", flush=True)


def element_row(program, element, seconds):
    frames = RATE * seconds
    done = subprocess.run([program, "--limit", str(seconds + HANGS),
                           *f"videotestsrc is-live=true num-buffers={frames} pattern=ball ! {FORMAT} "
                           f"! {element} name=timed ! fakesink name=last sync=false".split()], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{element}: {(done.stderr.splitlines() or ['no output'])[0]}")
    said = json.loads(done.stdout)
    times = [said["latency_us"][key] / 1000 for key in ("median", "p99", "p999", "worst")]
    print(f"| {element} | {said['latency_us']['count']} | {' | '.join(f'{each:.2f}' for each in times)} | "
          f"{frames - said['rendered']} of {frames} "
          f"| {os.getloadavg()[0]:.1f} |", flush=True)


def message_row(seconds):
    """Repeats ten still frames and ten frames with a ball at another place, so that motion begins each time."""
    entered, found, sent = {}, [], 0
    pipeline = Gst.parse_launch(
        f"appsrc name=in is-live=true format=time do-timestamp=true block=true max-buffers=2 caps={FORMAT} "
        "! cudadiff name=diff backend=cpu preset=outdoor gap=0.1 min-motion-frames=1 output=passthrough "
        "! fakesink name=sink sync=false")

    def enters(_, info):
        entered[info.get_buffer().pts] = time.monotonic()
        return Gst.PadProbeReturn.OK

    def says(_, message):
        now, said = time.monotonic(), message.get_structure()
        if said.get_name() == "cudadiff" and said.get_value("event") == "begin":
            found.append(now - entered[said.get_value("timestamp")])

    pipeline.get_by_name("diff").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, enters)
    bus = pipeline.get_bus()
    bus.enable_sync_message_emission()
    bus.connect("sync-message::element", says)
    still = bytearray(b"\x40" * (1920 * 1080) + b"\x80" * (1920 * 540))
    moved = bytearray(still)
    for y in range(400, 560):
        moved[1920 * y + 800 : 1920 * y + 960] = b"\xeb" * 160
    pictures = [Gst.Buffer.new_wrapped(bytes(each)) for each in (still, moved)]
    pipeline.set_state(Gst.State.PLAYING)
    source, begin = pipeline.get_by_name("in"), time.monotonic()
    for sent in range(1, RATE * seconds + 1):
        time.sleep(max(0, begin + sent / RATE - time.monotonic()))
        source.emit("push-buffer", pictures[sent // 10 % 2 if sent > 2 * RATE else 0].copy())
    source.emit("end-of-stream")
    end = bus.timed_pop_filtered(HANGS * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    if not end or end.type == Gst.MessageType.ERROR:
        sys.exit(f"cudadiff: {end.parse_error()[0].message if end else f'no end of stream in {HANGS} s'}")
    rendered = pipeline.get_by_name("sink").get_property("stats").get_value("rendered")
    pipeline.set_state(Gst.State.NULL)
    row("cudadiff preset=outdoor, motion to message", found, f"{sent - rendered} of {sent}")


def service_row(arguments):
    with camera_cost.cameras_of(arguments.clip, camera_cost.Scene(arguments.width)) as (uri, folder, broker, latencies):
        _, rate, _, left_out = camera_cost.run_service(uri, arguments.cameras, arguments.seconds, 0, folder,
                                                       broker, latencies)
        sent = RATE * arguments.cameras * arguments.seconds
        missing = sent - round(rate * arguments.seconds)
        row(f"motion-alarm-service, {arguments.cameras} cameras of {arguments.width} pixels, frame to MQTT",
            latencies.found, f"{left_out} skipped; {missing} of {sent} missing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", nargs="?")
    parser.add_argument("--cameras", default=16, type=int)
    parser.add_argument("--width", default=1920, type=int, help="width of the cameras' frames, a multiple of 32 (1920)")
    parser.add_argument("--seconds", default=3600, type=int)
    parser.add_argument("--only", choices=("elements", "service"))
    parser.add_argument("--timing",
                        default=str(pathlib.Path(__file__).resolve().parents[2] / "build/tests/bench/pipeline_timing"))
    arguments = parser.parse_args()
    Gst.init(None)
    if arguments.only != "elements" and not camera_cost.can_run(arguments.clip):
        return 77
    if arguments.only != "service" and not os.access(arguments.timing, os.X_OK):
        print("skipped: no program", arguments.timing, file=sys.stderr)
        return 77
    print(f"{machine()}; {arguments.seconds} s each; backend=cpu\n")
    print("| milliseconds | frames or messages | median | 99 % | 99.9 % | worst | frames lost | load |\n| --- | --- | "
          "--- | --- | --- | --- | --- | --- |")
    if arguments.only != "service":
        for element in ("cudagaussian", "cudadiff preset=outdoor output=passthrough"):
            element_row(arguments.timing, f"{element} backend=cpu", arguments.seconds)
        message_row(arguments.seconds)
    if arguments.only != "elements":
        service_row(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
