#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints a line of JSON for each event of cudadiff (begin and end of motion; light, scene, moves, moved), and saves a
picture for each `begin` in the current folder. With preset=…, zones=… or lines=… it also prints events of objects
(enter, leave, stopped, cross …). Needs python3-gi and gir1.2-gst-plugins-base-1.0."""
import datetime, json, os, re, signal, sys, warnings
import common, containers, inputs, losses, part, upright, uris
from shortest import Shortest
from common import GLib, Gst
import gi
gi.require_version("GstVideo", "1.0")
from gi.repository import GstVideo

class Input:
    def __init__(self, number, location, name):
        self.number, self.location, self.name = number, location, name
        self.begin, self.pipeline, self.live, self.flowing, self.files = None, None, False, False, set()
        self.gate = self.shortest = None
        self.losses, self.whole, self.frames = None, True, 0

    def start(self):
        source, values = inputs.source_of(self.location)
        interval = 0 if options.min_event else 2**63
        self.pipeline = common.parse(f"{source} ! queue name=in ! videoconvert name=shown ! cudadiff name=diff "
                                     f"output=passthrough message-interval={interval} ! video/x-raw "
                                     "! appsink name=sink sync=false max-buffers=1 emit-signals=true", source=values)
        inputs.prepare(self.pipeline, self.location, self.on_live)
        self.gate = part.Gate(self.pipeline.get_by_name("in").get_static_pad("sink"), chosen)
        for text in properties:
            inputs.set_property(self.pipeline.get_by_name("diff"), text)
        upright.keep(self.pipeline.get_by_name("shown").get_static_pad("sink"))
        hold = self.pipeline.get_by_name("diff").get_property("track-hold")
        self.shortest = Shortest(options.min_event, hold)
        if os.path.isfile(uris.path_of(self.location) or ""):
            # One thread for each decoder, so that it is known which file a decoder complains about.
            self.losses = losses.Losses(self.pipeline, self.pipeline.get_by_name("source"), single=len(running) > 1)
            self.losses.__enter__()
        self.pipeline.get_by_name("sink").connect("new-sample", self.on_frame)
        bus = self.pipeline.get_bus()
        bus.enable_sync_message_emission()
        bus.connect("sync-message::element", self.on_event)
        bus.add_watch(GLib.PRIORITY_DEFAULT, self.on_message)
        if self.pipeline.set_state(Gst.State.PAUSED) == Gst.StateChangeReturn.NO_PREROLL:
            self.on_live()
        self.pipeline.set_state(Gst.State.PLAYING)

    def on_live(self):
        self.live = True

    def on_event(self, _, message):  # in the streaming thread, like on_frame; a frame's message precedes the frame
        event = message.get_structure()
        if event.get_name() == "cudadiff" and event.get_value("event") == "begin":
            self.begin = event.copy()
        elif event.get_name() == "cudadiff" and (event.get_value("event") in ("end", *common.CAMERA_EVENTS) or
                                                 (options.min_event and event.get_value("event") == "motion")):
            self.say(event)
        elif (event.get_name() == "cudadiff" and event.has_field("id")
              and any(re.match("(preset|zones|lines)=", text) for text in properties)):
            self.say(event)  # an object enters, leaves or crosses a line

    def on_frame(self, sink):
        sample, event, self.begin, self.flowing = sink.emit("pull-sample"), self.begin, None, True
        self.frames += 1
        if event:
            try:
                self.say(event, snapshot=self.save(sample, event.get_value("stream-time")))
            except GLib.Error as error:
                self.complain(f"no snapshot: {error.message}")
                self.say(event)
        return Gst.FlowReturn.OK

    def save(self, sample, time):
        jpeg = GstVideo.video_convert_sample(sample, Gst.Caps.from_string("image/jpeg"), 10 * Gst.SECOND).get_buffer()
        label = re.sub("[^-.0-9A-Za-z]", "_", self.name.split("/")[-1])[:200]
        if self.live:
            when = f"{datetime.datetime.utcnow():%Y%m%dT%H%M%S.%fZ}"
        elif time == Gst.CLOCK_TIME_NONE:
            when = f"frame{self.frames - 1:06}"
        else:
            when = f"{time / Gst.SECOND:010.3f}"
        file = f"{self.number}-{label}-{when}"
        if file in self.files:
            file += f"-{len(self.files) + 1}"
        self.files.add(file)
        GLib.file_set_contents(file + ".jpg", jpeg.extract_dup(0, jpeg.get_size()))
        return file + ".jpg"

    def say(self, event, **more):
        line = {"input": self.name, **inputs.line_of(event), **more}
        told = self.shortest.add(line, inputs.seconds_of(event.get_value("duration")), line.get("began"),
                                 line.get("last_motion"))
        try:
            for each in told:  # in one write, because other inputs write in their own threads
                if each["event"] != "motion":
                    os.write(sys.stdout.fileno(), json.dumps(each).encode() + b"\n")
        except OSError as error:
            failure = GLib.Error.new_literal(Gst.resource_error_quark(), f"cannot write an event: {error.strerror}",
                                             Gst.ResourceError.WRITE)
            self.pipeline.post_message(Gst.Message.new_error(self.pipeline, failure, ""))

    def complain(self, text):
        failed.append(self)
        print(f"{self.name}: {uris.hide(text, self.location)}", file=sys.stderr)

    def on_message(self, _, message):
        if message.type == Gst.MessageType.ERROR:
            self.whole = False
            self.complain(common.text_of(message))
        elif message.type == Gst.MessageType.EOS and (sentence := self.gate.why_nothing()):
            self.complain(sentence)
        if message.type in (Gst.MessageType.ERROR, Gst.MessageType.EOS):
            self.stop()
        return self in running

    def drain(self):
        self.whole = False
        if self.flowing:
            self.pipeline.get_by_name("diff").get_static_pad("sink").send_event(Gst.Event.new_eos())
        else:
            self.stop()

    def stop(self):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)
        if self.losses:
            self.losses.__exit__()
            whole = self.whole and chosen.is_whole
            lost, self.losses = losses.sentence(self.losses.result(whole, self.gate.over), self.losses.good), None
            for text in lost, whole and containers.cut_of(uris.path_of(self.location)):
                text and self.complain(text)
        running.remove(self)
        running or loop.quit()

def on_signal():  # called once: a second Ctrl-C stops the process immediately
    for each in list(running):
        each.drain()

def run():
    global chosen, options
    parser = common.Parser(description=__doc__, usage="%(prog)s INPUT… [PROPERTY=VALUE …] [OPTION …]")
    parser.add_argument("input", nargs="+",
                        help="a file, a URI, a camera (/dev/video0), `test` (a live picture) or `test:FRAMES`, or "
                        "a property of cudadiff; write a file name that contains = as ./a=b.avi")
    part.add_options(parser)
    options = parser.parse_intermixed_args()
    chosen, arguments = part.of_options(parser, options), options.input
    for number in (signal.SIGINT, signal.SIGTERM):  # before the loop runs, a signal ends the program immediately
        signal.signal(number, signal.SIG_DFL)
    diff = common.parse("cudadiff name=diff ! fakesink").get_by_name("diff")
    properties.extend(filter(re.compile("[-a-z]+=").match, arguments))
    for text in properties:
        if not inputs.set_property(diff, text):
            parser.error(f"cudadiff has no such property or value: {text}")
    names = [text for text in arguments if text not in properties]
    if not names:
        parser.error("no input was named")
    shown = uris.names_of(names)
    running.extend(Input(number, name, shown[name]) for number, name in enumerate(names, 1))
    for each in list(running):
        try:
            each.start()
        except common.Failure as error:
            each.complain(str(error))
            each.stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, on_signal)
    if running:
        loop.run()
    sys.exit(bool(failed))

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # caused by the array of regions if there is no python3-gst-1.0
    loop, running, failed, properties = GLib.MainLoop(), [], [], []
    common.main(run)
