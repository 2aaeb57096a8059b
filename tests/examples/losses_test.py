#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that unreadable parts of a damaged clip are counted and reported and give no motion, and that whole clips of
all kinds are complete. Exit status 77 without the bindings of GStreamer, NumPy or the encoders."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import unittest

import programs
from programs import ALARM, ALARM_PY, scan
import common
import containers
import damage
import losses
from common import Gst

programs.use("motion-scan")
FRAMES = damage.FRAMES
STEP = Gst.SECOND // damage.RATE
# Decoders do not notice damage in these, because the data has no checksum.
UNCHECKED = "h265", "jpeg", "vp8"


class Clips(programs.InFolder):
    def write(self, name, data):
        return damage.write(self.folder / name, data)

    def make(self, kind, source=damage.STILL):
        data = damage.encoded(kind, source)
        if data is None:
            self.skipTest(f"no encoder for {kind}")
        return data

    def check(self, kind, source, how, where, may_fail=False):
        """Damages a clip. Returns the result of motion-scan. `may_fail`: the demuxer may stop at the damage."""
        data = damage.damaged(self.make(kind, source), kind, how, where)
        result = scan(self.write(f"{how}-{where}-{kind}", data))
        if may_fail and result["error"] == "Could not demultiplex stream.":
            self.assertFalse(result["complete"])
            return result
        self.assertEqual(result["status"], "ok", result["error"])
        self.assertFalse(result["complete"])
        self.assertRegex(result["incomplete"],
                         r"^(about )?\d+ of \d+ frames could not be read, \d|its pictures end at|it is cut off")
        spans = [event for event in result["events"] if event["event"] == "lost"]
        self.assertEqual(sum(span["frames"] for span in spans), result["lost"])
        if kind in damage.INDEXED and how != "cut":
            self.assertEqual(result["frames"] + result["lost"], FRAMES, result["incomplete"])
            self.assertTrue(spans)
            # The span extends from a place in the damage to the next key frame.
            begin, end = where * FRAMES / damage.RATE, (where + 0.1) * FRAMES / damage.RATE
            if source == damage.MOVING:
                self.assertLess(abs(spans[0]["begin"] - begin), 1.5, spans)
                self.assertLess(spans[-1]["end"], end + 3.5, spans)
        return result


class Whole(Clips):
    def test_each_kind_is_complete(self):
        for kind in damage.KINDS:
            for source in damage.STILL, damage.MOVING:
                with self.subTest(kind, source=source):
                    result = scan(self.write(kind, self.make(kind, source)))
                    self.assertEqual((result["frames"], result["lost"], result["incomplete"], result["complete"]),
                                     (FRAMES, 0, "", True))

    def test_frames_of_another_order_and_many_threads(self):
        for kind in "h265.mp4", "h265.mkv", "mpeg4b.avi":
            with self.subTest(kind):
                result = scan(self.write(kind, self.make(kind, damage.MOVING)), threads=0)
                self.assertEqual((result["frames"], result["incomplete"]), (FRAMES, ""))

    def test_a_stream_that_begins_and_ends_anywhere(self):
        """A recording of a broadcast begins between key frames, and ends inside a frame."""
        data = self.make("h264.ts", damage.MOVING)
        packets = len(data) // 188
        for begin, end in (packets // 8, packets), (0, packets * 2 // 3), (packets // 8, packets * 2 // 3 + 1):
            result = scan(self.write("part.ts", data[:188 * 8] + data[188 * max(8, begin):188 * end]))
            self.assertGreater(result["frames"], 30)
            self.assertLessEqual(result["lost"], FRAMES / 8 + 1 if begin else 0, result["incomplete"])

    def test_a_pause_is_no_loss(self):
        """Frames may have any times, as from a phone or a recorder that waits for motion."""
        times = [*range(0, 30), *range(90, 120), 121, 125, 126, 140, *range(200, 230)]
        for muxer, suffix in (("matroskamux", "mkv"), ("mp4mux", "mp4"), ("mpegtsmux", "ts")):
            path = self.folder / f"pause.{suffix}"
            encoder = damage.H264 if programs.has("openh264enc") else "jpegenc"
            pipeline = common.parse(
                "appsrc name=source format=time caps=video/x-raw,format=I420,width=160,height=120,framerate=10/1 ! "
                f"videoconvert ! {encoder} ! {muxer} ! filesink location={path}")
            source = pipeline.get_by_name("source")
            pipeline.set_state(Gst.State.PLAYING)
            for time in times:
                buffer = Gst.Buffer.new_wrapped(bytes([time % 200]) * (160 * 120 * 3 // 2))
                buffer.pts, buffer.duration = time * STEP, STEP
                source.emit("push-buffer", buffer)
            source.emit("end-of-stream")
            common.check(pipeline.get_bus().timed_pop_filtered(
                600 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR))
            pipeline.set_state(Gst.State.NULL)
            result = scan(path)
            self.assertEqual((result["frames"], result["lost"]), (len(times), 0), result["incomplete"])


class Damaged(Clips):
    def test_each_kind(self):
        """Tests holes at the beginning, in the middle and at the end."""
        for kind in damage.KINDS:
            for how in "zeros", "flips", "cut":
                for where in 0, 0.4, 0.85:
                    unseen = ((how == "flips" and kind.startswith(UNCHECKED))
                              or (how == "cut" and (kind.endswith((".mp4", ".mov")) or where in (0, 0.85)))
                              or (where == 0 and kind.endswith((".ts", ".mkv"))))  # the first key frame is gone
                    if unseen or kind in ("vp8.mkv",):
                        continue
                    with self.subTest(kind, how=how, where=where):
                        self.check(kind, damage.MOVING, how, where)

    def test_a_still_scene_has_no_motion(self):
        for kind in "h264.mp4", "h264.mkv", "h264.ts", "h264.avi", "mpeg4.avi", "mpeg4b.avi":
            for how in "zeros", "flips":
                with self.subTest(kind, how=how):
                    result = self.check(kind, damage.STILL, how, 0.4, may_fail=kind.endswith(".mkv"))
                    self.assertEqual((result["motion_frames"], len(result["objects"])), (0, 0))

    def test_many_threads(self):
        """With more threads the decoder is ahead, so a few more frames may be lost."""
        data = damage.damaged(self.make("h264.mp4", damage.STILL), "h264.mp4", "flips", 0.4)
        result = scan(self.write("a.mp4", data), threads=0)
        self.assertEqual(result["frames"] + result["lost"], FRAMES)
        self.assertEqual(result["motion_frames"], 0)
        self.assertGreater(result["lost"], 5)

    def test_damage_of_one_clip_is_not_of_its_neighbours(self):
        good = self.make("h264.mp4", damage.MOVING)
        bad = self.write("bad.mp4", damage.damaged(good, "h264.mp4", "flips", 0.4))
        names = [bad, *(self.write(f"{number}.mp4", good) for number in range(3))]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for threads in 1, 0:
                for _ in range(3):
                    broken, *others = pool.map(lambda name: scan(name, threads=threads), names)
                    self.assertGreater(broken["lost"], 0)
                    if threads == 1:
                        self.assertEqual([other["lost"] for other in others], [0] * 3)


class Broken(Clips):
    """Incomplete files."""

    def test_an_mp4_without_its_index(self):
        """Both programs print the same message, and neither hangs: GStreamer sometimes swallows the error."""
        data = self.make("h264.mp4", damage.MOVING)
        sentence = "its index (moov) is missing: the file was cut off, is damaged, or is still being recorded"
        for name, part in (("half.mp4", data[:len(data) // 2]), ("index.mp4", data[:-20]),
                           ("hole.mp4", damage.damaged(data, "h264.mp4", "cut", 0.4))):
            path = self.write(name, part)
            for _ in range(10):
                self.assertEqual(scan(path)["error"], sentence)
            self.assertEqual(self.report(path, status=1), f"motion_report.py: cannot read {path}: {sentence}\n")
        for name in "h264.mp4", "jpeg.mov", "h264.avi", "h264.mkv":
            self.assertEqual(containers.fault_of(self.write(name, self.make(name, damage.MOVING))), "")

    def test_other_boxes(self):
        for data, fault in ((b"\0\0\0\x08ftyp\0\0\0\x08moov", ""), (b"\0\0\0\x08ftyp\0\0\0\0mdat", containers.NO_INDEX),
                            (b"\0\0\0\x08styp\0\0\0\x08moof\0\0\1\0mdat", ""),
                            (b"\0\0\0\x09wideX", containers.NO_INDEX),
                            (b"\0\0\0\1mdat" + (24).to_bytes(8, "big") + bytes(8) + b"\0\0\0\x08moov", ""),
                            (b"\0\0\0\1mdat" + bytes(3), containers.NO_INDEX), (b"\0\0\0\x08ftyp\0\0\0\0moov", ""),
                            (b"RIFF", ""), (b"", ""), (b"text about ftyp", "")):
            self.assertEqual(containers.fault_of(self.write("x", data)), fault, data)

    def test_a_cut_avi(self):
        """The report and the scan show the same loss."""
        for kind in "jpeg.avi", "mpeg4.avi":
            data = self.make(kind, damage.MOVING)
            part = data[:len(data) * 2 // 3]
            path = self.write(kind, part)
            result = scan(path)
            out = self.report(path, status=3)
            sentence = f"it is cut off: {len(part)} of {len(data)} bytes are there"
            for said in result["incomplete"], out:
                self.assertIn(sentence, said)
            self.assertEqual((result["status"], result["complete"]), ("ok", False))

    def test_the_report_of_a_hole(self):
        data = self.make("h264.mp4", damage.MOVING)
        path = self.write("a.mp4", damage.damaged(data, "h264.mp4", "zeros", 0.4))
        sentence = re.search(r"incomplete +(.*)", self.report(path, status=3))[1]
        lost, begin, end = re.fullmatch(r"(\d+) of 100 frames could not be read, (\d\.\d) to (\d\.\d) s",
                                        sentence).groups()
        last, found, drawn = self.events()[-1], self.events("lost"), self.data()
        self.assertEqual((last["event"], last["complete"], last["incomplete"], last["frames"]),
                         ("finished", False, sentence, FRAMES - int(lost)))
        self.assertEqual([(round(event["time"], 1), round(event["until"], 1), event["frames"]) for event in found],
                         [(float(begin), float(end), int(lost))])
        self.assertIn(f"<strong>Incomplete:</strong> {sentence}", self.page())
        self.assertEqual([span[2] for span in drawn["lost"]], [int(lost)])
        for run in drawn["runs"]:  # no motion spans the hole
            self.assertFalse(run[0] < float(begin) - 0.1 and run[1] > float(end) + 0.1, run)
        self.assertNotIn("incomplete", self.report(self.write("b.mp4", data)))


class Alarms(Clips):
    """The motion alarms report losses on stderr with the name of the input, and fail."""

    def watch(self, *program):
        good = self.make("h264.mp4", damage.STILL)
        bad = self.write("bad.mp4", damage.damaged(good, "h264.mp4", "flips", 0.4))
        inputs = [bad, self.write("good.mp4", good), self.write("good.avi", self.make("jpeg.avi", damage.STILL))]
        done = subprocess.run([*program, *inputs], capture_output=True, text=True, cwd=self.folder)
        self.assertRegex(done.stderr, rf"^{bad}: \d+ of 100 frames could not be read, \d\.\d to .* s\n$")
        self.assertEqual((done.returncode, done.stdout), (1, ""))  # no motion
        cut, index = self.write("cut.avi", pathlib.Path(inputs[2]).read_bytes()[:-5000]), self.write("i.mp4", good[:-9])
        for path, sentence in ((cut, containers.cut_of(cut)), (index, containers.NO_INDEX)):
            done = subprocess.run([*program, path], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.endswith(f"{path}: {sentence}\n"), done.stderr)
        done = subprocess.run([*program, *inputs[1:]], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_in_python(self):
        self.watch(*ALARM_PY, "threshold=15")

    @unittest.skipUnless(ALARM, "MOTION_ALARM names no motion-alarm")
    def test_in_cpp(self):
        self.watch(ALARM, "--backend=cpu")


def sample(time, key=False, size=100, dts=None, data=None):
    buffer = Gst.Buffer.new_wrapped(data or bytes(size)) if data or size else Gst.Buffer.new()
    buffer.pts = Gst.CLOCK_TIME_NONE if time is None else int(time * STEP)
    buffer.dts = Gst.CLOCK_TIME_NONE if dts is None else int(dts * STEP)
    if not key:
        buffer.set_flags(Gst.BufferFlags.DELTA_UNIT)
    return buffer


class Counting(unittest.TestCase):
    """Compares the frames that enter and leave a decoder."""

    def stream(self, ordered=True, skips=False, caps="video/x-h264"):
        pad = Gst.Pad.new("sink", Gst.PadDirection.SINK)
        pad.set_active(True)
        pad.send_event(Gst.Event.new_stream_start("x"))
        pad.send_event(Gst.Event.new_caps(Gst.Caps.from_string(caps)))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        made = losses.Stream(ordered, skips)
        made.on_segment(segment)
        return made, lambda *args, **more: made.on_sample(pad, sample(*args, **more)), segment

    def spans(self, stream, indexed=True):
        stream.ended = True
        return [(round(span.begin, 3), round(span.end, 3), span.frames, span.about) for span in stream.finish(indexed)]

    def counted(self, times, keys=(0,), lost=(), indexed=True, size=100, data=None, damage=None, good=None, **options):
        """The spans of a stream whose decoder outputs these frames, except the lost ones, and notices damage at one of
        them. `good` gets whether each output frame is good."""
        stream, give, _ = self.stream(**options)
        for time in times:
            give(time, time in keys, size=size, data=data)
            if time == damage:
                stream.damage()
            if time not in lost:
                is_good = stream.on_frame(time * STEP)
                if good is not None:
                    good.append(is_good)
        return self.spans(stream, indexed)

    def test_what_does_not_come(self):
        self.assertEqual(self.counted(range(20), lost=(5, 6, 7, 19)), [(0.5, 0.8, 3, False), (1.9, 2.0, 1, False)])
        self.assertEqual(self.counted(range(20), lost=(19,), indexed=False), [])  # the last frame of a stream

    def test_damage_lasts_until_a_key_frame(self):
        good = []
        self.assertEqual(self.counted(range(20), keys=(0, 10), damage=4, good=good), [(0.4, 1.0, 6, False)])
        self.assertEqual(good, [True] * 4 + [False] * 6 + [True] * 10)

    def test_frames_before_the_first_key_frame(self):
        """Neither these frames nor frames of an open group count as a loss, even if they are damaged."""
        stream, give, _ = self.stream()
        give(0)
        stream.damage()
        for time in 1, 4, 2, 3, *range(5, 10):  # 2 and 3 are frames of an open group
            give(time, time == 4)
        for time in range(4, 10):
            self.assertTrue(stream.on_frame(time * STEP))
        self.assertEqual(self.spans(stream), [])

    def test_what_an_edit_list_hides(self):
        stream, give, segment = self.stream()
        segment.start, segment.stop = 5 * STEP, 15 * STEP
        stream.on_segment(segment)
        for time in range(20):
            give(time, time == 0)
        for time in range(5, 15):
            stream.on_frame(time * STEP)
        self.assertEqual(self.spans(stream), [])

    def test_samples_that_are_no_frames(self):
        for caps, size in (("video/mpeg,mpegversion=4", 1), ("video/x-h264", 0),
                           ("video/x-h264,interlace-mode=mixed", 9)):
            stream, give, _ = self.stream(caps=caps)
            for time in range(20):
                give(time, time == 0, size=size if time % 2 else 1000)
                if not time % 2:
                    stream.on_frame(time * STEP)
            self.assertEqual(self.spans(stream), [], caps)
        # A frame of H.264 may be small, as may a B-frame of MPEG-4 that repeats its neighbours. Other frames of MPEG-4
        # are not small. Damage counts.
        lost = [(0.5, 0.6, 1, False)]
        for data, expected in ((b"\0\0\1\xb6\x90\1\2\3", lost), (b"\0\0\1\xb6\x50\1\2\3", []), (bytes(8), lost)):
            self.assertEqual(self.counted(range(20), lost=(5,), caps="video/mpeg,mpegversion=4", data=data), expected)
        self.assertEqual(self.counted(range(20), lost=(5,), size=12), [(0.5, 0.6, 1, False)])

    def test_holes_in_time(self):
        """They count as a loss only if the demuxer skipped something."""
        for skips, expected in ((False, []), (True, [(1.0, 3.0, 20, True)])):
            self.assertEqual(self.counted([*range(10), *range(30, 40)], keys=(0, 30), skips=skips), expected)
        good = []  # later frames depend on the missing ones, up to a key frame
        self.assertEqual(self.counted([*range(20), *range(30, 45)], keys=(0, 40), skips=True, good=good),
                         [(2.0, 4.0, 20, True)])
        self.assertEqual(good, [True] * 20 + [False] * 10 + [True] * 5)

    def test_a_damaged_time(self):
        spans = self.counted([0, 1, 2, 3, 4, 5, 10**6, *range(7, 20)], keys=(0, 10**6), skips=True)
        self.assertLess(sum(span[2] for span in spans), 20)

    def test_streams_without_times(self):
        """In streams without a container, only the number is known. A stream in pieces has no number either."""
        for caps, expected in (("video/x-h264,parsed=true", [(0, 0, 6, False)]), ("image/jpeg", [])):
            stream, give, _ = self.stream(caps=caps)
            for time in range(20):
                give(None, time in (0, 10))
                if time == 4:
                    stream.damage()
                stream.on_frame(Gst.CLOCK_TIME_NONE)
            self.assertEqual(self.spans(stream), expected)
        self.assertEqual(losses.sentence([losses.Span(0, 0, 6)], 14), "6 of 20 frames could not be read")

    def test_clips_whose_samples_have_no_times(self):
        # Frames that were skipped on purpose are no samples.
        for skipped, lost, expected in (((), (5, 6, 16, 17, 18, 19), [(0.5, 0.7, 2, False), (1.6, 2.0, 4, False)]),
                                        ((5, 6, 19), (), [])):
            stream, give, _ = self.stream(ordered=False)
            for time in sorted({*range(20)} - {*skipped}):
                give(None, time == 0, dts=time)
                if time not in lost:
                    stream.on_frame(time * STEP)
            self.assertEqual(self.spans(stream), expected)

    def test_the_sentence(self):
        spans = [losses.Span(1, 2.04, 10), losses.Span(3, 4, 5), losses.Span(5, 6, 1, True), losses.Span(7, 8, 1),
                 losses.Span(8, 9, 1)]
        self.assertEqual(losses.sentence(spans[:1], 90), "10 of 100 frames could not be read, 1.0 to 2.0 s")
        self.assertEqual(losses.sentence(spans[:2], 85), "15 of 100 frames could not be read, 1.0 to 2.0 s and "
                         "3.0 to 4.0 s")
        self.assertEqual(losses.sentence(losses.joined(spans), 82), "about 18 of 100 frames could not be read, "
                         "1.0 to 2.0 s, 3.0 to 4.0 s, 5.0 to 6.0 s and 1 more place")
        self.assertEqual(losses.sentence([], 100), "")
        self.assertEqual(losses.joined(spans)[-1], losses.Span(7, 9, 2))


if __name__ == "__main__":
    os.environ.pop("GST_DEBUG", None)
    unittest.main()
