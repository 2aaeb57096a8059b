# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests which frames are analysed, and what a machine that is too slow skips: decoded frames, and encoded frames up to
a key frame. Also tests where this is reported."""

import threading
import unittest
from unittest import mock

from helpers import listener, start_camera, wait_for

import common
import metrics
import pace
from common import Gst
from sampling import Sampling

LIVE = "appsrc name=source is-live=true do-timestamp=true format=time caps=image/jpeg,width=64,height=48,framerate=25/1"


def jpeg():
    (sample,) = common.samples(
        common.parse("videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! jpegenc ! appsink name=sink"))
    return sample.get_buffer().extract_dup(0, sample.get_buffer().get_size())


class Fps(unittest.TestCase):
    def taken(self, times, fps=10):
        """The analysed ones of frames with these times in milliseconds. None: a frame without a time."""
        sampling = Sampling(fps)
        return [each for each in times
                if sampling.takes(Gst.CLOCK_TIME_NONE if each is None else each * Gst.MSECOND)]

    def test_rates(self):
        for rate, remain in (5, 5), (10, 10), (15, 15), (20, 10), (25, 13), (30, 10), (60, 10), (100, 10):
            with self.subTest(rate=rate):
                self.assertEqual(remain, len(self.taken(1000 * i // rate for i in range(rate))))

    def test_other_limits(self):
        for fps, remain in (1, 1), (4, 5), (5, 5), (12, 13), (20, 25), (240, 25):
            with self.subTest(fps=fps):
                self.assertEqual(remain, len(self.taken(range(0, 1000, 40), fps)))

    def test_times_that_are_not_exact(self):
        self.assertEqual([0, 84, 160, 246, 325], self.taken([0, 43, 84, 118, 160, 203, 246, 280, 325, 362]))

    def test_after_a_pause(self):
        self.assertEqual([0, 80, 5000, 5080], self.taken([0, 40, 80, 5000, 5040, 5080, 5120]))

    def test_times_that_go_back_or_are_unknown(self):
        self.assertEqual([1000, 0, 80], self.taken([1000, 1040, 0, 40, 80]))
        self.assertEqual([0, None, 40, 120], self.taken([0, None, 40, 80, 120]))

    def test_a_live_camera(self):
        door, _ = start_camera(self, "videotestsrc name=source is-live=true num-buffers=40 ! "
                               "video/x-raw,width=64,height=48,framerate=50/1", listener(), fps=10)
        wait_for("its end", lambda: door.reconnects)
        self.assertEqual(8, door.frames + door.pace.dropped["decoded"])  # a busy machine may skip some


class Pace(unittest.TestCase):
    def test_decoded_frames_that_come_too_fast(self):
        """While cudadiff is blocked, the queue keeps the two newest frames."""
        door, pushed = start_camera(self, f"{LIVE} ! jpegdec", listener())
        go_on, held, picture = threading.Event(), threading.Event(), jpeg()

        def hold(*_):
            held.set()
            go_on.wait()
            return Gst.PadProbeReturn.REMOVE

        decoded = []
        queue = door.sink.get_parent().get_by_name("queue")
        queue.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER,
                                               lambda *_: decoded.append(1) or Gst.PadProbeReturn.OK)
        door.diff.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, hold)
        self.addCleanup(go_on.set)
        pushed.emit("push-buffer", Gst.Buffer.new_wrapped(picture))
        wait_for("the first frame", held.is_set)
        for _ in range(9):
            pushed.emit("push-buffer", Gst.Buffer.new_wrapped(picture))
        wait_for("all are decoded", lambda: len(decoded) == 10)
        wait_for("what was left out", lambda: door.pace.dropped["decoded"] == 7)
        go_on.set()
        wait_for("the others", lambda: door.frames == 3)
        self.assertEqual(0, door.pace.dropped["encoded"])
        said = {(sample.name, *sample.labels.values()): sample.value
                for family in metrics.Collector([door], None, None).collect() for sample in family.samples}
        self.assertEqual(7, said["cudavision_camera_dropped_total", "door", "decoded"])
        self.assertEqual(0, said["cudavision_camera_dropped_total", "door", "encoded"])

    def test_a_decoder_that_is_too_slow(self):
        """The decoder takes 0.3 s per frame, and many frames arrive at once. Late frames are not decoded. Then it
        continues with new frames."""
        door, pushed = start_camera(self, f"{LIVE} ! jpegdec ! identity sleep-time=300000", listener())
        picture, count = jpeg(), 100
        for _ in range(count):
            pushed.emit("push-buffer", Gst.Buffer.new_wrapped(picture))
        wait_for("frames are left out", lambda: door.pace.dropped["encoded"] > 20)
        wait_for("all frames are gone", lambda: not pushed.get_property("current-level-bytes"))

        def goes_on():
            nonlocal count
            count += 1
            pushed.emit("push-buffer", Gst.Buffer.new_wrapped(picture))
            return not door.pace.dropping

        wait_for("it goes on", goes_on)
        wait_for("every frame is analysed or left out", lambda: count == door.frames + sum(door.pace.dropped.values()))

    def test_what_is_late(self):
        """The delay of a camera and a slightly slow clock do not count as lateness. Dropping ends with a key frame that
        is on time."""
        now, behind = [0.0], [0.0]
        each = pace.Pace("door", clock=lambda: now[0])
        pipeline = common.parse("fakesrc ! queue name=queue ! fakesink")
        each.attach(pipeline, pipeline.get_by_name("queue"), None)
        each.live, each.pad = True, mock.Mock()
        each.behind = lambda pad, pts: behind[0]

        def look(late, seconds=1.0):
            now[0], behind[0] = now[0] + seconds, late
            each.look(round(now[0] * Gst.SECOND))
            return each.dropping

        self.assertFalse(look(5.0))  # while a camera starts
        self.assertFalse(look(2.0))
        self.assertFalse(look(2.9))
        for minute in range(600):
            self.assertFalse(look(2.0 + 0.01 * minute, 60))  # 170 millionths
        usual = 2.0 + 0.01 * 599
        self.assertTrue(look(usual + 1.1))
        each.pad.add_probe.assert_called_once()

        def encoded(late, *flags):
            behind[0], buffer = late, Gst.Buffer.new_allocate(None, 1, None)
            buffer.pts = round(now[0] * Gst.SECOND)
            for flag in flags:
                buffer.set_flags(flag)
            return each.on_encoded(None, mock.Mock(get_buffer=lambda: buffer))

        self.assertEqual(Gst.PadProbeReturn.DROP, encoded(usual + 0.9))  # a key frame, but late
        self.assertEqual(Gst.PadProbeReturn.DROP, encoded(usual, Gst.BufferFlags.DELTA_UNIT))
        self.assertEqual(Gst.PadProbeReturn.REMOVE, encoded(usual + 0.2))
        self.assertEqual((2, False), (each.dropped["encoded"], each.dropping))
        now[0], behind[0], earlier = now[0] + 1, usual + 2, round((now[0] - 1) * Gst.SECOND)
        each.look(earlier)  # an earlier frame that is late changes nothing
        self.assertFalse(each.dropping)
        now[0] += 3
        each.look(earlier)  # but no frame takes so long: the timestamps went back
        self.assertTrue(each.dropping)

    def test_a_machine_that_is_too_slow_for_dropping(self):
        """The jitter buffers drop packets until a key frame is on time. The missing frames are counted."""
        jitter, decoder = Gst.ElementFactory.make("rtpjitterbuffer"), Gst.ElementFactory.make("jpegdec")
        pipeline, each, behind = common.parse("fakesrc ! queue name=queue ! fakesink"), pace.Pace("door"), [0.0]
        each.attach(pipeline, pipeline.get_by_name("queue"), None)
        pipeline.add(jitter)
        pipeline.add(decoder)
        self.assertEqual(([jitter], decoder.get_static_pad("sink")), (each.jitter_buffers, each.pad))
        each.usual, each.dropping, each.behind = 1.0, True, lambda pad, pts: behind[0]

        def encoded(number, late, key=False):
            behind[0], buffer = late, Gst.Buffer.new_allocate(None, 1, None)
            buffer.pts = number * Gst.SECOND // 25
            if not key:
                buffer.set_flags(Gst.BufferFlags.DELTA_UNIT)
            each.on_encoded(None, mock.Mock(get_buffer=lambda: buffer))
            return each.dropped["encoded"], jitter.get_property("drop-on-latency")

        self.assertEqual((1, False), encoded(1, 3.0))
        self.assertEqual((2, False), encoded(2, 5.9))
        self.assertEqual((3, True), encoded(3, 6.1))
        self.assertEqual((4, True), encoded(4, 6.0))
        self.assertEqual((14, True), encoded(14, 2.0))  # nine frames did not arrive
        self.assertEqual((14, False), encoded(15, 1.2, key=True))
        self.assertFalse(each.dropping)

    def test_it_is_said_once_a_minute(self):
        now, told = [0.0], []
        each = pace.Pace("door", lambda: told.append(each.problem), clock=lambda: now[0])
        with self.assertNoLogs("motion-alarm"):
            each.report(1000)
            each.dropped["decoded"] = 500
            now[0] = 59
            each.report(1500)
        now[0] = 61
        with self.assertLogs("motion-alarm") as logged:
            each.report(1500)
        self.assertEqual(["door: 500 of 2000 frames were skipped in 61 s: this machine is too slow for all of them"],
                         [record.getMessage() for record in logged.records])
        self.assertRegex(each.problem, "^too slow: 25 % of the frames are skipped: ")
        now[0] = 122
        with self.assertNoLogs("motion-alarm"):
            each.report(3000)
        self.assertEqual(("", 2), (each.problem, len(told)))


if __name__ == "__main__":
    unittest.main()
