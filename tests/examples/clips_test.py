#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests what the report does with video files: which are shown unchanged, remuxed or encoded, clips of events, and
clips that end too early. Makes small clips with GStreamer's encoders. Exit status 77 without the bindings, NumPy or an
encoder."""
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock

import programs
from programs import REPORT, has, launch
programs.use("motion-report")
import numpy  # noqa: E402
import common  # noqa: E402
from common import Gst  # noqa: E402
import analysis  # noqa: E402
import clip_facts  # noqa: E402
import clip_formats  # noqa: E402
import clip_streams  # noqa: E402
import clips_of_events  # noqa: E402
import edl  # noqa: E402
import joined_clips  # noqa: E402
import findings  # noqa: E402
import media  # noqa: E402
import motion_report  # noqa: E402
import page_video  # noqa: E402
import stamp  # noqa: E402

H264 = "openh264enc gop-size=25 ! h264parse"
LISTS = ["clips.csv", "clips.edl", "clips.json"]
FILES = ["frames.csv", "heat.jpg", "motion.jsonl", "objects.csv", "report.html"]  # of a report of a clip with motion


def make(path, encoder, frames=100, source="pattern=ball"):
    """Writes a clip of 25 frames per second. Returns its path."""
    launch(f"videotestsrc {source} num-buffers={frames} ! "
           f"video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! {encoder} ! filesink", location=path)
    return str(path)


def args_of(clip, *options):
    """The arguments of motion-report for this clip."""
    with unittest.mock.patch.object(sys, "argv", [REPORT, str(clip), "--backend=cpu", *options]):
        return motion_report.parse_arguments()


def from_source(description, **values):
    """Makes reports read this source instead of their clip."""
    return unittest.mock.patch.object(analysis.inputs, "source_of", return_value=(description, values))


def decoded(path, convert=""):
    return common.samples(common.parse(f"{common.DECODER} name=clip ! {convert} appsink name=sink sync=false",
                                       clip={"uri": common.uri_of(str(path))}))


def times_of(path):
    """The presentation times of all frames, in seconds."""
    return [sample.get_buffer().pts / Gst.SECOND for sample in decoded(path)]


def stream_times_of(path):
    """Like times_of(), but with stream times."""
    return [clip_streams.stream_time(sample, sample.get_buffer().pts) / Gst.SECOND for sample in decoded(path)]


def early(sample, number):
    """A sample with a presentation time before one second."""
    buffer = sample.get_buffer().copy_deep()
    buffer.pts = Gst.SECOND - (2 - number) * Gst.SECOND // 25
    return Gst.Sample.new(buffer, sample.get_caps(), sample.get_segment(), None)


class Clips(programs.InFolder):
    def report(self, *arguments, status=0):
        done = self.run_report(*arguments)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return done.stdout

    def cut(self, clip, *events, before=1, after=0.5, began=None):
        """Cuts events out, each a begin, an end and perhaps an object. Returns the rows of the list of clips."""
        return clips_of_events.cut(clip, clip_facts.facts_of(clip), [clips_of_events.Event(*each) for each in events],
                                   self.folder / "clips", before, after, began)


@unittest.skipUnless(has("openh264enc", "h264timestamper"), "no openh264enc, or no h264timestamper")
class Shown(Clips):
    def test_what_browsers_play(self):
        for name, encoder, expected in (
                ("a.mp4", f"{H264} ! mp4mux", ("as it is", "mp4")),
                ("a.mkv", f"{H264} ! matroskamux", ("remux", "mp4")),
                ("a.mov", f"{H264} ! qtmux", ("remux", "mp4")), ("a.ts", f"{H264} ! mpegtsmux", ("remux", "mp4")),
                ("a.webm", "vp8enc deadline=1 ! webmmux", ("as it is", "webm")),
                ("b.mkv", "vp9enc deadline=1 ! matroskamux", ("remux", "webm")),
                ("a.avi", "jpegenc ! avimux", ("encode", None)), ("c.mkv", "jpegenc ! matroskamux", ("encode", None))):
            facts = clip_facts.facts_of(make(self.folder / name, encoder, 30))
            how = "encode" if page_video.needs_encoding(facts) else "as it is" if facts.as_it_is else "remux"
            self.assertEqual((how, None if how == "encode" else facts.suffix), expected, name)
            if how == "remux":
                with open(self.folder / "remuxed", "w+b") as stream:
                    clip_facts.remux(str(self.folder / name), facts, stream)
                again = clip_facts.facts_of(str(self.folder / "remuxed"))
                self.assertTrue(again.as_it_is, name)
                original, new = times_of(self.folder / name), times_of(self.folder / "remuxed")
                # The last frame of MPEG-TS has no duration.
                self.assertEqual(len(new), 29 if name == "a.ts" else 30, name)
                self.assertLess(max(abs((a - original[0]) - (b - new[0])) for a, b in zip(original, new)), 0.002, name)

    @unittest.skipUnless(has("avenc_mp2", "vp9enc"), "no avenc_mp2, or no vp9enc")
    def test_pictures_that_begin_after_the_sound(self):
        """The page shows the times of the clip, although MP4 begins at 0."""
        for name, encoder, muxer, pads in (
                ("a.ts", H264, "mpegtsmux prog-map=program_map,sink_300=1,sink_301=1,PCR_1=sink_301",
                 ("sink_300", "sink_301")),
                ("a.mkv", H264, "matroskamux", ("video_0", "audio_0")),
                ("b.mkv", "vp9enc deadline=1", "matroskamux", ("video_0", "audio_0"))):
            clip = str(self.folder / name)
            launch("videotestsrc timestamp-offset=1000000000 num-buffers=30 ! "
                   f"video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! {encoder} ! queue ! file.{pads[0]} "
                   f"{muxer} name=file ! filesink location={clip} "
                   f"audiotestsrc num-buffers=90 ! avenc_mp2 ! queue ! file.{pads[1]}")
            facts, original = clip_facts.facts_of(clip), stream_times_of(clip)
            self.assertGreater(original[0], 0.9, name)
            with common.Unfinished(self.folder) as file:
                video = page_video.choose(clip, facts, findings.Findings(start=original[0]), file, "mp4")
                new = stream_times_of(video.path)
            self.assertGreaterEqual(len(new), 29, name)
            self.assertLess(max(abs(a - (b + video.begins)) for a, b in zip(original, new)), 0.002, name)

    def test_ctrl_c_leaves_no_part_of_a_video(self):
        clip = make(self.folder / "a.mkv", f"{H264} ! matroskamux", 5)
        with unittest.mock.patch.object(common, "play", return_value=True), common.Unfinished(self.folder) as file:
            with self.assertRaises(KeyboardInterrupt):
                page_video.choose(clip, clip_facts.facts_of(clip), findings.Findings(), file, "mp4")

    def test_what_is_encoded(self):
        """Tests a profile that browsers do not play, a rotated clip, and a file that is not a video."""
        clip = make(self.folder / "a.mkv", f"{H264} ! matroskamux", 5)
        self.assertFalse(page_video.needs_encoding(clip_facts.facts_of(clip)))
        for name, value in ("profile", "high-10"), ("turned", True):
            facts = clip_facts.facts_of(clip)
            setattr(facts, name, value)
            self.assertTrue(page_video.needs_encoding(facts), name)
        (self.folder / "text").write_text("no clip")
        self.assertIsNone(clip_facts.facts_of(str(self.folder / "text")))
        self.assertTrue(page_video.needs_encoding(None))

    def test_the_clip_itself_lies_beside_the_page(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 60)
        self.report(f"--clip={clip}", "--embed=0")
        self.assertEqual(self.names(), [*FILES, "report.mp4"])
        self.assertTrue(os.path.samefile(clip, self.folder / "out/report.mp4"))
        self.assertIn("the clip itself", self.page())
        self.report("--frames=20")  # a part is encoded
        self.assertEqual(self.names(), FILES)
        self.assertTrue(os.path.getsize(clip))

    def test_the_heat_map(self):
        """It has a tint only where something moved. A clip without motion removes the old one."""
        clip = make(self.folder / "a.mkv", "jpegenc ! matroskamux", 50, "pattern=ball motion=hsweep")
        self.report(f"--clip={clip}")
        (sample,) = decoded(self.folder / "out/heat.jpg", "videoconvert ! video/x-raw,format=RGB !")
        picture = numpy.frombuffer(sample.get_buffer().extract_dup(0, 160 * 120 * 3), numpy.uint8).reshape(120, 160, 3)
        tint = picture[..., 0].astype(int) - picture[..., 2]
        self.assertGreater(tint[:80].max(), 100)  # the ball stays in the upper part
        self.assertLess(abs(tint[90:]).max(), 20)
        self.report(f"--clip={make(self.folder / 'b.mkv', 'jpegenc ! matroskamux', 20, 'pattern=black')}")
        self.assertFalse((self.folder / "out/heat.jpg").exists())

    def test_a_clip_among_the_outputs_stays(self):
        clips = self.folder / "out/clips"
        clips.mkdir(parents=True)
        for path in self.folder / "out/report.mp4", clips / "00h00m01.0s_0001.mp4":
            make(path, f"{H264} ! mp4mux", 60)
            data = path.read_bytes()
            self.report(f"--clip={path}", "--clips")
            self.assertEqual(path.read_bytes(), data)

    def test_a_copy_where_a_link_is_impossible(self):
        (self.folder / "a").write_bytes(b"video")
        with unittest.mock.patch.object(os, "link", side_effect=OSError):
            page_video.link(str(self.folder / "a"), self.folder / "b")
        self.assertEqual((self.folder / "b").read_bytes(), b"video")
        self.assertFalse(os.path.samefile(self.folder / "a", self.folder / "b"))
        page_video.link(str(self.folder / "a"), self.folder / "a")  # the clip is the file beside the page
        self.assertEqual(self.names("."), ["a", "b"])

    def test_an_encoded_video_begins_at_zero_and_is_small(self):
        self.report("--frames=20", "--embed=0")
        name = self.folder / "out" / f"report.{media.encoder()[1]}"
        times = times_of(str(name))
        self.assertEqual((len(times), round(times[-1] - times[0], 3)), (20, 0.633))
        facts = clip_facts.facts_of(str(name))
        self.assertTrue(facts.as_it_is)
        make(self.folder / "wide.avi", "videoscale add-borders=true ! "
             "video/x-raw,width=2000,height=500,pixel-aspect-ratio=1/1 ! jpegenc ! avimux", 3)
        self.report(f"--clip={self.folder / 'wide.avi'}", "--embed=0")
        facts = clip_facts.facts_of(str(name))
        self.assertEqual((facts.width, facts.height), (960, 240))


@unittest.skipUnless(has("openh264enc", "h264timestamper"), "no openh264enc, or no h264timestamper")
class Events(Clips):
    def test_cut_at_key_frames(self):
        for name, encoder in (("a.mp4", f"{H264} ! mp4mux"), ("a.mkv", f"{H264} ! matroskamux"),
                              ("a.avi", "jpegenc ! avimux"),
                              ("a.webm", "vp8enc deadline=1 keyframe-max-dist=25 ! webmmux"),
                              ("b.avi", "avenc_msmpeg4 gop-size=25 ! avimux"),
                              ("c.avi", "avenc_mpeg4 gop-size=25 ! avimux")):
            if not has(encoder.split()[0]):
                continue
            clip = make(self.folder / name, encoder, 200)
            self.assertTrue(clip_formats.can_cut(clip_facts.facts_of(clip)))
            rows = self.cut(clip, (3.5, 4.0), (0.5, 1, 12), (7.5, 7.9))
            limits = (1.9, 2.5, 4.5, 4.6), (0, 0.1, 1.5, 1.6), (5.9, 6.5, 8.0, 8.04)
            for row, (least, begin, end, most) in zip(rows, limits, strict=True):
                self.assertTrue(least <= row["begin_s"] <= begin and end - 0.05 <= row["end_s"] <= most, (name, row))
                times = times_of(self.folder / "clips" / row["file"])
                self.assertLess(abs(len(times) / 25 - (row["end_s"] - row["begin_s"])), 0.1, (name, row))
                self.assertLess(times[0], 0.2)
            self.assertEqual([row["object"] for row in rows], ["", 12, ""])
            self.assertIn("_object-12.", rows[1]["file"])

    def test_clips_that_overlap_are_one(self):
        """There is a key frame every second, so the clip of the second event begins at 4, before the first one ends."""
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 200)
        facts = clip_facts.facts_of(clip)

        def cut(*events, before=0.5, after=0.5):
            given = [clips_of_events.Event(*each) for each in events]
            rows = clips_of_events.cut(clip, facts, given, self.folder / "clips", before, after)
            self.assertEqual(len(list((self.folder / "clips").glob("*.mp4"))), len(rows))
            ends = {}
            for row in sorted(rows, key=lambda row: row["begin_s"]):
                self.assertGreaterEqual(row["begin_s"] + 1e-3, ends.get(row["object"], 0) - 0.04)
                ends[row["object"]] = row["end_s"]
            return [(round(row["event_begin_s"], 1), round(row["event_end_s"], 1)) for row in rows], given

        self.assertEqual(cut((1, 2), (2.4, 3))[0], [(1, 3)])
        self.assertEqual(cut((1, 2), (1.2, 1.5), (2.2, 2.4))[0], [(1, 2.4)])
        self.assertEqual(cut((3, 3.8), (4.9, 5))[0], [(3, 5)])
        self.assertEqual(cut((3, 3.4), (5.6, 6))[0], [(3, 3.4), (5.6, 6)])
        self.assertEqual(cut((6, 6.2), (1, 1.2), (1.4, 2))[0], [(6, 6.2), (1, 2)])
        self.assertEqual(cut((1, 2), (4, 5), before=0, after=9)[0], [(1, 5)])
        found, given = cut((1, 2, 7), (1.5, 2.5, 8), (2.5, 3, 7))
        self.assertEqual(found, [(1, 3), (1.5, 2.5)])
        self.assertEqual([event.row["object"] for event in given], [7, 8, 7])
        self.assertIs(given[0].row, given[2].row)

    def join(self, clip, *events):
        """The rows of the clips of events, the path of the joined file, and the remark about it."""
        rows = self.cut(clip, *events, before=0.2, after=0.2)
        name, remark = joined_clips.join(rows, self.folder / "clips")
        return rows, self.folder / "clips" / name, remark

    def encoded(self, path):
        """The bytes of the pictures of a file, and their times from its first picture, in their order."""
        with clip_streams.Reader(str(path), clip_facts.facts_of(str(path))) as reader:
            buffers = [sample.get_buffer() for number, sample in reader.samples(0, 3600 * Gst.SECOND)
                       if sample and number == 0]
        first = min(buffer.pts for buffer in buffers)
        return ([buffer.extract_dup(0, buffer.get_size()) for buffer in buffers],
                [(buffer.pts - first) / Gst.SECOND for buffer in buffers])

    def test_motions_become_one_file(self):
        """The joined file has the pictures of the clips, not encoded again, one after the other."""
        for name, encoder in (("a.mp4", f"{H264} ! mp4mux"), ("b.mkv", f"{H264} ! matroskamux"),
                              ("c.webm", "vp8enc deadline=1 keyframe-max-dist=25 ! webmmux"),
                              ("d.avi", "jpegenc ! avimux"),
                              ("e.mkv", "x265enc key-int-max=25 option-string=log-level=none ! h265parse ! "
                               "matroskamux")):
            if not has(encoder.split()[0]):
                continue
            with self.subTest(name):
                rows, joined, remark = self.join(make(self.folder / name, encoder, 200), (6, 6.4), (1, 1.4), (3.3, 3.6))
                self.assertEqual((len(rows), remark), (3, ""))
                whole, times = self.encoded(joined)
                clips = [self.encoded(self.folder / "clips" / row["file"])
                         for row in sorted(rows, key=lambda row: row["begin_s"])]
                self.assertEqual(whole, [picture for pictures, _ in clips for picture in pictures])
                self.assertEqual(joined.suffix, pathlib.Path(rows[0]["file"]).suffix)
                begin = 0
                for pictures, own in clips:
                    for when, expected in zip(times[:len(own)], own):
                        self.assertAlmostEqual(when - begin, expected, delta=0.003)
                    times, begin = times[len(own):], begin + len(own) / 25
                self.assertAlmostEqual(clip_facts.facts_of(str(joined)).length, begin, delta=0.1)

    def test_motions_that_cannot_be_joined(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 200)
        rows, joined, _ = self.join(clip, (1, 1.4), (6, 6.4))
        self.assertEqual(joined_clips.join([], self.folder / "clips"), (None, ""))
        joined.unlink()
        other = self.folder / "clips" / rows[1]["file"]
        for width, encoder, sentence in ((320, f"{H264} ! mp4mux", "320×120 instead of 160×120"),
                                         (160, "jpegenc ! matroskamux", "image/jpeg instead of video/x-h264")):
            launch(f"videotestsrc num-buffers=30 ! video/x-raw,format=I420,width={width},height=120,framerate=25/1 ! "
                   f"{encoder} ! filesink", location=str(other))
            with self.assertRaises(joined_clips.NotJoined) as raised:
                joined_clips.join(rows, self.folder / "clips")
            self.assertEqual(str(raised.exception), "the motions were not joined: "
                             f"{rows[1]['file']} differs from {rows[0]['file']}: {sentence}")
        facts = clip_facts.facts_of(str(other))
        facts.setup = "another"
        with (unittest.mock.patch.object(clip_facts, "facts_of", side_effect=[clip_facts.facts_of(str(other)), facts]),
              self.assertRaisesRegex(joined_clips.NotJoined, "its decoder settings differ$")):
            joined_clips.join(rows, self.folder / "clips")
        facts.codec = "video/x-divx"
        with (unittest.mock.patch.object(clip_facts, "facts_of", return_value=facts),
              self.assertRaisesRegex(joined_clips.NotJoined, "video/x-divx cannot be joined without encoding$")):
            joined_clips.join(rows, self.folder / "clips")
        other.write_text("no clip")
        with self.assertRaisesRegex(joined_clips.NotJoined, "there is no video in it, or it cannot be read$"):
            joined_clips.join(rows, self.folder / "clips")
        with self.assertRaisesRegex(joined_clips.NotJoined, "could not be cut in time$"):
            joined_clips.join(rows[:1], self.folder / "clips", until=0)
        self.assertFalse(joined.exists())

    def test_the_report_joins(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 200)
        settings = f"--clip={clip}", "--set=preset=custom", "--set=min-area=1"
        folder = self.folder / "out/clips"
        said = self.report(*settings, "--clips=joined")
        rows = self.list_of_clips()
        self.assertIn(f"{'clips of events':<40}{len(rows)}, in out/clips, all in all-motions.mp4", said)
        self.assertEqual(self.names("out/clips"), sorted([row["file"] for row in rows] + [*LISTS, "all-motions.mp4"]))
        with unittest.mock.patch.object(joined_clips, "write", side_effect=common.Failure("it did not open")):
            found = motion_report.report(args_of(clip, *settings[1:], "--clips=joined"), self.folder / "out")
        self.assertEqual(found.incomplete, "the motions were not joined: it did not open")
        self.assertFalse((folder / "all-motions.mp4").exists())  # it showed the motions of the first run
        self.report(*settings, "--clips=joined")
        self.assertTrue((folder / "all-motions.mp4").exists())
        self.report(*settings)
        self.assertFalse(folder.exists())

    def test_a_list_for_editors(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 200)
        self.cut(clip, (1, 1.4), (6, 6.4), before=0, after=0)
        lines = (self.folder / "clips/clips.edl").read_text().splitlines()
        self.assertEqual(lines[:2], ["TITLE: a.mp4", "FCM: NON-DROP FRAME"])
        self.assertRegex(lines[3], r"^001  AX       V     C        00:00:01:00 00:00:01:1\d 00:00:00:00 00:00:00:1\d$")
        self.assertRegex(lines[6], r"^002  AX       V     C        00:00:06:00 00:00:06:1\d 00:00:00:1\d 00:00:00:2\d$")
        self.assertEqual(lines[7], "* FROM CLIP NAME: a.mp4")
        self.assertEqual(edl.text_of("ü\nx", [(3600.0, 3601.001)], 30000 / 1001).splitlines()[3:],
                         ["001  AX       V     C        00:59:56:12 00:59:57:12 00:00:00:00 00:00:01:00",
                          "* FROM CLIP NAME: ? x"])
        clips_of_events.forget_listed(str(self.folder / "clips"), None)
        self.assertFalse((self.folder / "clips").exists())

    def test_no_clip_spans_a_gap_in_the_times(self):
        """Recorders export files in which the times jump where nothing was recorded."""
        whole = make(self.folder / "a.mkv", f"{H264} ! matroskamux")
        for kind in "matroskamux", "mp4mux":
            path = str(self.folder / f"{kind}.{'mkv' if kind == 'matroskamux' else 'mp4'}")
            pipeline = common.parse(f"appsrc name=in format=time ! h264parse ! {kind} ! filesink name=out",
                                    out={"location": path})
            pipeline.set_state(Gst.State.PLAYING)
            source = common.parse("filesrc name=file ! matroskademux ! appsink name=sink", file={"location": whole})
            source.get_by_name("sink").set_property("sync", False)
            for sample in common.samples(source):
                buffer = sample.get_buffer().copy_deep()
                buffer.pts += 600 * Gst.SECOND * (buffer.pts >= 2 * Gst.SECOND)
                pipeline.get_by_name("in").emit("push-sample", Gst.Sample.new(buffer, sample.get_caps(), None, None))
            pipeline.get_by_name("in").emit("end-of-stream")
            common.check(pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE,
                                                               Gst.MessageType.EOS | Gst.MessageType.ERROR))
            pipeline.set_state(Gst.State.NULL)
            events = [clips_of_events.Event(0.5, 1.5), clips_of_events.Event(602.5, 603)]
            with self.subTest(kind=kind):
                rows = clips_of_events.cut(path, clip_facts.facts_of(path), events, self.folder / "clips", 2, 2)
                self.assertEqual(len(rows), 2, rows)
                for row, (begin, end) in zip(rows, ((0, 2), (602, 604))):
                    self.assertLess(abs(row["begin_s"] - begin), 0.1, rows)
                    self.assertLess(abs(row["end_s"] - end), 0.1, rows)
                    # Without a frame rate, mp4mux gives the last picture no duration.
                    self.assertIn(len(list(decoded(self.folder / "clips" / row["file"]))), (49, 50))

    def test_stamp_says_what_it_needs_before_it_begins(self):
        plugins = pathlib.Path(Gst.Registry.get().find_plugin("coreelements").get_filename()).parent
        (self.folder / "plugins").mkdir()
        for path in plugins.glob("*.so"):
            if path.name != "libgstpango.so":
                (self.folder / "plugins" / path.name).symlink_to(path)
        found = {**os.environ, "GST_PLUGIN_SYSTEM_PATH_1_0": str(self.folder / "plugins"),
                 "GST_REGISTRY_1_0": str(self.folder / "registry")}
        done = subprocess.run([REPORT, "--clips", "--stamp", "--frames=10"], capture_output=True, text=True,
                              cwd=self.folder, env=found)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("--stamp needs the element timeoverlay: install gstreamer1.0-x", done.stderr)
        done = self.run_report("--stamp", "--frames=10")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--stamp needs --clips", done.stderr)

    @unittest.skipUnless(has("timeoverlay"), "no timeoverlay")
    def test_a_time_is_burnt_in(self):
        """The upper left corner changes once per second of the clip's clock. Nothing else changes."""
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 150, "pattern=black")
        began = datetime.datetime(2024, 2, 29, 23, 59, 58, 400000, datetime.timezone(datetime.timedelta(hours=2)))
        for when, first in ((None, 0), (began, 0.6)):
            (row,) = self.cut(clip, (2, 4), before=0, after=0, began=when)
            stamp.burn(row, str(self.folder / "clips"), when and when + datetime.timedelta(seconds=row["begin_s"]))
            pictures = [numpy.frombuffer(sample.get_buffer().extract_dup(0, 160 * 120), numpy.uint8).reshape(120, 160)
                        for sample in decoded(self.folder / "clips" / row["file"],
                                              "videoconvert ! video/x-raw,format=GRAY8 !")]
            self.assertEqual(len(pictures), round(25 * (row["end_s"] - row["begin_s"])))
            self.assertGreater(pictures[0][:60].max(), 100)
            self.assertLess(pictures[0][60:].max(), 40)
            changes = [abs(one.astype(int) - other).max() > 40 for one, other in zip(pictures, pictures[1:])]
            found = [(index + 1) / 25 for index, changed in enumerate(changes) if changed]
            self.assertTrue(found and all(abs(one - first - round(one - first)) < 0.1 for one in found), found)
        epoch, form = stamp.epoch_of(began + datetime.timedelta(seconds=3.5), 3.5)
        self.assertEqual(epoch.format(form), "2024-03-01 00:00:01")
        epoch, form = stamp.epoch_of(None, 3723.5)
        self.assertEqual(epoch.format(form), "01:02:03")

    def test_pictures_before_the_key_frame_are_left_out(self):
        """In Matroska with open GOPs, frames after the key frame may be shown before it, and have no decoding time."""
        clip = make(self.folder / "a.mkv", f"{H264} ! matroskamux", 50)
        with clip_streams.Reader(clip, clip_facts.facts_of(clip)) as reader:
            given = [sample for _, sample in reader.samples(int(1.5e9), int(1.9e9)) if sample]
        self.assertEqual([given[0].get_buffer().pts, given[0].get_buffer().dts], [Gst.SECOND, Gst.CLOCK_TIME_NONE])
        with open(self.folder / "cut.mp4", "w+b") as stream:
            found = clip_streams.write([(0, sample) for sample in (
                given[0], *(early(sample, i) for i, sample in enumerate(given[1:3])), *given[3:])],
                                          clip_facts.facts_of(clip), stream)
        self.assertEqual(found[0], Gst.SECOND)
        # Count without decoding: the two frames were not really leading pictures, and some decoders drop frames that
        # refer to them.
        cut = str(self.folder / "cut.mp4")
        with clip_streams.Reader(cut, clip_facts.facts_of(cut)) as reader:
            self.assertEqual(sum(bool(sample) for _, sample in reader.samples(0, 10 * Gst.SECOND)), len(given) - 2)

    def test_what_does_not_come_is_a_failure(self):
        clip = make(self.folder / "a.mkv", f"{H264} ! matroskamux", 50)
        facts = clip_facts.facts_of(clip)
        reader = clip_streams.Reader(clip, facts)
        drop = Gst.PadProbeType.DATA_DOWNSTREAM, lambda *_: Gst.PadProbeReturn.DROP
        reader.sinks[0].get_static_pad("sink").add_probe(*drop)  # no data must arrive
        with unittest.mock.patch.object(clip_streams, "PATIENCE", 0):
            with self.assertRaisesRegex(common.Failure, "did not open within 0 s"), reader:
                self.fail()
        lost = {facts.codec: ("h264parse ! valve drop=true", "mp4mux", "mp4")}  # not even the end arrives
        with clip_streams.Reader(clip, facts) as reader, open(self.folder / "cut.mp4", "w+b") as stream:
            with (unittest.mock.patch.object(clip_streams, "PATIENCE", 0),
                  unittest.mock.patch.dict(clip_formats.FORMATS, lost)):
                with self.assertRaisesRegex(common.Failure, "not written to its end within 0 s"):
                    clip_streams.write(reader.samples(0, int(2e9)), facts, stream)

    def test_a_slow_disk_holds_the_reader(self):
        """The queue of the writer does not grow, and an error ends the wait."""
        slow = {"image/jpeg": ("identity sleep-time=500", "matroskamux", "mkv")}
        facts, segment, waiting = unittest.mock.Mock(codec="image/jpeg", sounds=(), rate=25), Gst.Segment(), []
        push = clip_streams.Writer.push
        segment.init(Gst.Format.TIME)

        def given():
            for i in range(300):
                buffer = Gst.Buffer.new_wrapped(bytes(1000))
                buffer.pts = buffer.dts = i * Gst.SECOND // 25
                yield 0, Gst.Sample.new(buffer, Gst.Caps.from_string("image/jpeg,width=16,height=16,framerate=25/1"),
                                        segment, None)

        def watched(writer, number, sample):
            push(writer, number, sample)
            waiting.append(writer.queued(writer.sources[number]))

        with (unittest.mock.patch.object(clip_streams.Writer, "push", watched),
              unittest.mock.patch.object(clip_streams, "QUEUED", 3000),
              unittest.mock.patch.dict(clip_formats.FORMATS, slow)):
            with open(self.folder / "cut.mkv", "w+b") as stream:
                clip_streams.write(given(), facts, stream)
            self.assertLessEqual(max(waiting), 3000)
            with open("/dev/full", "wb") as stream, self.assertRaises(common.Failure):
                clip_streams.write(given(), facts, stream)

    def test_names_carry_the_time(self):
        began = datetime.datetime(2026, 1, 31, 23, 59, 58, tzinfo=datetime.timezone.utc)
        event = clips_of_events.Event(1, 2, 7)
        names = [clips_of_events.name_of(3, event, 3723.45, None, "mp4"),
                 clips_of_events.name_of(3, event, 3.0, began + datetime.timedelta(seconds=3), "mp4")]
        self.assertEqual(names, ["01h02m03.4s_0003_object-7.mp4", "2026-02-01T00-00-01_0003_object-7.mp4"])
        for name in names:
            self.assertTrue(clips_of_events.NAME.fullmatch(name))

    def test_the_report_cuts(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 200)
        said = self.report(f"--clip={clip}", "--clips=visits", "--set=preset=custom", "--set=min-area=1")
        folder = self.folder / "out/clips"
        rows = self.list_of_clips()
        self.assertIn(f"{'clips of events':<40}{len(rows)},", said)
        self.assertTrue(rows)
        self.assertEqual([{key: str(value) for key, value in row.items()} for row in rows],
                         programs.rows_of(folder / "clips.csv"))
        self.assertEqual(self.names("out/clips"), sorted([row["file"] for row in rows] + LISTS))
        self.assertTrue(rows[0]["begin_clock"])  # mp4mux writes the time
        self.assertIn(f'"clip":"clips/{rows[0]["file"]}"', self.page())
        # The second run removes the clips of the first one. Its clips come from the page's own video, and show motions.
        (folder / "mine.txt").write_text("precious")
        self.report("--frames=60", "--clips", "--after=0")
        rows = self.list_of_clips()
        self.assertEqual(self.names("out/clips"), sorted([row["file"] for row in rows] + [*LISTS, "mine.txt"]))
        self.assertTrue(rows and times_of(folder / rows[0]["file"]))

    @unittest.skipUnless(has("avenc_msmpeg4"), "no avenc_msmpeg4")
    def test_an_old_clip_is_cut_out_of_the_video_of_the_page(self):
        clip = make(self.folder / "a.avi", "avenc_msmpeg4 gop-size=250 ! avimux", 100)
        self.report(f"--clip={clip}", "--clips", "--set=preset=custom", "--set=min-area=1")
        rows = self.list_of_clips()
        self.assertTrue(rows and all(clip_facts.facts_of(str(self.folder / "out/clips" / row["file"])).played
                                     for row in rows))

    def test_it_gives_up_in_time(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 50)
        with self.assertRaisesRegex(common.Failure, "could not be cut in time"):
            clips_of_events.cut(clip, clip_facts.facts_of(clip), [clips_of_events.Event(1, 1.5)],
                                self.folder / "clips", until=0)
        self.assertEqual(self.names("clips"), LISTS)

    def test_a_failure_costs_only_the_clips_after_it(self):
        clip = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 100)
        facts = clip_facts.facts_of(clip)
        events = [clips_of_events.Event(number, number + 0.5, number) for number in (1, 2, 3)]
        for error, sentence in ((common.Failure("the seek failed"), "the seek failed"),
                                (OSError(28, "disk full"), "cannot write to .*: disk full")):
            with unittest.mock.patch.object(clips_of_events, "write", side_effect=[(0, Gst.SECOND), error]):
                with self.assertRaisesRegex(common.Failure, sentence):
                    clips_of_events.cut(clip, facts, events, self.folder / "clips")
            self.assertEqual([row["file"] for row in json.loads((self.folder / "clips/clips.json").read_text())],
                             [events[0].row["file"]])
        args = args_of(clip, "--clips", "--set=preset=custom", "--set=min-area=1")
        with unittest.mock.patch.object(clips_of_events, "write", side_effect=common.Failure("the seek failed")):
            found = motion_report.report(args, self.folder / "out")
        self.assertEqual(found.incomplete, "not all events were cut out: the seek failed")
        self.assertIn("<strong>Incomplete:</strong> not all events were cut out: the seek failed", self.page())
        with unittest.mock.patch.object(clip_formats, "can_cut", return_value=False):
            self.assertIn("there is no video to cut", motion_report.report(args, self.folder / "out").incomplete)
        self.assertEqual(self.names(), FILES)

    def test_a_run_without_clips_removes_those_before(self):
        clip, folder = make(self.folder / "a.mp4", f"{H264} ! mp4mux", 50), self.folder / "out/clips"
        self.report(f"--clip={clip}", "--clips", "--set=preset=custom", "--set=min-area=1")
        self.assertTrue(list(folder.glob("*.mp4")))
        for name in "mine.txt", "00h00m01.0s_9999.mp4":
            (folder / name).write_text("precious")
        self.report(f"--clip={clip}")
        self.assertEqual(self.names("out/clips"), ["00h00m01.0s_9999.mp4", "mine.txt"])
        (folder / "clips.csv").write_text("mine")
        (folder / "clips.json").write_text('[{"file": "00h00m01.0s_9999.mp4"}, {"file": "../frames.csv"}]')
        clips_of_events.forget_listed(folder, None)
        self.assertEqual(len(self.names("out/clips")), 4)
        (folder / "clips.csv").write_bytes((",".join(clips_of_events.COLUMNS) + "\r\n").encode())
        clips_of_events.forget_listed(folder, str(folder / "00h00m01.0s_9999.mp4"))
        self.assertEqual(self.names("out/clips"), ["00h00m01.0s_9999.mp4", "mine.txt"])
        self.assertTrue((self.folder / "out/frames.csv").exists())


class Usage(Clips):
    """What users see after a mistake."""

    def failure(self, *arguments, status):
        done = self.run_report(*arguments)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
        return done.stderr.removeprefix("motion_report.py: ").removesuffix("; see --help\n").rstrip()

    def test_wrong_usage_is_a_sentence(self):
        for argument, text in (("--before=x", "argument --before: x is not a number of 0 to 3600"),
                               ("--after=nan", "argument --after: nan is not a number of 0 to 3600"),
                               ("--seconds=0", "argument --seconds: 0 is not a number above 0"),
                               ("--frames=2.5", "argument --frames: 2.5 is not a whole number of 1 or more"),
                               ("--embed=-1", "argument --embed: -1 is not a number of 0 or more"),
                               ("--clips=x", "argument --clips: invalid choice: 'x' "
                                "(choose from motions, visits, joined)"),
                               ("--set=x=1", "cudadiff has no such property or value: x=1")):
            said = self.failure(argument, status=2)
            self.assertEqual(re.sub(r"'(motions|visits|joined)'", r"\1", said), text)  # Python 3.13 omits these quotes
        self.assertEqual(self.failure("a.mp4", "--clip=rtsp://b", status=1),
                         "several inputs must be files or folders, and rtsp://b is neither")

    def test_what_is_no_clip_leaves_nothing(self):
        (self.folder / "a ü.mp4").write_bytes(bytes(range(1, 200)) * 40)
        (self.folder / "mine").mkdir()
        (self.folder / "empty").touch()
        self.assertEqual(self.failure("a ü.mp4", "--out=out", status=1),
                         f"{self.folder / 'a ü.mp4'}: it is not a video, or GStreamer does not know its format")
        self.assertEqual(self.failure("--clips", "gone.mp4", "--out=mine", status=1),
                         "cannot read gone.mp4: there is no such file")
        self.assertEqual(self.failure("empty", status=1), "cannot read empty: it is empty")
        self.assertEqual(self.names("."), ["a ü.mp4", "empty", "mine"])

    def test_a_clip_needs_no_option(self):
        clip = make(self.folder / "a ü.avi", "jpegenc ! avimux", 20)
        self.assertRegex(self.report("--clips", clip), r"frames +20\n")


@unittest.skipUnless(has("openh264enc", "h264timestamper"), "no openh264enc, or no h264timestamper")
class Incomplete(Clips):
    def half(self):
        clip = pathlib.Path(make(self.folder / "a.mp4", f"{H264} ! mp4mux faststart=true", 200, "pattern=snow"))
        clip.write_bytes(clip.read_bytes()[:clip.stat().st_size // 2])
        return clip

    def test_half_a_clip(self):
        said = self.report(f"--clip={self.half()}", status=motion_report.INCOMPLETE)
        self.assertRegex(said, r"incomplete +its pictures end at [34]\.\d s, but its container declares 8\.0 s")
        self.assertRegex(self.page(), r'id="incomplete" role="alert"><strong>Incomplete:</strong> its pictures end at')
        last = self.events()[-1]
        self.assertEqual((last["event"], last["complete"]), ("finished", False))
        self.assertRegex(last["incomplete"], r"^its pictures end at [34]\.\d s, but")
        rows = (self.folder / "out/objects.csv").read_text().splitlines()
        self.assertTrue(all("its pictures end at" in row for row in rows[1:]), rows)

    def test_a_part_that_was_asked_for_is_complete(self):
        said = self.report(f"--clip={self.half()}", "--seconds=1")
        self.assertNotIn("incomplete", said)
        self.assertNotIn('id="incomplete"', self.page())
        self.assertIn("the first 1 s", self.page())
        self.assertEqual(self.events()[-1], {"event": "finished", "time": 1.0, "frames": 25, "complete": True})

    def test_a_folder(self):
        self.half()
        make(self.folder / "b.mp4", f"{H264} ! mp4mux", 20)
        self.report(f"--clip={self.folder}", status=motion_report.INCOMPLETE)
        index = (self.folder / "out/index.html").read_text(encoding="utf-8")
        self.assertEqual((index.count("Incomplete: its pictures end"), index.count("<li class=")), (1, 2))

    def test_sound_may_be_a_little_longer(self):
        facts = clip_facts.Facts("video/quicktime,iso", "video/x-h264", None, 1, 1, 10.0, None, False)
        self.assertEqual((facts.missing(9.2), bool(facts.missing(8.9))), ("", True))
        facts.duration = None
        self.assertEqual(facts.missing(1), "")

    def test_an_error_in_the_middle(self):
        """The report and the video have all frames up to the error. An error of another element is a failure."""
        source = ("bin.( name=source videotestsrc ! video/x-raw,width=64,height=48,framerate=25/1 ! "
                  "identity error-after=31 )")
        with from_source(source):
            found = motion_report.report(args_of("clip"), self.folder / "out")
        self.assertEqual(found.count, 30)
        self.assertRegex(found.incomplete, "^it cannot be read to its end: .")
        self.assertEqual((self.events()[-1]["incomplete"], self.events()[-1]["frames"]), (found.incomplete, 30))
        self.assertIn("<strong>Incomplete:</strong> it cannot be read to its end: ", self.page())
        self.assertIn("encoded for this page", self.page())
        with from_source(source.replace("name=source", "name=other")), self.assertRaises(common.Failure):
            motion_report.report(args_of("clip"), self.folder / "out")
        self.assertEqual(self.names(), ["frames.csv", "motion.jsonl", "objects.csv", "report.html"])

    def test_an_error_at_the_beginning(self):
        """The source may finish before the first frame is analysed. If there is no frame, the message is the text of
        the error."""
        source, handled = ("bin.( name=source videotestsrc ! video/x-raw,width=64,height=48,framerate=25/1 ! "
                           "identity error-after=2 )", threading.Event())
        build, text_of = analysis.build, common.text_of

        def no_allocation(_, info):  # the query would wait for cudadiff
            return (Gst.PadProbeReturn.DROP if info.get_query().type == Gst.QueryType.ALLOCATION
                    else Gst.PadProbeReturn.OK)

        def slow(*arguments):
            pipeline = build(*arguments)
            begin, middle = (pipeline.get_by_name("decoded").get_static_pad("sink"),
                             pipeline.get_by_name("analysis").get_static_pad("src"))
            begin.add_probe(Gst.PadProbeType.QUERY_DOWNSTREAM, no_allocation)
            middle.add_probe(Gst.PadProbeType.DATA_DOWNSTREAM, lambda *_: handled.wait() and Gst.PadProbeReturn.OK)
            return pipeline

        with (from_source(source), unittest.mock.patch.object(analysis, "build", side_effect=slow),
              unittest.mock.patch.object(common, "text_of",
                                         side_effect=lambda message: handled.set() or text_of(message))):
            found = motion_report.report(args_of("clip"), self.folder / "out")
        self.assertEqual(found.count, 1)
        self.assertRegex(found.incomplete, "^it cannot be read to its end: .")
        with (from_source(source.replace("after=2", "after=1")),
              self.assertRaisesRegex(common.Failure, "^it cannot be read to its end: .")):
            motion_report.report(args_of("clip"), self.folder / "out")

    def test_ctrl_c(self):
        program = subprocess.Popen([REPORT, "--frames=100000", "--backend=cpu"], stdout=subprocess.PIPE, text=True,
                                   cwd=self.folder)
        self.addCleanup(program.kill)
        line = program.stdout.readline()  # a line of the progress
        self.assertIn("frames, motion in", line)
        program.send_signal(signal.SIGINT)
        said, _ = program.communicate()
        self.assertEqual(program.returncode, motion_report.INCOMPLETE)
        self.assertIn("stopped by Ctrl-C", said)
        self.assertIn("stopped by Ctrl-C", self.page())
        self.assertEqual(self.events()[-1]["incomplete"], "it was stopped by Ctrl-C")

    def test_a_camera_has_no_end(self):
        for declared, path, expected in ((0, "rtsp://camera", ""),
                                         (5, "http://server/x.mp4", "it was stopped by Ctrl-C")):
            judged = findings.Findings(stopped=True, declared=declared)
            motion_report.judge(args_of(path), judged, None)
            self.assertEqual(judged.incomplete, expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
