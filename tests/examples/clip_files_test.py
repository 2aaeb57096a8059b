#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests which files of a folder the report and the scan treat as clips. Exit status 77 without the bindings of
GStreamer."""
import os
import unittest

import programs
from programs import launch
programs.use("motion-scan")
import common  # noqa: E402
import clip_files  # noqa: E402
import clips  # noqa: E402
import damage  # noqa: E402
import scan_fixture  # noqa: E402


class Folders(programs.InFolder):
    def below(self, paths):
        return [os.path.relpath(path, self.folder) for path in paths]

    def found(self, deep=False):
        return tuple(map(self.below, clip_files.clips_in(self.folder, deep)))

    def write(self, name, data=b"x"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

    def stream(self, codec):
        """A video stream without a container."""
        encoder, caps = {"h264": (damage.H264, "video/x-h264"), "h265": (damage.H265, "video/x-h265")}[codec]
        if not programs.has(encoder.split()[0]):
            self.skipTest(f"no {encoder.split()[0]}")
        return launch(f"videotestsrc num-buffers=20 ! video/x-raw,format=I420,width=160,height=120 ! {encoder} ! "
                      f"{caps},stream-format=byte-stream ! fdsink", capture_output=True).stdout

    def test_what_recorders_write(self):
        for codec, names in (("h264", ("a.264", "b.h264", "c.dav", "no name", "d.bin")),
                             ("h265", ("a.265", "b.h265", "e.hevc"))):
            for name in names:
                self.write(name, self.stream(codec))
        self.write("head.dav", b"DHAV\xfd\0\0\0" + bytes(32) + self.stream("h264"))
        everything = sorted(os.listdir(self.folder))
        self.assertEqual(self.found(), (everything, []))
        self.assertEqual(self.below(clips.discover([str(self.folder)])), everything)

    def test_content_counts_and_names_of_broken_clips(self):
        data = damage.encoded("jpeg.mkv", damage.STILL)
        for name in "clip", "clip.dat", "clip.txt", "b/clip.tmp", "c.MKV":
            self.write(name, data)
        for name in "broken.avi", "broken.MP4", "broken.dav", "b/empty.ts":
            self.write(name, b"" if "empty" in name else b"broken")
        self.write("noise.ts", bytes(range(256)) * 9)
        self.write("code.ts", b"export const clip: number = 5;\n" * 9)
        self.write("umlaut.ts", b"// " + "ü".encode() * 40000)  # the examined part ends inside a character
        self.write("notes.txt", b"a text")
        self.write(".hidden.mkv", data)
        self.write(".folder/clip.mkv", data)
        self.write("picture.jpg", launch("videotestsrc num-buffers=1 ! jpegenc ! fdsink", capture_output=True).stdout)
        scan_fixture.make_sound(self.folder / "sound.wav")
        self.write("nothing", b"")
        clips_here = ["broken.MP4", "broken.avi", "broken.dav", "c.MKV", "clip", "clip.dat", "clip.txt", "noise.ts"]
        others = ["code.ts", "notes.txt", "nothing", "picture.jpg", "sound.wav", "umlaut.ts"]
        self.assertEqual(self.found(), (clips_here, others))
        self.assertEqual(self.found(deep=True), (sorted([*clips_here, "b/clip.tmp", "b/empty.ts"]), others))

    def picture(self, pattern):
        return launch(f"videotestsrc pattern={pattern} num-buffers=1 ! jpegenc ! fdsink", capture_output=True).stdout

    def test_pictures(self):
        for number, pattern in enumerate(["black"] * 6 + ["ball"] * 4):
            self.write(f"#*/{number}.jpg", self.picture(pattern))
        self.report("#*")
        self.assertEqual([row["time_s"] for row in programs.rows_of(self.folder / "out/frames.csv")],
                         [f"{second}.000" for second in range(10)])
        self.assertEqual([event["time"] for event in self.events("begin")], [7])  # the second frame of the ball
        self.assertIn("<title>#* ", self.page())
        self.report("#*", "--rate=4", "--start=2.0")
        self.assertEqual([row["time_s"] for row in programs.rows_of(self.folder / "out/frames.csv")],
                         ["2.000", "2.250"])

    def test_pictures_that_cannot_be_read(self):
        picture = self.picture("ball")
        for number in range(9):
            self.write(f"a/{number}.jpg", picture)
        self.write("a/2.jpg", b"a text")
        self.write("a/5.jpg", b"")
        lost = "2 of 9 pictures could not be read: the times after them are too early"
        self.report("a", status=3)
        self.assertEqual(self.events("finished")[0]["incomplete"], lost)
        self.assertIn(lost, self.page())
        self.report("a", "--duration=4")
        self.write("a/2.jpg", picture)
        self.write("a/5.jpg", picture)
        for skip in range(5):
            with self.subTest(skip=skip):
                self.report("a", f"--frame-skip={skip}")

    def test_the_first_picture_cannot_be_read(self):
        self.write("a/0.jpg", b"")
        self.write("a/1.jpg", b"a text")
        self.write("a/2.jpg", self.picture("ball"))
        self.assertIn("the first picture of the folder, a/1.jpg, is neither JPEG nor PNG: move it elsewhere\n",
                      self.report("a", status=1))
        (self.folder / "a/1.jpg").unlink()
        self.report("a", status=3)

    def test_subfolders(self):
        self.write("notes.txt")
        for name in "b", "a", ".c":
            (self.folder / name).mkdir()
        said = f"its subfolders are not searched: name them, such as {self.folder / 'a'}"
        self.assertIn(f"; {said}\n", self.report(self.folder, status=1))
        with self.assertRaises(common.Failure) as caught:
            clip_files.clips_in(self.folder, deep=True)
        self.assertNotIn("subfolders", str(caught.exception))

    def test_pictures_and_other_files(self):
        self.write("a/1.jpg", self.picture("ball"))
        for other in "2.JPG", "notes.txt", ".2.jpg":
            with self.subTest(other):
                self.write(f"a/{other}")
                self.assertIsNone(clip_files.pictures_in(self.folder / "a"))
                said = self.report("a", status=1)
                self.assertIn("there is no video in the folder a; skipped: ", said)
                uri = f"split{(self.folder / 'a').as_uri()}/*.jpg"
                self.assertIn(f"; its pictures are a clip with the name '{uri}' and --rate=1\n", said)
                (self.folder / "a" / other).unlink()
        self.report(uri, "--rate=1")
        self.assertEqual(clip_files.pictures_in(self.folder / "a"), uri)

    def test_what_is_left_out_is_said(self):
        self.assertEqual(clip_files.left_out([]), "")
        self.assertEqual(clip_files.left_out(["a/b.txt"]), "skipped: 1 file that is not a video (b.txt)")
        self.assertEqual(clip_files.left_out([f"{n}.txt" for n in range(8)]), "skipped: 8 files that are not videos "
                         "(0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 3 more)")
        self.write("notes.txt")
        for call in (lambda: clip_files.clips_in(self.folder), lambda: clips.discover([str(self.folder)])):
            with self.assertRaisesRegex(common.Failure, r"^there is no video in the folder .*; skipped: 1 file that "
                                        r"is not a video \(notes\.txt\)$"):
                call()
        self.write("clip", damage.encoded("jpeg.mkv", damage.STILL))
        said = []
        clips.discover([str(self.folder)], say=said.append)
        self.assertEqual(said, [f"{self.folder}: skipped: 1 file that is not a video (notes.txt)"])
        self.assertEqual(self.run_report(self.folder).stderr, f"{said[0]}\n")
        self.assertIn("skipped: 1 file that is not a video (notes.txt)", (self.folder / "out/index.html").read_text())
        self.assertTrue((self.folder / "out/clip/report.html").exists())


if __name__ == "__main__":
    unittest.main()
