#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests what the Python examples share: names of inputs without secrets, and files that appear whole. Exit status 77 without the
Python bindings of GStreamer."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "motion-report")]
sys.dont_write_bytecode = True
try:
    import common
    import inputs
    import gi
    gi.require_version("GstVideo", "1.0")
    from gi.repository import GstVideo
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer ({error})")
    sys.exit(77)
import tracks  # noqa: E402
import uris  # noqa: E402
from common import Gst  # noqa: E402

# URI, and what is shown of it.
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
    "file:///a/b?c=d": "file:///a/b?c=d",
    "a folder/b:c@d?e=f": "a folder/b:c@d?e=f",
}


class Names(unittest.TestCase):
    def test_what_is_shown(self):
        for uri, expected in SHOWN.items():
            self.assertEqual(uris.shown(uri), expected)
            self.assertEqual(uris.shown(expected), expected)  # once more changes nothing

    def test_names_are_distinct(self):
        given = ["http://h/x?id=1&t=a", "http://h/x?id=1&t=b", "http://h/x?id=2&t=a", "http://h/x?id=1&t=a", "a.avi"]
        self.assertEqual(uris.names_of(given), dict(zip(
            given[:3] + given[4:], ["http://h/x?id=1&t=***", "http://h/x?id=1&t=*** (2)", "http://h/x?id=2&t=***", "a.avi"])))

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
        for text in ("there is no video in it", "no frame came for 10 s"):
            self.assertEqual(uris.hide(text, "http://me@host/x?u=no&p=in"), text)

    def test_files(self):
        for uri, path in (("file:///a%20b?c#d", "/a b?c#d"), ("file://localhost/a/b", "/a/b"), ("FILE://LocalHost/%FF", "/\udcff"),
                          ("a/b", "a/b"), ("./file://x", "./file://x"), ("file://host/a", None), ("http://localhost/a", None)):
            self.assertEqual(uris.path_of(uri), path, uri)
        with self.assertRaisesRegex(common.Failure, "cannot read /gone: there is no such file"):
            inputs.source_of("file://localhost/gone")
        _, values = inputs.source_of(f"file://localhost{__file__}")
        self.assertEqual(values["uri"], pathlib.Path(__file__).as_uri())

    def test_errors_name_the_input(self):
        """An error of an element inside of uridecodebin names its URI, without the secrets."""
        for uri, name in (("http://me:secret@127.0.0.1:9/x?password=secret", "http://127.0.0.1:9/x?password=***"),
                          ("nothing://me:secret@host/x", "nothing://host/x"), ("file:///nonexistent/a%20b", "/nonexistent/a b")):
            pipeline = common.parse(f"{common.DECODER} name=source ! fakesink", source={"uri": uri})
            with self.assertRaisesRegex(common.Failure, f"^{re.escape(name)}: ") as raised:
                common.play(pipeline)
            self.assertNotIn("secret", str(raised.exception))
        source = Gst.ElementFactory.make("videotestsrc", "alone")
        error = Gst.Message.new_error(source, common.GLib.Error("cannot open http://a:secret@b/c"), "")
        with self.assertRaisesRegex(common.Failure, "^cannot open http://b/c$"):
            common.check(error)


class Files(unittest.TestCase):
    """Files that appear whole, and what is left of them."""

    # Opens the file OUT, says so, and finishes it when stdin ends.
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

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def writer(self, name):
        process = subprocess.Popen([sys.executable, "-c", self.WRITER.replace("OUT", str(self.folder / name))], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "open\n")
        return process

    def test_killed_programs_leave_nothing_for_long(self):
        """The next program removes the files of those that were killed, and no other ones."""
        (self.folder / ".cudavision").mkdir()
        (self.folder / ".hidden").touch()
        living, killed = self.writer("living"), self.writer("killed")
        killed.kill()
        killed.wait()
        hidden = {name for name in self.names() if name.startswith(common.HIDDEN)}
        self.assertEqual(len(hidden), 2)
        self.writer("other").communicate()
        left = {name for name in self.names() if name.startswith(common.HIDDEN)}
        self.assertEqual((len(left), left < hidden), (1, True))
        living.communicate()
        self.assertEqual(self.names(), [".cudavision", ".hidden", "living", "other"])
        for name in ("living", "other"):
            self.assertEqual((self.folder / name).read_bytes(), b"whole")

    def test_failures_leave_nothing(self):
        (self.folder / "old").write_text("old")
        with self.assertRaises(KeyboardInterrupt), common.whole(self.folder / "old") as stream:
            stream.write(b"new")
            raise KeyboardInterrupt
        self.assertEqual((self.names(), (self.folder / "old").read_text()), (["old"], "old"))
        with self.assertRaisesRegex(common.Failure, "cannot write .*/gone/new: No such file"):
            with common.whole(self.folder / "gone/new"):
                self.fail()
        with self.assertRaisesRegex(common.Failure, "cannot write /dev/full: No space left"), common.whole("/dev/full") as stream:
            stream.write(b"new")

    def test_a_killed_report_leaves_nothing_for_long(self):
        clip, out = self.folder / "endless.avi", self.folder / "out"
        os.mkfifo(clip)  # nobody writes into it
        program = [sys.executable, str(EXAMPLES / "motion-report" / "motion_report.py"), f"--out={out}"]
        killed = subprocess.Popen([*program, f"--clip={clip}"])
        self.addCleanup(killed.kill)
        while not (out.is_dir() and len(list(out.iterdir())) >= 2):  # the video and the events
            self.assertIsNone(killed.poll())
            time.sleep(0.02)
        killed.kill()
        killed.wait()
        self.assertTrue(all(path.name.startswith(".") for path in out.iterdir()))
        subprocess.run([*program, "--frames=2"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["frames.csv", "motion.jsonl", "objects.csv", "report.html"])


class Tracks(unittest.TestCase):
    """tracks.py of motion-report."""

    def test_ids_may_come_in_any_order(self):
        """Objects are followed whatever ids they have; many may be gone before one of them is shown."""
        shown = [(3, 1), (3, 1), (250, 40), (250, 40, 7), (100000,), (2**31 - 1,)]
        pipeline = common.parse(
            "appsrc name=source format=time caps=video/x-raw,format=I420,width=64,height=48,framerate=1/1 ! "
            "identity name=motion ! fakesink")
        source, motion = pipeline.get_by_name("source"), pipeline.get_by_name("motion")
        for index, numbers in enumerate(shown):
            buffer = Gst.Buffer.new_wrapped(bytes(64 * 48 * 3 // 2))
            buffer.pts = index * Gst.SECOND
            for number in numbers:
                GstVideo.buffer_add_video_region_of_interest_meta(buffer, "motion", 8, 8, 16, 16).id = number
            source.emit("push-buffer", buffer)
        source.emit("end-of-stream")
        with tracks.Tracker(source.get_static_pad("src"), motion, motion.get_static_pad("src")) as tracker:
            common.play(pipeline)
        everyone = {number for numbers in shown for number in numbers}
        self.assertEqual(set(tracker.tracks), everyone)
        self.assertEqual({box for track in tracker.tracks.values() for _, box in track}, {(8, 8, 16, 16)})
        self.assertEqual({number for number, jpeg in tracker.snapshots.items() if jpeg.startswith(b"\xff\xd8")}, everyone)


if __name__ == "__main__":
    unittest.main()
