#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""motion_alarm.py INPUT… [PROPERTY=VALUE …]: a line of JSON for each event that cudadiff (with these properties) finds, and a
picture of each begin in this folder. INPUT: a file, a URI, a camera (/dev/video0), `test` (a live picture) or `test:FRAMES`.
Needs python3-gi and gir1.2-gst-plugins-base-1.0."""
import gi, json, re, signal, sys, warnings
gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, Gst, GstVideo

def source_of(name):
    if re.fullmatch(r"test(:\d+)?", name):
        return "videotestsrc pattern=ball " + (f"num-buffers={name[5:]}" if name[4:] else "is-live=true")
    uri = name if "://" in name else Gst.filename_to_uri(name)
    decode = f'uridecodebin uri="{uri}" caps="video/x-raw(ANY)" expose-all-streams=false'
    return f"v4l2src device={name} ! decodebin" if name.startswith("/dev/") else decode

class Input:
    def __init__(self, number, name):
        self.number, self.name, self.begin = number, re.sub("//[^/]*@", "//", name), None  # the password is nobody's business
        self.pipeline = Gst.parse_launch(f"{source_of(name)} ! queue ! videoconvert ! cudadiff name=diff output=passthrough {properties} "
                                         "! video/x-raw ! appsink name=sink sync=false max-buffers=1 emit-signals=true")
        self.pipeline.get_by_name("sink").connect("new-sample", self.on_frame)
        self.pipeline.bus.enable_sync_message_emission()
        self.pipeline.bus.connect("sync-message::element", self.on_event)
        self.pipeline.bus.add_watch(GLib.PRIORITY_DEFAULT, self.on_message)
        self.pipeline.set_state(Gst.State.PLAYING)

    def on_event(self, _, message):  # like on_frame in the streaming thread, where a frame's message comes before the frame
        event = message.get_structure()
        if event.get_name() == "cudadiff" and event.get_value("event") == "begin":
            self.begin = event.copy()
        elif event.get_name() == "cudadiff" and event.get_value("event") == "end":
            self.say(event)

    def on_frame(self, sink):
        sample, event, self.begin = sink.emit("pull-sample"), self.begin, None
        if event:
            jpeg = GstVideo.video_convert_sample(sample, Gst.Caps.from_string("image/jpeg"), 10 * Gst.SECOND).get_buffer()
            label = re.sub("[^-.0-9A-Za-z]", "_", self.name.split("/")[-1])
            file = f"{self.number}-{label}-{event.get_value('stream-time') / Gst.SECOND:010.3f}.jpg"
            GLib.file_set_contents(file, jpeg.extract_dup(0, jpeg.get_size()))
            self.say(event, snapshot=file)
        return Gst.FlowReturn.OK

    def say(self, event, **more):
        array = event.get_array("regions")[1]
        regions = [{key: region.get_value(key) for key in ("x", "y", "width", "height", "area", "score")}
                   for region in map(array.get_nth, range(array.n_values))]
        numbers = {key.replace("-", "_"): event.get_value(key) for key in ("changed-ratio", "mean-difference")}
        line = {"input": self.name, "event": event.get_value("event"), "time": event.get_value("stream-time") / Gst.SECOND,
                **numbers, "regions": regions, **more}
        print(json.dumps(line) + "\n", end="", flush=True)  # in one piece, as other inputs print from their own threads

    def on_message(self, _, message):
        if message.type == Gst.MessageType.ERROR:
            failed.append(self.name)
            print(f"{self.name}: {message.parse_error()[0].message}", file=sys.stderr)
        if message.type in (Gst.MessageType.ERROR, Gst.MessageType.EOS):
            self.pipeline.set_state(Gst.State.NULL)
            inputs.remove(self)
            inputs or loop.quit()
        return self in inputs

def on_signal():  # and then no more: a second Ctrl-C stops at once
    for each in inputs:
        each.pipeline.get_by_name("diff").get_static_pad("sink").send_event(Gst.Event.new_eos())

warnings.simplefilter("ignore", DeprecationWarning)  # of the array of regions; there is no other without python3-gst-1.0
Gst.init(None)
loop, failed = GLib.MainLoop(), []
properties = " ".join(text for text in sys.argv[1:] if re.match("[-a-z]+=", text))
names = [text for text in sys.argv[1:] if not re.match("[-a-z]+=", text)]
if not names:
    sys.exit(print(__doc__, file=sys.stderr) or 2)
if not Gst.ElementFactory.find("cudadiff"):
    sys.exit("the plugin cudavision was not found; set GST_PLUGIN_PATH to the folder of libgstcudavision.so")
inputs = [Input(*numbered) for numbered in enumerate(names, 1)]
for number in (signal.SIGINT, signal.SIGTERM):
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, on_signal)
loop.run()
sys.exit(bool(failed))
