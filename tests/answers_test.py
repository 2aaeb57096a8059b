#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks what the commands of the pages compute:  answers_test.py [TEST …]

tests/docs_commands.py checks that they run. GStreamer must find the plugin (GST_PLUGIN_PATH_1_0). Exit status: 0; 1
after a failure; 77 without PyGObject, NumPy or the plugins of GStreamer that the commands need.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "gst" / "python"))
try:
    import gi

    gi.require_version("Gst", "1.0")
    import numpy
    from gi.repository import Gst
except (ImportError, ValueError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

from cudavision import frames  # noqa: E402

Gst.init(None)
for needed in ("pngdec", "pngparse", "jpegdec", "rawvideoparse"):
    if not Gst.ElementFactory.find(needed):
        print(f"skipped: GStreamer has no {needed}")
        sys.exit(77)

COLOUR = ("videotestsrc num-buffers=3 pattern=solid-color foreground-color={:#x} ! "
          "video/x-raw,format={},width=160,height=160")


def command_of(page, words):
    """The pipeline of the only command on a page that contains these words."""
    text = (root / "docs" / page).read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if "gst-launch-1.0" in line and words in line]
    return re.sub(r".*?gst-launch-1\.0 (-\w )*", "", line)


def swap(text, *pairs):
    for old, new in pairs:
        if old not in text:
            raise AssertionError(f"{old} is not in {text}")
        text = text.replace(old, new)
    return text


def write_png(path, pixels):
    """Writes an array of H×W×4 as RGBA."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def messages_of(description):
    """The element messages of a pipeline that runs to its end. GStreamer can lose the end of a stream that comes within
    milliseconds of its start, so a pipeline that does not end has more attempts."""
    kinds = Gst.MessageType.ELEMENT | Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING
    for _ in range(4):
        pipeline, found = Gst.parse_launch(description), []
        pipeline.set_state(Gst.State.PLAYING)
        while message := pipeline.get_bus().timed_pop_filtered(30 * Gst.SECOND, kinds):
            if message.type != Gst.MessageType.ELEMENT:
                break
            found.append(message.get_structure())
        pipeline.set_state(Gst.State.NULL)
        if message:
            break
    if not message or message.type != Gst.MessageType.EOS:
        raise AssertionError(f"the pipeline did not end: {message and message.get_structure()}")
    return found


def picture_of(pipeline):
    """The first frame of a pipeline as RGBA, without its sink."""
    pipeline = Gst.parse_launch(pipeline + " ! video/x-raw,format=RGBA ! appsink name=sink")
    pipeline.set_state(Gst.State.PLAYING)
    with frames.Frame(pipeline.get_by_name("sink").emit("pull-sample")) as frame:
        picture = numpy.array(numpy.asarray(frame))
    pipeline.set_state(Gst.State.NULL)
    return picture


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_mask_makes_a_picture_round(self):
        across = numpy.arange(120) - 59.5
        inside = across**2 + across[:, None] ** 2 < 55**2
        write_png(self.folder / "disc.png", (inside[..., None] * numpy.full(4, 255)).astype(numpy.uint8))
        for format in ("RGB", "I420", "NV12", "RGBA", "Y444"):
            with self.subTest(format):
                pipeline = swap(
                    command_of("elements/cudablend.md", "disc.png"), ("disc.png", str(self.folder / "disc.png")),
                    ("filesrc location=clip.mp4 ! decodebin", COLOUR.format(0xff0000ff, format)),
                    ("filesrc location=door.mp4 ! decodebin", COLOUR.format(0xffff0000, format)),
                    ("videoconvert ! autovideosink", "videoconvert ! video/x-raw,format=RGBA ! appsink name=sink"))
                got = Gst.parse_launch(pipeline)
                got.set_state(Gst.State.PLAYING)
                with frames.Frame(got.get_by_name("sink").emit("pull-sample")) as frame:
                    picture = numpy.asarray(frame).astype(int)
                    red = picture[20:140, 20:140, 0] > 128
                    self.assertTrue((red == inside).all())
                    self.assertTrue((picture[:18, :, 2] > 200).all())
                got.set_state(Gst.State.NULL)

    def test_a_transparent_picture_cuts_a_hole(self):
        hole = numpy.zeros((160, 160), bool)
        hole[30:50, 40:90] = True
        for color, settings, cuts in ((0x00ffffff, "sink_1::operator=source", True), (0x00ffffff, "", False),
                                      (0xffffffff, "sink_1::operator=source sink_1::alpha=0", False)):
            with self.subTest(settings=settings, color=color):
                made = picture_of(
                    f"{COLOUR.format(0xffff0000, 'RGBA')} ! mix.sink_0 {COLOUR.format(color, 'RGBA')} ! mix.sink_1 "
                    f"cudablend name=mix sink_1::xpos=40 sink_1::ypos=30 sink_1::width=50 sink_1::height=20 {settings}")
                self.assertEqual(made.shape, (160, 160, 4))
                self.assertTrue(((made[..., 3] == 0) == (hole & cuts)).all())

    def test_two_streams_differ_by_the_mean(self):
        """Also in formats whose black is 16."""
        for format in ("I420", "NV12", "RGB", "Y444", "I420_10LE"):
            for other, bins in ((0x646464, (25600, 0)), (0x787878, (25600, 0)), (0x8c8c8c, (0, 25600))):
                with self.subTest(format=format, other=hex(other)):
                    pipeline = swap(
                        command_of("how-to/inspection.md", "sink_1::operator=difference"),
                        ("filesrc location=clip.mp4 ! decodebin", COLOUR.format(0xff646464, format)),
                        ("filesrc location=page.jpg ! jpegdec", COLOUR.format(0xff000000 | other, format)))
                    (message, *_) = messages_of(pipeline)
                    counts = message.get_value("channels")[0].get_value("counts")
                    self.assertEqual(tuple(count // 3 for count in counts[:2]), bins)
                    (message, *_) = messages_of(swap(pipeline, ("bins=8", "bins=256")))
                    self.assertAlmostEqual(message.get_value("channels")[0].get_value("mean"),
                                           (other & 255) - 100, delta=1.5)

    def test_the_first_message_of_each_time_judges_a_picture(self):
        good = numpy.full((48, 64, 4), 90, numpy.uint8)
        bad = good.copy()
        bad[8:28, 16:40] = 200
        for judged in ([good, bad], [bad, bad], [bad, good, bad], [good, good], [bad, good]):
            path = self.folder / "all"
            with open(path, "wb") as joined:
                for picture in (good, *judged):
                    write_png(self.folder / "one", picture)
                    joined.write((self.folder / "one").read_bytes())
            with open(path, "rb") as joined:
                told = messages_of(swap(
                    command_of("how-to/inspection.md", "cat page.jpg"), ("fdsrc", f"fdsrc fd={joined.fileno()}"),
                    ("image/jpeg", "image/png"), ("jpegparse", "pngparse"), ("jpegdec", "pngdec")))
            first = {}
            for message in told:
                first.setdefault(message.get_value("stream-time") // Gst.SECOND, message.get_value("event"))
            self.assertEqual([first[n + 1] in ("begin", "motion") for n in range(len(judged))],
                             [picture is bad for picture in judged])

    def test_four_frames_have_a_mean(self):
        """Of frames that are black and white in turn."""
        pipeline = Gst.parse_launch(swap(
            command_of("opencv.md", "cudablend name=mix"),
            ("filesrc location=clip.mp4 ! decodebin",
             "videotestsrc pattern=blink num-buffers=12 ! video/x-raw,format=RGB,framerate=20/1"),
            ("videoconvert ! autovideosink", "appsink name=sink")))
        pipeline.set_state(Gst.State.PLAYING)
        means = []
        while sample := pipeline.get_by_name("sink").emit("pull-sample"):
            with frames.Frame(sample) as frame:
                means.append(int(numpy.asarray(frame).mean()))
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual({mean in (127, 128) for mean in means[3:11]}, {True})

    def test_a_golden_picture_comes_from_a_file(self):
        """The stream has another format, size and rate than the file, and is compared with it to the end."""
        write_png(self.folder / "page.png", numpy.full((120, 120, 4), (100, 100, 100, 255), numpy.uint8))
        for format in ("I420", "NV12", "YUY2", "RGB", "I420_10LE"):
            for color, event in ((0xff646464, "none"), (0xff8c8c8c, "begin")):
                for more in ("", ",framerate=25/1", ",multiview-mode=mono", ",colorimetry=bt709"):
                    if format == "RGB" and "bt709" in more:
                        continue
                    with self.subTest(format=format, event=event, more=more):
                        told = messages_of(swap(
                            command_of("how-to/inspection.md", "concat name=golden"),
                            ("page.jpg ! jpegdec", f"{self.folder}/page.png ! pngdec"),
                            ("filesrc location=clip.mp4 ! decodebin", COLOUR.format(color, format) + more)))
                        self.assertEqual([message.get_value("event") for message in told[:2]], ["none", event])

    def test_samples_of_a_camera_fill_16_bits(self):
        """10, 12 and 14 bits in GRAY16_LE, as docs/formats.md says."""
        text = (root / "docs" / "formats.md").read_text(encoding="utf-8")
        weights = re.search(r'weights="<(\d+)>".*?14\s+bits: (\d+), 10\s+bits: (\d+)', text, re.S)
        twelve, fourteen, ten = weights.groups()
        for bits, weight in ((10, ten), (12, twelve), (14, fourteen)):
            with self.subTest(bits=bits):
                values = numpy.zeros((48, 64), "<u2")
                values[0] = 2**bits - 1
                values[1] = 7
                path = self.folder / "raw"
                path.write_bytes(values.tobytes())
                (message,) = messages_of(
                    f"filesrc location={path} blocksize=6144 ! video/x-raw,format=GRAY16_LE,width=64,height=48,"
                    f'framerate=1/1 ! cudaconvolve weights="<{weight}>" divisor=1 ! cudahistogram bins={2**bits} ! '
                    "fakesink")
                luma = message.get_value("channels")[0]
                counts = luma.get_value("counts")
                self.assertEqual((counts[0], counts[7], counts[-1]), (46 * 64, 64, 64))
                self.assertEqual(luma.get_value("saturated"), 47 / 48)

    def film(self, frames_, format="RGB"):
        """A source of these RGB frames, 10 per second, in another format."""
        path = self.folder / "film"
        path.write_bytes(b"".join(frame.tobytes() for frame in frames_))
        height, width, _ = frames_[0].shape
        return (f"filesrc location={path} blocksize={height * width * 3} ! rawvideoparse format=rgb width={width} "
                f"height={height} framerate=10/1 ! videoconvert ! video/x-raw,format={format}")

    def test_what_moves_is_put_in_front_of_a_picture(self):
        noise = numpy.random.default_rng(1)
        clip = []
        for n in range(90):
            frame = noise.normal(120, 2, (144, 192, 3)).clip(0, 255).astype(numpy.uint8)
            if n >= 60:
                frame[40:104, 2 * n - 100:2 * n - 60] = (220, 60, 30)
            clip.append(frame)
        for format in ("I420", "NV12", "YUY2", "RGB", "Y444", "BGRx"):
            with self.subTest(format):
                pipeline = Gst.parse_launch(swap(
                    command_of("elements/cudablend.md", "sink_2::operator=max"),
                    ("filesrc location=page.jpg ! jpegdec",
                     COLOUR.format(0xff2040c0, "RGB,framerate=10/1").replace("num-buffers=3", "num-buffers=1")),
                    ("filesrc location=clip.mp4 ! decodebin", self.film(clip, format)),
                    ("=768", "=192"), ("=576", "=144"),
                    ("videoconvert ! autovideosink", "appsink name=sink sync=false")))
                pipeline.set_state(Gst.State.PLAYING)
                pictures = []
                while sample := pipeline.get_by_name("sink").emit("pull-sample"):
                    with frames.Frame(sample) as frame:
                        pictures.append(numpy.array(numpy.asarray(frame)).astype(int))
                pipeline.set_state(Gst.State.NULL)
                self.assertGreaterEqual(len(pictures), 90)
                picture = pictures[85]
                moved = abs(picture - (220, 60, 30)).max(axis=2) < 40
                behind = abs(picture - (0x20, 0x40, 0xc0)).max(axis=2) < 12
                self.assertGreater(moved[46:98, 76:104].mean(), 0.95)
                self.assertGreater(behind[:, 130:].mean(), 0.99)
                self.assertGreater(behind[:, :50].mean(), 0.99)
                self.assertGreater((behind | moved).mean(), 0.95)

    def test_frames_of_one_colour_are_found(self):
        """As docs/elements/cudahistogram.md says, also with text, and not in a scene that is only dull."""
        noise = numpy.random.default_rng(2)
        for blue in ((2, 6, 254), (72, 47, 194), (0, 128, 0), (255, 255, 255), (10, 10, 10)):
            flat = (numpy.array(blue) + noise.normal(0, 2, (144, 192, 3))).clip(0, 255).astype(numpy.uint8)
            text = flat.copy()
            text[20:32, 20:80] = 255 - numpy.array(blue)
            dull = noise.normal(90, 12, (144, 192, 3)).clip(0, 255).astype(numpy.uint8)
            with self.subTest(blue):
                told = messages_of(self.film([flat, text, dull], "I420") + " ! videoconvert ! video/x-raw,format=RGB ! "
                                   "cudahistogram channels=components ! fakesink")

                def near(message, *fields):
                    return all(abs(channel.get_value(field) - value) <= 12
                               for channel, value in zip(message.get_value("channels"), blue) for field in fields)

                self.assertEqual([near(message, "p01", "p99") for message in told], [True, False, False])
                self.assertEqual([near(message, "median") for message in told], [True, True, False])

    def test_crossings_are_counted_per_minute(self):
        text = (root / "docs" / "scenes.md").read_text(encoding="utf-8")
        (count,) = re.findall(r"motion_alarm\.py .*? \| (sed -nE .*? \| \\\n.*? sort -n)\n", text)
        lines = []
        for time, line, direction in ((0, "gate", "left"), (59.96, "gate", "left"), (60, "gate", "left"),
                                      (61.5, "gate", "right"), (600.04, "near lane", "right"),
                                      (119.9, "gate", "right")):
            lines.append(json.dumps({"input": "a.mp4", "event": "cross", "time": time, "id": 3, "x": 1, "line": line,
                                     "direction": direction, "crossed_left": 7, "crossed_right": 1}))
            lines.append(json.dumps({"input": "a.mp4", "event": "enter", "time": time, "id": 3, "zone": "cross"}))
        lines.append(json.dumps({"input": "a.mp4", "event": "end", "time": None}))
        told = subprocess.run(["bash", "-c", count], input="\n".join(lines), capture_output=True, text=True, check=True)
        self.assertEqual(sorted(told.stdout.split("\n")[:-1]),
                         ["0,gate,left,2", "1,gate,left,1", "1,gate,right,2", "10,near lane,right,1"])

    def test_a_picture_is_passed_on_once(self):
        text = (root / "docs" / "how-to" / "alarms.md").read_text(encoding="utf-8")
        (loop,) = re.findall(r"(sed -un .*? \| \\\n.*? done)\n", text)
        for pause, told in ((600, ["a b-1.jpg"]), (0, ["a b-1.jpg", "c.jpg"])):
            lines = [json.dumps({"input": "a", "event": event, "time": 1, "regions": [{"x": 1}], "snapshot": name})
                     for event, name in (("begin", "a b-1.jpg"), ("begin", "c.jpg"), ("other", "d.jpg"))]
            lines.insert(1, json.dumps({"input": "a", "event": "end", "time": 2}))
            got = subprocess.run(["bash", "-c", swap(loop, ("600", str(pause)))], input="\n".join(lines) + "\n",
                                 capture_output=True, text=True, check=True)
            self.assertEqual(got.stdout.split("\n")[:-1], told)

    def test_a_clip_that_is_played_twice_has_a_known_background(self):
        """Things move from the first frame on: two or five."""
        text = (root / "docs" / "scenes.md").read_text(encoding="utf-8")
        (twice,) = re.findall(r"`(concat name=twice .*?)`", text)
        (small,) = re.findall(r"cudadiff (preset=low-light threshold=20 .*? track-min-frames=2)",
                              text.replace("\\\n", " "))
        for length, times, side, settings in ((60, 3, 9, small), (99, 3, 9, small), (100, 2, 9, small),
                                              (60, 3, 40, "preset=outdoor"), (100, 2, 40, "preset=outdoor")):
            noise = numpy.random.default_rng(4)
            across = range(20, 201, 45) if side == 9 else (20, 120)
            clip = []
            for n in range(length):
                frame = noise.normal(200, 1.5, (240, 320, 3))
                for top in across:
                    x, y = 20 + 240 * n // length, top + int(8 * numpy.sin(n / 8 + top))
                    frame[y:y + side, x:x + side] = 90
                clip.append(frame.clip(0, 255).astype(numpy.uint8))
            for format in ("I420", "RGB"):
                with self.subTest(length=length, side=side, format=format):
                    more = " filesrc … ! decodebin ! videoconvert ! twice." * (times - 2)
                    told = messages_of(swap(
                        twice + more, ("cudadiff …", f"cudadiff {settings} output=passthrough ! fakesink"),
                        ("filesrc … ! decodebin", self.film(clip, format))))
                    begin = (times - 1) * length * Gst.SECOND // 10
                    entered = [message.get_value("entered") / Gst.SECOND for message in told
                               if message.get_value("event") == "enter" and message.get_value("running-time") >= begin]
                    self.assertEqual(len(entered), len(across))
                    self.assertLess(max(entered), 0.6)

    def test_a_parcel_is_left_and_taken_away(self):
        """The events in docs/how-to/alarms.md: a person leaves a parcel, takes it, or takes one that was there."""
        noise = numpy.random.default_rng(6)
        ground = numpy.kron(noise.normal(140, 20, (30, 40, 1)), numpy.ones((8, 8, 3)))
        for left, taken in ((110, 999), (110, 200), (0, 110)):
            clip = []
            for n in range(290):
                frame = ground + noise.normal(0, 2, (240, 320, 3))
                for begin in (70, 160):                     # in from the right, 10 frames beside the parcel, and back
                    step = n - begin
                    if 0 <= step < 90 and (begin == 70 or taken == 200):
                        x = max(320 - 6 * step, 150) if step < 45 else 150 + 6 * (step - 45)
                        frame[60:200, x:x + 36] = (40, 40, 160)
                if left <= n < taken:
                    frame[172:200, 118:150] = (30, 180, 60)
                clip.append(frame.clip(0, 255).astype(numpy.uint8))
            with self.subTest(left=left, taken=taken):
                told = messages_of(f"{self.film(clip, 'I420')} ! cudadiff preset=outdoor still-time=5 "
                                   "output=passthrough ! fakesink")
                near = [(message.get_value("event"), round(message.get_value("stream-time") / Gst.SECOND, 1))
                        for message in told
                        if message.get_value("event") in ("stopped", "moving", "removed", "leave") and
                        abs(message.get_value("x") - 118) < 40]
                self.assertIn(near[0][0], ("stopped", "removed") if left == 0 else ("stopped",), near)
                self.assertAlmostEqual(near[0][1], 17, delta=2, msg=near)
                gone = [time for name, time in near[1:] if name in ("moving", "leave")]
                self.assertAlmostEqual(gone[0], 20.5 if taken == 200 else 29, delta=1.5, msg=near)

    def test_a_thing_that_moved_by_pixels_is_found(self):
        """With the settings in docs/motion.md, in an area that is masked around it; noise alone is not motion."""
        text = (root / "docs" / "motion.md").read_text(encoding="utf-8")
        (settings,) = re.findall(r"doormat.*?`(preset=[^`]*)`", text, re.S)
        for dx, dy, contrast, sigma in ((4, 0, -60, 2), (0, 4, -60, 2), (3, 2, 40, 2), (8, 0, 30, 4), (0, 0, -60, 2)):
            noise = numpy.random.default_rng(3)
            clip = []
            for n in range(120):
                frame = noise.normal(110, sigma, (288, 384, 3))
                x, y = (100 + dx, 200 + dy) if n >= 80 else (100, 200)
                frame[y:y + 30, x:x + 60] += contrast
                clip.append(frame.clip(0, 255).astype(numpy.uint8))
            with self.subTest(dx=dx, dy=dy, contrast=contrast):
                told = messages_of(f"{self.film(clip, 'I420')} ! cudadiff {settings} output=passthrough "
                                   "mask-regions=\"0.0,0.0,1.0,0.6; 0.5,0.6,0.5,0.4\" ! fakesink")
                begins = [message.get_value("stream-time") / Gst.SECOND for message in told
                          if message.get_value("event") == "begin"]
                self.assertEqual(len(begins), 1 if dx or dy else 0)
                for begin in begins:
                    self.assertAlmostEqual(begin, 8, delta=0.3)

    def test_frames_of_arrays_arrive(self):
        """The program in docs/python.md."""
        text = (root / "docs" / "python.md").read_text(encoding="utf-8")
        (code,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "BufferMaker(" in code]
        code = swap(code, ('BufferMaker("RGBA", 1280, 720)', 'BufferMaker("RGBA", 1280, 720, device="cpu")'))
        pipeline = Gst.parse_launch("appsrc name=source format=time ! cudablend ! appsink name=sink")
        pipeline.set_state(Gst.State.PLAYING)
        picture = numpy.full((720, 1280, 4), 255, numpy.uint8)
        exec(code, {"Gst": Gst, "frames": frames, "picture": picture, "appsrc": pipeline.get_by_name("source")})
        pipeline.get_by_name("source").emit("end-of-stream")
        sample = pipeline.get_by_name("sink").emit("pull-sample")
        with frames.Frame(sample) as frame:
            self.assertTrue((numpy.asarray(frame) == 255).all())
        pipeline.set_state(Gst.State.NULL)

    def test_programs_use_what_pygobject_has(self):
        """Without GstApp, which few programs import, an appsrc and an appsink have signals, but no methods."""
        for path in [*(root / "docs").rglob("*.md"), *(root / "gst" / "python").rglob("*.py"),
                     *(root / "examples").rglob("*.py"), *(root / "examples").rglob("*.md")]:
            self.assertIsNone(re.search(r"\.(push_buffer|push_sample|pull_sample|end_of_stream)\(",
                                        path.read_text(encoding="utf-8")), path)


if __name__ == "__main__":
    unittest.main()
