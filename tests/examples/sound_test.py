#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the sound of cut clips: which streams are kept, and that they are in step with the pictures. Makes small clips
with the installed encoders, and skips tests that need others. Exit status 77 without the bindings or NumPy."""
import dataclasses
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import clips_test  # noqa: E402: first, because it finds the examples, and ends with 77 if something is missing
import clip_facts  # noqa: E402
import clip_formats  # noqa: E402
import clip_streams  # noqa: E402
import clips_of_events  # noqa: E402
import common  # noqa: E402
import joined_clips  # noqa: E402
import numpy  # noqa: E402
import stamp  # noqa: E402
from clips_test import H264  # noqa: E402
from common import Gst  # noqa: E402

BYTES = H264 + " ! video/x-h264,stream-format=byte-stream"
VP8, VP9 = (f"{encoder} deadline=1 keyframe-max-dist=25" for encoder in ("vp8enc", "vp9enc"))
# The encoders of sound, and their caps.
MP3, OPUS = ("lamemp3enc ! mpegaudioparse", "audio/mpeg,mpegversion=1"), ("opusenc", "audio/x-opus")
VORBIS, MULAW, ALAW = (("vorbisenc", "audio/x-vorbis"), ("mulawenc", "audio/x-mulaw"), ("alawenc", "audio/x-alaw"))
# AAC comes from voaacenc: two avenc_aac that start at the same time can loop forever (seen with libavcodec 59).
AAC = "voaacenc ! aacparse", "audio/mpeg,mpegversion=4"
# No stream can fill it while the muxer waits for another one.
QUEUE = "queue max-size-buffers=0 max-size-bytes=0 max-size-time=0"


def make_with_sound(path, video, muxer, *sounds, seconds=8, begin=0, end=8):
    """Writes a clip of 25 frames per second with a tick at each second from `begin` to `end`."""
    ticks = (
        f"audiotestsrc wave=ticks tick-interval=1000000000 sine-periods-per-tick=20 freq=1000 samplesperbuffer=480 "
        f"num-buffers={100 * (end - begin)} timestamp-offset={begin * Gst.SECOND} ! audio/x-raw,rate=48000,channels=1")
    chains = [f"{ticks} ! audioconvert ! {sound} ! {QUEUE} ! file.audio_{number}"
              for number, sound in enumerate(sounds)]
    clips_test.launch(f"videotestsrc pattern=ball num-buffers={25 * seconds} ! "
                      f"video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! {video} ! {QUEUE} ! file.video_0 "
                      f"{' '.join(chains)} {muxer} name=file ! filesink location={path}")
    return str(path)


def one_thread(_, __, element):
    """Limits avdec_h265 to one thread. In GStreamer 1.26 it otherwise loses frames of a file whose first picture is a
    CRA ("Couldn't get codec frame"). The same file gives all frames with one thread, and with libde265dec."""
    if element.find_property("max-threads") and element.get_factory().get_name().startswith("avdec"):
        element.set_property("max-threads", 1)


def decoded(path, kind):
    """Pairs of the stream time in seconds and the data of each sample of the first stream of a kind, `audio` or
    `video`."""
    convert = {"audio": "audioconvert ! audio/x-raw,format=F32LE,channels=1",
               "video": "videoconvert ! video/x-raw,format=I420"}[kind]
    pipeline = common.parse(f"uridecodebin name=clip caps={kind}/x-raw(ANY) expose-all-streams=false ! {convert} ! "
                            "appsink name=sink sync=false",
                            clip={"uri": common.uri_of(path)})
    pipeline.connect("deep-element-added", one_thread)
    return [(clip_streams.stream_time(sample, sample.get_buffer().pts) / Gst.SECOND, numpy.frombuffer(
        sample.get_buffer().extract_dup(0, sample.get_buffer().get_size()),
        numpy.float32 if kind == "audio" else numpy.uint8))
        for sample in common.samples(pipeline)]


def ticks_of(path):
    """The times when the first sound of a file ticks, begins and ends, in seconds of its stream time."""
    found, quiet = [], -1
    parts = decoded(path, "audio")
    for begin, data in parts:
        for i, value in enumerate(abs(data)):
            when = begin + i / 48000
            if value > 0.2 and when - quiet > 0.3:
                found.append(when)
            quiet = when if value > 0.2 else quiet
    return found, parts[0][0], parts[-1][0] + len(parts[-1][1]) / 48000


@unittest.skipUnless(clips_test.has("openh264enc", "h264timestamper"), "no openh264enc, or no h264timestamper")
class Sound(clips_test.Clips):
    def sounds(self, path):
        return [clip_formats.plain(caps) for caps in clip_facts.facts_of(str(path)).sounds]

    def check_in_step(self, clip, originals, original_ticks, row):
        """Each picture and each tick of a cut clip must equal the original at this time. AVI has no times for H.264
        pictures, so there they may differ by two frames. Decoders need a packet or two before they output everything.
        """
        ahead, late = 0.05, 0.081 if clip.endswith("h.avi") else 0.002
        cut = str(self.folder / "clips" / row["file"])
        pictures = decoded(cut, "video")
        shift = row["begin_s"] - pictures[0][0]
        for when, data in pictures[::7]:
            same, _ = min(originals, key=lambda other: abs(other[1].astype(int) - data).sum())
            self.assertAlmostEqual(same, when + shift, delta=late)
        ticks, begin, end = ticks_of(cut)
        expected = [tick for tick in original_ticks if row["begin_s"] + ahead < tick < row["end_s"] - ahead]
        inside = [tick + shift for tick in ticks if row["begin_s"] + ahead < tick + shift < row["end_s"] - ahead]
        self.assertEqual(len(inside), len(expected), (expected, inside))
        self.assertTrue(expected)
        for tick, other in zip(expected, inside):
            self.assertAlmostEqual(tick, other, delta=0.015)
        # The sound is as long as the pictures, except for a packet at each end.
        self.assertTrue(-0.001 <= begin - pictures[0][0] < 0.07 and abs(end + shift - row["end_s"]) < 0.15,
                        (begin, end + shift, row))

    def test_sound_is_kept_in_step(self):
        for name, video, muxer, encoder, expected in (
                ("a.mp4", H264, "mp4mux", *AAC), ("b.mp4", H264, "mp4mux", *MP3), ("c.mp4", H264, "mp4mux", *OPUS),
                ("d.mkv", H264, "matroskamux", *AAC), ("e.mkv", H264, "matroskamux", *OPUS),
                ("f.mkv", H264, "matroskamux", "avenc_ac3", "audio/x-ac3"), ("g.mov", H264, "qtmux", *AAC),
                ("h.avi", BYTES, "avimux", *MP3), ("i.webm", VP8, "webmmux", *VORBIS),
                ("j.webm", VP8, "webmmux", *OPUS), ("k.mkv", VP9, "matroskamux", *VORBIS),
                ("l.mkv", "jpegenc", "matroskamux", "flacenc", "audio/x-flac"),
                ("m.avi", "jpegenc", "avimux", "identity", "audio/x-raw"),
                ("o.mov", H264, "qtmux", "identity", "audio/x-raw"), ("p.mkv", H264, "matroskamux", *MULAW),
                ("q.mov", H264, "qtmux", *ALAW), ("r.avi", BYTES, "avimux", *ALAW),
                ("s.mkv", VP8, "matroskamux", *MULAW),
                ("t.mkv", H264, "matroskamux", "audioconvert ! audio/x-raw,format=S24LE", "audio/x-raw"),
                ("n.mkv", "x265enc key-int-max=25 option-string=log-level=none ! h265parse", "matroskamux", *AAC)):
            with self.subTest(name):
                if not clips_test.has(encoder.split()[0], video.split()[0]):
                    self.skipTest(f"no {encoder.split()[0]}, or no {video.split()[0]}")
                clip = make_with_sound(self.folder / name, video, muxer, encoder)
                facts = clip_facts.facts_of(clip)
                self.assertEqual((self.sounds(clip), clip_formats.left_out(facts)), ([expected], ""))
                rows = self.cut(clip, (4.5, 5.0), (0.2, 1.5), (7.0, 7.9))
                self.assertEqual(len(rows), 3)
                original = decoded(clip, "video"), ticks_of(clip)[0]
                for row in rows:
                    self.assertEqual(self.sounds(self.folder / "clips" / row["file"]), [expected])
                    self.check_in_step(clip, *original, row)

    def files(self, clip, *events):
        """The paths and the rows of the clips of events."""
        return [(str(self.folder / "clips" / row["file"]), row) for row in self.cut(clip, *events)]

    @unittest.skipUnless(clips_test.has("opusenc", "voaacenc"), "no opusenc, or no voaacenc")
    def test_all_streams_of_sound_are_kept(self):
        clip = make_with_sound(self.folder / "a.mp4", H264, "mp4mux", "voaacenc ! aacparse", "opusenc",
                               "voaacenc ! aacparse")
        ((cut, _),) = self.files(clip, (4.5, 5))
        self.assertEqual(sorted(self.sounds(cut)), ["audio/mpeg,mpegversion=4"] * 2 + ["audio/x-opus"])

    @unittest.skipUnless(clips_test.has("vorbisenc", "voaacenc"), "no vorbisenc, or no voaacenc")
    def test_sound_that_mp4_cannot_hold_makes_matroska(self):
        clip = make_with_sound(self.folder / "a.mkv", H264, "matroskamux", "vorbisenc",
                               "voaacenc ! aacparse", "alawenc")
        ((cut, _),) = self.files(clip, (4.5, 5))
        self.assertEqual(sorted(self.sounds(cut)), ["audio/mpeg,mpegversion=4", "audio/x-alaw", "audio/x-vorbis"])
        self.assertTrue(cut.endswith(".mkv"), cut)
        out = self.report(f"--clip={clip}", "--clips", "--set=preset=custom", "--set=min-area=1")
        self.assertRegex(out, r"clips of events +\d, in [^:]*\n")

    @unittest.skipUnless(clips_test.has("timeoverlay"), "no timeoverlay")
    def test_sound_stays_when_the_time_is_burnt_in(self):
        for name, encoder, expected in (("a.mkv", "mulawenc", "audio/x-mulaw"), ("b.mp4", "opusenc", "audio/x-opus")):
            muxer = "mp4mux" if name == "b.mp4" else "matroskamux"
            clip = make_with_sound(self.folder / name, H264, muxer, encoder)
            ((cut, row),) = self.files(clip, (4.5, 5))
            length, ticks = len(clips_test.times_of(cut)), ticks_of(cut)[0]
            stamp.burn(row, str(self.folder / "clips"), None)
            cut = self.folder / "clips" / row["file"]
            self.assertEqual(self.sounds(cut), [expected])
            self.assertEqual(len(clips_test.times_of(str(cut))), length)
            self.assertEqual([round(tick, 1) for tick in ticks_of(str(cut))[0]], [round(tick, 1) for tick in ticks])

    @unittest.skipUnless(clips_test.has("voaacenc"), "no voaacenc")
    def test_sound_that_no_container_holds_is_left_out(self):
        clip = make_with_sound(self.folder / "a.mkv", H264, "matroskamux", "voaacenc ! aacparse")
        facts = clip_facts.facts_of(clip)
        facts = dataclasses.replace(facts, sounds=(*facts.sounds, Gst.Caps.from_string("audio/x-siren")))
        said = clip_formats.left_out(facts)
        self.assertEqual(said, "sound is not included, because .mp4 cannot hold it: Siren")
        turned = dataclasses.replace(facts, turned=True)
        self.assertEqual(clip_formats.left_out(turned), f"{said}; the clips lack the rotation of the file")
        self.assertEqual(clip_formats.sounds_of(facts), list(facts.sounds[:1]))
        ((cut, _),) = self.files(clip, (4.5, 5))
        self.assertEqual(self.sounds(cut), ["audio/mpeg,mpegversion=4"])

    @unittest.skipUnless(clips_test.has("voaacenc"), "no voaacenc")
    def test_sound_that_cannot_be_written_costs_no_clip(self):
        clip = make_with_sound(self.folder / "a.mp4", H264, "mp4mux", "voaacenc ! aacparse")
        facts, events = clip_facts.facts_of(clip), [clips_of_events.Event(1, 1.5, 1), clips_of_events.Event(4, 5, 2)]
        with unittest.mock.patch.object(clip_formats, "parser_of", return_value="identity error-after=5"):
            rows = clips_of_events.cut(clip, facts, events, self.folder / "clips")
        self.assertEqual([event.row for event in events], rows)
        self.assertEqual(self.names("clips"), sorted([row["file"] for row in rows] + clips_test.LISTS))
        for row in rows:
            cut = str(self.folder / "clips" / row["file"])
            self.assertEqual((self.sounds(cut), len(clips_test.times_of(cut))),
                             ([], round(25 * (row["end_s"] - row["begin_s"]))))
        self.assertRegex(clip_formats.left_out(facts), "^sound is not included: .")

    @unittest.skipUnless(clips_test.has("voaacenc"), "no voaacenc")
    def test_sound_that_begins_late_and_ends_early(self):
        """The sound keeps its place. A cut without sound has no sound stream. A cut that begins before the sound or
        ends after it keeps the part with sound."""
        clip = make_with_sound(self.folder / "a.mp4", H264, "mp4mux", "voaacenc ! aacparse", begin=3, end=6)
        cuts = self.files(clip, (1.2, 1.5, 1), (3.2, 4.4, 2), (5.1, 6.5, 3), (7.5, 7.8, 4))
        self.assertEqual([len(self.sounds(cut)) for cut, _ in cuts], [0, 1, 1, 0])
        for (cut, row), (first, last) in zip(cuts[1:3], ((3, 5), (4, 6))):
            _, begin, end = ticks_of(cut)
            shift = row["begin_s"] - clips_test.times_of(cut)[0]
            self.assertAlmostEqual(begin + shift, first, delta=0.1)
            self.assertAlmostEqual(end + shift, last, delta=0.1)
            self.assertEqual(len(clips_test.times_of(cut)), round(25 * (row["end_s"] - row["begin_s"])))

    @unittest.skipUnless(clips_test.has("voaacenc"), "no voaacenc")
    def test_joined_motions_keep_their_sound(self):
        """If some motions have no sound, the joined file has none, and a sentence says so."""
        clip = make_with_sound(self.folder / "a.mp4", H264, "mp4mux", "voaacenc ! aacparse", end=6)
        rows = self.cut(clip, (1.2, 1.5), (4.2, 4.4), (7.5, 7.8))
        name, remark = joined_clips.join(rows[:2], self.folder / "clips")
        joined = str(self.folder / "clips" / name)
        ticks, begin, end = ticks_of(joined)
        length = sum(row["end_s"] - row["begin_s"] for row in rows[:2])
        expected, passed = [], 0
        for row in rows[:2]:
            expected += [passed + second - row["begin_s"] for second in range(8)
                         if row["begin_s"] + 0.05 < second < row["end_s"] - 0.05]
            passed += row["end_s"] - row["begin_s"]
        inside = [tick for tick in ticks if min(abs(tick - each) for each in expected) < 0.05]
        self.assertEqual((len(inside), remark), (len(expected), ""), (ticks, expected))
        self.assertTrue(begin < 0.07 and abs(end - length) < 0.15, (begin, end, length))
        name, remark = joined_clips.join(rows, self.folder / "clips")
        self.assertEqual(remark, "all-motions.mp4 has no sound, because the motions differ in their sound")
        self.assertEqual(self.sounds(self.folder / "clips" / name), [])

    @unittest.skipUnless(clips_test.has("voaacenc"), "no voaacenc")
    def test_streams_far_from_each_other(self):
        """The muxer waits for sound while more pictures arrive than may wait, and vice versa."""
        clip = make_with_sound(self.folder / "a.mp4", H264, "mp4mux", "voaacenc ! aacparse")
        facts = clip_facts.facts_of(clip)
        with clip_streams.Reader(clip, facts) as reader:
            given = list(reader.samples(0, 8 * Gst.SECOND))
        for first in 0, 1:
            with (unittest.mock.patch.object(clip_streams, "QUEUED", 2000),
                  open(self.folder / "cut.mp4", "w+b") as stream):
                found = clip_streams.write(sorted(given, key=lambda pair: pair[0] != first), facts, stream)
            self.assertEqual(found, (0, 8 * Gst.SECOND))
            self.assertEqual(len(clips_test.times_of(str(self.folder / "cut.mp4"))), 200)
            _, begin, end = ticks_of(str(self.folder / "cut.mp4"))
            self.assertTrue(begin < 0.07 and abs(end - 8) < 0.07, (begin, end))


if __name__ == "__main__":
    unittest.main(verbosity=2)
