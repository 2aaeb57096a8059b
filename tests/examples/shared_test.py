#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests what the Python examples share: names of inputs without secrets, and files that never appear incomplete. Exit
status 77 without the Python bindings of GStreamer."""
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import unittest.mock

import programs
from programs import EXAMPLES, REPORT
programs.use("motion-report")
import gi  # noqa: E402
import numpy  # noqa: E402
gi.require_version("GstVideo", "1.0")
from gi.repository import GstVideo  # noqa: E402
import common  # noqa: E402
import inputs  # noqa: E402
import media  # noqa: E402
import part  # noqa: E402
import pictures  # noqa: E402
import recording  # noqa: E402
import uris  # noqa: E402
from common import Gst  # noqa: E402
from cudavision import frames  # noqa: E402

# A URI, and the form in which it is shown.
SHOWN = {
    "rtsp://me:secret@host/x": "rtsp://host/x",
    "rtsp://me:se@secret@host:554/x": "rtsp://host:554/x",
    "http://me:a/secret#@host/x?channel=2": "http://host/x?channel=2",
    "http://me:a?secret@host/x": "http://host/x",
    "HTTP://host/x?user=me&password=secret&channel=1": "HTTP://host/x?user=***&password=***&channel=1",
    "http://host/x?secret": "http://host/x?***",
    "http://host/x?=secret&channel=1;PWD=secret": "http://host/x?***&channel=1&PWD=***",
    "http://host/x?token=secret#secret": "http://host/x?token=***",
    "http://host/x?channel=secret/or/not": "http://host/x?channel=***",
    "rtsp://host/user=me_password=secret_channel=1.sdp?real_stream": "rtsp://host/***?***",
    "rtsp://host:554/x?password=p@secret": "rtsp://***",
    "rtsp://me:secret@host/x?password=p@secret": "rtsp://***",
    "http://host/a@b": "http://host/a@b",
    "http://[::1]:80/x": "http://[::1]:80/x",
    "http://[::1]:80/a@b": "http://[::1]:80/a@b",
    "rtsp://[me:secret@host/x": "rtsp://host/x",
    "rtsp://[me]:secret@host/x": "rtsp://host/x",
    "file:///a/b?c=d": "file:///a/b?c=d",
    "a folder/b:c@d?e=f": "a folder/b:c@d?e=f",
}


def linked_pads():
    """A source pad and a sink pad that accepts anything. Both are active."""
    source, sink = Gst.Pad.new("src", Gst.PadDirection.SRC), Gst.Pad.new("sink", Gst.PadDirection.SINK)
    sink.set_chain_function_full(lambda *_: Gst.FlowReturn.OK, None)
    source.link(sink)
    for pad in sink, source:
        pad.set_active(True)
    return source, sink


def formats():
    """The formats that cudadiff accepts."""
    found, = common.fields_of(Gst.ElementFactory.find("cudadiff").get_static_pad_templates()[0].get_caps(), "format")
    return found


class FullDisk(programs.InFolder):
    def test_an_element_that_cannot_write(self):
        def message(code):
            error = common.GLib.Error.new_literal(Gst.resource_error_quark(), "text", code)
            return Gst.Message.new_error(Gst.Pipeline(), error, "")

        for code, text in ((Gst.ResourceError.NO_SPACE_LEFT, "No space left on device"),
                           (Gst.ResourceError.WRITE, "text")):
            with self.assertRaisesRegex(common.Failure, f"^cannot write to a/b: {text}$"):
                common.check_disk(message(code), "a/b")
        self.assertIsNone(common.check_disk(message(Gst.ResourceError.READ), "a/b"))

    def test_a_report(self):
        """The message names the file or the folder, whichever is being written."""
        clip, disk = self.folder / "clip.avi", self.folder / "out"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", disk]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        programs.launch(f"videotestsrc num-buffers=40 ! video/x-raw,width=320 ! jpegenc ! avimux ! filesink "
                        f"location={clip}")
        for size in "12k", "100k":
            subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
            # A busy machine shows the progress first.
            self.assertRegex(self.report(clip, status=1), r"^(  \d.*\n)*motion_report.py: cannot write (to )?"
                             r"(\S*/)?out(/\S+)?: No space left on device\n$")


class Messages(unittest.TestCase):
    def test_all_that_gather_are_handled(self):
        for gather in 0, 0.05:
            counts = []
            pipeline = common.parse("videotestsrc num-buffers=30 ! video/x-raw,width=32,height=32,framerate=1/1 ! "
                                    "cudahistogram ! fakesink")
            pipeline.set_property("auto-flush-bus", False)
            self.assertFalse(common.play(pipeline, lambda message: counts.append(
                message.get_structure()["stream-time"] // Gst.SECOND), gather=gather))
            self.assertEqual(counts, list(range(30)))

    def test_an_error_among_them(self):
        pipeline, heard = common.parse("videotestsrc ! cudahistogram ! identity error-after=5 ! fakesink"), []
        with self.assertRaises(common.Failure):
            common.play(pipeline, heard.append, gather=0.05)
        self.assertGreaterEqual(len(heard), 4)


class StoppedPads(unittest.TestCase):
    """A pad that is stopped loses its events. A frame that passes it at that moment has neither caps nor a time."""

    def test_frames_without_caps(self):
        (source, _), shown = linked_pads(), []
        common.on_frames(source, lambda pad, buffer, caps: shown.append((pad, buffer.pts, caps.to_string())))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        for event in (Gst.Event.new_stream_start("a"), Gst.Event.new_segment(segment),
                      Gst.Event.new_caps(Gst.Caps("video/x-raw"))):
            buffer = Gst.Buffer()
            buffer.pts = len(shown)
            source.push_event(event)
            if event.type != Gst.EventType.STREAM_START:
                self.assertEqual(source.push(buffer), Gst.FlowReturn.OK)
        self.assertEqual(shown, [(source, 0, "video/x-raw")])
        self.assertEqual(part.stream_time_of(source, buffer), 0)
        source.set_active(False)
        self.assertIsNone(part.stream_time_of(source, buffer))


class Python(programs.InFolder):
    """Programs that start with a Python without the module gi."""

    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)

    def run_with_it(self, program, *arguments):
        return subprocess.run([self.folder / "venv/bin/python", program, *arguments], capture_output=True,
                              text=True, timeout=programs.HANGS)

    @unittest.skipUnless(sys.executable == "/usr/bin/python3", "this Python is not Debian's, which has the bindings")
    def test_debians_python_goes_on(self):
        ended = self.run_with_it(EXAMPLES / "integral_numbers.py", "/nowhere/a clip")
        self.assertEqual((ended.returncode, ended.stderr),
                         (1, "integral_numbers.py: cannot read /nowhere/a clip: there is no such file\n"))

    def test_a_sentence_where_there_is_none(self):
        for name in ("common.py", "containers.py", "uris.py", "integral_numbers.py"):
            text = (EXAMPLES / name).read_text().replace('"/usr/bin/python3"', '"/nowhere/python3"')
            (self.folder / name).write_text(text)
        ended = self.run_with_it(self.folder / "integral_numbers.py")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr,
                         r"^integral_numbers.py: this Python \(.*\) has no module gi: apt-get install python3-gi .*\n$")


class Names(unittest.TestCase):
    def test_what_is_shown(self):
        for uri, expected in SHOWN.items():
            self.assertEqual(uris.shown(uri), expected)
            self.assertEqual(uris.shown(expected), expected)  # a second call changes nothing

    def test_names_are_distinct(self):
        given = ["http://h/x?id=1&t=a", "http://h/x?id=1&t=b", "http://h/x?id=2&t=a", "http://h/x?id=1&t=a", "a.avi"]
        self.assertEqual(uris.names_of(given), dict(zip(
            given[:3] + given[4:],
            ["http://h/x?id=1&t=***", "http://h/x?id=1&t=*** (2)", "http://h/x?id=2&t=***", "a.avi"])))

    def test_texts_of_others(self):
        for uri in SHOWN:
            if "secret" not in uri or uris.shown(uri) == uri:
                continue
            for form in (uri, uris.opened(uri), uri.partition("://")[2], uri.partition("?")[2] or uri):
                hidden = uris.hide(f"Could not open \"{form}\" for reading.", uri)
                self.assertNotIn("secret", hidden, form)
                self.assertTrue(hidden.startswith("Could not open ") and hidden.endswith(" for reading."), hidden)
        self.assertEqual(uris.hide("moved to https://you:secret@other/y?key=secret now", "http://host/x"),
                         "moved to https://other/y?key=*** now")
        for text in ("there is no video in it", "no frame arrived for 10 s"):
            self.assertEqual(uris.hide(text, "http://me@host/x?u=no&p=in"), text)

    def test_invalid_text(self):
        """Lines of a list can contain any bytes."""
        uri = os.fsdecode(b"rtsp://us\xffer:se\xfecret@host/a")
        self.assertEqual(uris.opened(uri), "rtsp://us%FFer:se%FEcret@host/a")
        self.assertEqual(uris.shown(uri), "rtsp://host/a")
        self.assertEqual(uris.hide(f"cannot open {uri}", uri), "cannot open rtsp://host/a")

    def test_files(self):
        for uri, path in (("file:///a%20b?c#d", "/a b?c#d"), ("file://localhost/a/b", "/a/b"),
                          ("FILE://LocalHost/%FF", "/\udcff"), ("a/b", "a/b"), ("./file://x", "./file://x"),
                          ("file://host/a", None), ("http://localhost/a", None)):
            self.assertEqual(uris.path_of(uri), path, uri)
        with self.assertRaisesRegex(common.Failure, "cannot read /gone: there is no such file"):
            inputs.source_of("file://localhost/gone")
        _, values = inputs.source_of(f"file://localhost{__file__}")
        self.assertEqual(values["uri"], pathlib.Path(__file__).as_uri())

    def test_percent_and_options(self):
        """Tests a % that does not begin an escape, and how the programs read an input."""
        for uri, opened, options in (
            ("rtsp://me:a#%&1@*b@cam/x", "rtsp://me:a%23%25&1%40*b@cam/x", {}),
            ("rtsp://me:50%25%@cam/x", "rtsp://me:50%25%25@cam/x", {}),
            ("http://me:secret@cam/x?a=1#every=2", "http://me:secret@cam/x?a=1", {"every": "2"}),
            ("https://cam/x#every=&certificate=any", "https://cam/x", {"every": "", "certificate": "any"}),
            ("rtsp://me:a#every=2@cam/x", "rtsp://me:a%23every=2@cam/x", {}),
            ("rtsp://cam/x#other=2&every=2", "rtsp://cam/x#other=2&every=2", {}),
            ("/clips/x#every=2", "/clips/x#every=2", {}),
        ):
            self.assertEqual((uris.opened(uri), uris.options_of(uri)), (opened, options), uri)
            self.assertNotIn("every", uris.shown(uri) if uris.path_of(uri) is None else "")

    def test_the_options_of_sources(self):
        """A server may be silent for longer than the chosen interval. Its certificate is checked unless the URI says
        otherwise."""
        for option, timeout, strict in (("", 15, True), ("#every=120", 135, True), ("#certificate=any", 15, False)):
            location = f"http://127.0.0.1:9/x{option}"
            description, values = inputs.source_of(location)
            pipeline, found = common.parse(f"{description} ! fakesink", source=values), []
            inputs.prepare(pipeline, location)
            pipeline.get_by_name("source").connect("source-setup", lambda _, element: found.append(
                (element.get_property("timeout"), element.get_property("ssl-strict"))))
            pipeline.set_state(Gst.State.PAUSED)
            pipeline.set_state(Gst.State.NULL)
            self.assertEqual([(timeout, strict)], found)

    def test_errors_name_the_input(self):
        """An error of an element inside uridecodebin names its URI without the secrets."""
        for uri, name in (("http://me:secret@127.0.0.1:9/x?password=secret", "http://127.0.0.1:9/x?password=***"),
                          ("nothing://me:secret@host/x", "nothing://host/x"),
                          ("file:///nonexistent/a%20b", "/nonexistent/a b")):
            pipeline = common.parse(f"{common.DECODER} name=source ! fakesink", source={"uri": uri})
            with self.assertRaisesRegex(common.Failure, f"^{re.escape(name)}: ") as raised:
                common.play(pipeline)
            self.assertNotIn("secret", str(raised.exception))
        source = Gst.ElementFactory.make("videotestsrc", "alone")
        error = Gst.Message.new_error(source, common.GLib.Error("cannot open http://a:secret@b/c"), "")
        with self.assertRaisesRegex(common.Failure, "^cannot open http://b/c$"):
            common.check(error)


class Events(unittest.TestCase):
    """The JSON for messages of cudadiff."""

    def line(self, fields):
        return inputs.line_of(Gst.Structure.from_string(f"cudadiff, stream-time=(guint64)2500000000, {fields}")[0])

    def test_of_objects(self):
        self.assertEqual(
            self.line("event=leave, id=(uint)7, x=1, y=2, width=3, height=4, zone=door, entered=(guint64)500000000, "
                      "left=(guint64)1500000000, seconds=(double)1, path-length=(double)12.5, "
                      "best-time=(guint64)1000000000, best-x=5, "
                      "best-y=6, best-width=7, best-height=8"),
            {"event": "leave", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, "zone": "door",
             "seconds": 1, "path_length": 12.5, "best_x": 5, "best_y": 6, "best_width": 7, "best_height": 8,
             "entered": 0.5, "left": 1.5, "best_time": 1})
        self.assertEqual(self.line("event=stopped, id=(uint)7, zones=(string)<door, yard>, "
                                   "since=(guint64)18446744073709551615"),
                         {"event": "stopped", "time": 2.5, "id": 7, "zones": ["door", "yard"], "since": None})

    def test_of_motion(self):
        self.assertEqual(self.line("event=end, began=(guint64)500000000, last-motion=(guint64)0"),
                         {"event": "end", "time": 2.5, "began": 0.5, "last_motion": 0})


class Files(programs.InFolder):
    """Files never appear incomplete, and leave nothing behind."""

    # Opens the file OUT, prints a line, and finishes the file when stdin ends.
    WRITER = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
import common
with common.whole("OUT") as stream:
    stream.write(b"whole")
    stream.flush()
    print("open", flush=True)
    sys.stdin.read()
"""

    def writer(self, name):
        process = subprocess.Popen([sys.executable, "-c", self.WRITER.replace("OUT", str(self.folder / name))],
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "open\n")
        return process

    def test_the_mask_of_new_files_is_not_set_beside_other_threads(self):
        with (unittest.mock.patch.object(os, "umask", side_effect=AssertionError),
              common.whole(self.folder / "file") as stream):
            stream.write(b"x")
        self.assertEqual((self.folder / "file").stat().st_mode & 0o777, 0o666 & ~common.MASK)

    def test_killed_programs_leave_nothing_for_long(self):
        """The next program removes the files of killed programs, and no others."""
        (self.folder / ".cudavision").mkdir()
        (self.folder / ".hidden").touch()
        living, killed = self.writer("living"), self.writer("killed")
        killed.kill()
        killed.wait()
        hidden = {name for name in self.names(".") if name.startswith(common.HIDDEN)}
        self.assertEqual(len(hidden), 2)
        self.writer("other").communicate()
        left = {name for name in self.names(".") if name.startswith(common.HIDDEN)}
        self.assertEqual((len(left), left < hidden), (1, True))
        living.communicate()
        self.assertEqual(self.names("."), [".cudavision", ".hidden", "living", "other"])
        for name in ("living", "other"):
            self.assertEqual((self.folder / name).read_bytes(), b"whole")

    def test_failures_leave_nothing(self):
        (self.folder / "old").write_text("old")
        with self.assertRaises(KeyboardInterrupt), common.whole(self.folder / "old") as stream:
            stream.write(b"new")
            raise KeyboardInterrupt
        self.assertEqual((self.names("."), (self.folder / "old").read_text()), (["old"], "old"))
        with self.assertRaisesRegex(common.Failure, "cannot write .*/gone/new: No such file"):
            with common.whole(self.folder / "gone/new"):
                self.fail()
        with (self.assertRaisesRegex(common.Failure, "cannot write /dev/full: No space left"),
              common.whole("/dev/full") as stream):
            stream.write(b"new")

    def test_a_killed_report_leaves_nothing_for_long(self):
        clip, out = self.folder / "endless.avi", self.folder / "out"
        os.mkfifo(clip)  # nobody writes into it
        killed = subprocess.Popen([REPORT, f"--clip={clip}", f"--out={out}"])
        self.addCleanup(killed.kill)
        while not (out.is_dir() and len(list(out.iterdir())) >= 2):  # the video and the events
            self.assertIsNone(killed.poll())
            time.sleep(0.02)
        killed.kill()
        killed.wait()
        self.assertTrue(all(path.name.startswith(".") for path in out.iterdir()))
        self.report("--frames=2")
        self.assertEqual(self.names(), ["frames.csv", "motion.jsonl", "objects.csv", "report.html"])


class Pictures(programs.InFolder):
    """Tests pictures.py of motion-report."""

    def test_ids_may_come_in_any_order(self):
        """Objects are followed whatever their ids. Many may be gone before one of them is shown."""
        shown = [(3, 1), (3, 1), (250, 40), (250, 40, 7), (100000,), (2**31 - 1,)]
        pipeline = common.parse(
            "appsrc name=source format=time caps=video/x-raw,format=I420,width=64,height=48,framerate=1/1 ! "
            "videoconvert ! video/x-raw,format=GRAY8 ! fakesink name=sink")
        source = pipeline.get_by_name("source")
        pads = source.get_static_pad("src"), pipeline.get_by_name("sink").get_static_pad("sink")
        for index, numbers in enumerate(shown):
            buffer = Gst.Buffer.new_wrapped(bytes(64 * 48 * 3 // 2))
            buffer.pts = index * Gst.SECOND
            for number in numbers:
                GstVideo.buffer_add_video_region_of_interest_meta(buffer, "motion", 8, 8, 16, 16).id = number
            source.emit("push-buffer", buffer)
        source.emit("end-of-stream")
        recorder = recording.Recorder(self.folder)
        with pictures.Tracker(*pads, recorder, self.folder) as tracker:
            common.play(pipeline)
            tracker.develop()
            self.assertTrue(tracker.poster().startswith(b"\xff\xd8"))
        everyone = {number for numbers in shown for number in numbers}
        self.assertEqual({number for _, number, _ in recorder.open[0].places}, everyone)
        self.assertEqual({box for _, _, box in recorder.open[0].places}, {(8, 8, 16, 16)})
        self.assertEqual({number for number in everyone if tracker.pictures.get(number).startswith(b"\xff\xd8")},
                         everyone)
        self.assertEqual(os.listdir(self.folder), [])

    def test_frames_are_sampled(self):
        """Ten frames a second of stream time, without frames that have no time or lie before the stream."""
        source, _ = linked_pads()
        recorder, segment = recording.Recorder(self.folder), Gst.Segment()
        segment.init(Gst.Format.TIME)
        segment.start, segment.time = 2 * Gst.SECOND, Gst.SECOND // 5

        def push(milliseconds):
            buffer = Gst.Buffer.new_wrapped(bytes([255]) * (64 * 48))
            buffer.pts = Gst.CLOCK_TIME_NONE if milliseconds is None else milliseconds * Gst.MSECOND
            self.assertEqual(source.push(buffer), Gst.FlowReturn.OK)

        with pictures.Tracker(source, source, recorder, self.folder) as tracker:
            source.push_event(Gst.Event.new_stream_start("a"))
            source.push_event(Gst.Event.new_caps(Gst.Caps("video/x-raw,format=GRAY8,width=64,height=48,framerate=0/1")))
            self.assertEqual(tracker.size, (64, 48))
            source.push_event(Gst.Event.new_segment(segment))
            for milliseconds in 1500, None, 2000, 2040, 2089, 2091, 2150, 2200, 2100, 2200:
                push(milliseconds)
        self.assertEqual([round(time, 3) for time, _ in recorder.open[0].masks], [0.2, 0.291, 0.4, 0.3, 0.4])

    def white_box(self, form, x, y, w, h, width, height):
        """A black frame with a white box."""
        return next(common.samples(common.parse(
            f"videotestsrc pattern=white num-buffers=1 ! video/x-raw,width={w},height={h} ! compositor name=mix "
            f"background=black sink_0::xpos={x} sink_0::ypos={y} ! video/x-raw,width={width},height={height} ! "
            f"videoconvert ! video/x-raw,format={form} ! appsink name=sink")))

    def test_parts_of_all_formats(self):
        """A part of a frame has the colours of its place, in each format that cudadiff accepts."""
        for name in formats():
            sample = self.white_box(name, 64, 32, 32, 32, 130, 98)
            with media.Camera(480) as camera:
                inside = camera.shoot_planes(*pictures.cut(sample.get_buffer(), sample.get_caps(), (66, 33, 27, 30)))
                outside = camera.shoot_planes(*pictures.cut(sample.get_buffer(), sample.get_caps(), (1, 70, 128, 28)))
            self.assertGreater(brightness(inside), 40, name)
            self.assertLess(brightness(outside), 10, name)

    def test_masks_of_all_formats(self):
        """A mask has the same cells in each format that cudadiff accepts."""
        pads = [Gst.ElementFactory.make("identity").get_static_pad("src") for _ in range(2)]
        tracker = pictures.Tracker(*pads, None, self.folder)
        with tracker:
            # A change that does not reach the middle of a cell does not count for it.
            for name, width, height, less in [*((name, 128, 96, 0) for name in formats()), ("GRAY8", 1280, 960, 4),
                                              ("NV12", 64, 48, 0)]:
                left, top = width // 2 + less, height // 3 + less
                right, bottom = width * 3 // 4 - less, height * 2 // 3 - less
                sample = self.white_box(name, left, top, right - left, bottom - top, width, height)
                mask = tracker.mask(sample.get_buffer(), sample.get_caps())
                rows, columns = min(72, height), min(96, width)
                expected = numpy.zeros((rows, columns), bool)
                expected[rows // 3:rows * 2 // 3, columns // 2:columns * 3 // 4] = True
                self.assertEqual(mask.tolist(), expected.tolist(), f"{name}, {width}x{height}")


def brightness(jpeg):
    """The mean luma in the middle of a JPEG, in percent."""
    pipeline = common.parse(
        "appsrc name=source caps=image/jpeg ! jpegdec ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=sink")
    pipeline.get_by_name("source").emit("push-buffer", Gst.Buffer.new_wrapped(jpeg))
    pipeline.get_by_name("source").emit("end-of-stream")
    sample = next(common.samples(pipeline))
    with frames.Frame(sample) as frame:
        picture = numpy.asarray(frame.planes[0]).reshape(frame.height, frame.width)
        return 100 / 255 * picture[frame.height // 4:-frame.height // 4, frame.width // 4:-frame.width // 4].mean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
