# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the parts that need no broker: waiting times, the configuration, places on the wall, the command line."""

import collections
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest
from unittest import mock

from helpers import FOREVER, HANGS, PROGRAM, SECRET, Case, free_port, listener, start_camera, taken_port
from helpers import wait_for

import advice
import best_view
import camera
import common
import config
import discovery
import metrics
import motion_alarm_service
import mqtt
import snapshot
import supervised
import troubles
import wall

common.parse("cudadiff ! fakesink")


class Units(unittest.TestCase):
    def test_waiting_times(self):
        longest = supervised.Backoff(1, 10, lambda least, most: most)
        self.assertEqual([1, 2, 4, 8, 10, 10], [longest.after(0) for _ in range(6)])
        self.assertEqual(10, longest.after(9))  # it ran, but not as long as the previous wait
        self.assertEqual([1, 2], [longest.after(11), longest.after(0.5)])
        shortest = supervised.Backoff(1, 10, lambda least, most: least)
        self.assertEqual([0.5, 1, 2, 4, 5], [shortest.after(0) for _ in range(5)])
        many = supervised.Backoff(1, 60)
        self.assertTrue(all(30 <= many.after(0) <= 60 for _ in range(2000) if many.tries > 10))
        self.assertGreater(len({many.after(0) for _ in range(10)}), 5)

    def test_a_signal_waits_for_a_second_at_most(self):
        clock = mock.Mock(now=0.0, pieces=[])
        clock.is_set.side_effect = lambda: clock.now > 2
        clock.wait.side_effect = lambda seconds: clock.pieces.append(seconds) or setattr(clock, "now",
                                                                                          clock.now + seconds)
        with mock.patch.object(motion_alarm_service.time, "monotonic", lambda: clock.now):
            self.assertTrue(motion_alarm_service.waited(clock, 600))
            self.assertEqual([1, 1, 1], clock.pieces)
            clock.is_set.side_effect = lambda: False
            self.assertFalse(motion_alarm_service.waited(clock, 1.5))
        self.assertEqual([1, 1, 1, 1, 0.5], clock.pieces)

    def test_events_are_left_out_when_too_many_wait(self):
        publisher = mqtt.Publisher(config.Mqtt(port=free_port()), None)
        door = collections.namedtuple("Door", "name")("door")
        with self.assertNoLogs("motion-alarm"):
            for _ in range(1000):
                publisher.event(door, {"event": "begin"})
        with self.assertLogs("motion-alarm") as logged:
            for _ in range(10):
                publisher.event(door, {"event": "begin"})
        self.assertEqual(1, len(logged.output))

    def sample(self, width, height, seconds):
        pipeline = common.parse(
            f"videotestsrc num-buffers=1 timestamp-offset={seconds * common.Gst.SECOND} "
            f"! video/x-raw,format=NV12,width={width},height={height} ! appsink name=sink sync=false")
        (found,) = common.samples(pipeline)
        return found

    def test_one_pipeline_makes_all_snapshots(self):
        """It runs in the context that all pipelines share, whatever the size and time of a frame. A failure leads to a
        new pipeline."""
        shared = common.Gst.Context.new("test.context", True)
        encoder, made = snapshot.Encoder(lambda: [shared]), []
        self.addCleanup(encoder.close)
        parse = common.parse

        def noted(*arguments, **properties):
            made.append(parse(*arguments, **properties))
            return made[-1]

        sizes = [(64, 48), (64, 48), (32, 16), (320, 240), (64, 48)]
        samples = [self.sample(*size, seconds) for size, seconds in zip(sizes, (1000, 0, 3, 1, 2))]
        with mock.patch.object(common, "parse", noted):
            for (width, height), each in zip(sizes, samples):
                jpeg = encoder.jpeg_of(each)
                self.assertEqual((b"\xff\xd8", b"\xff\xd9"), (jpeg[:2], jpeg[-2:]))
                self.assertIn(struct.pack(">HBHH", 17, 8, height, width), jpeg)
            self.assertEqual(1, len(made))
            self.assertTrue(made[0].get_context("test.context"))
            broken = common.Gst.Sample.new(common.Gst.Buffer.new_wrapped(b"x"), common.Gst.Caps("audio/x-raw"), None,
                                           None)
            with self.assertRaises(common.Failure):
                encoder.jpeg_of(broken)
            self.assertTrue(encoder.jpeg_of(samples[0]))
            self.assertEqual(2, len(made))

    def test_snapshots_that_wait_are_bounded(self):
        """Each camera has at most one waiting snapshot, the newest."""
        go_on, taken, sent = threading.Event(), [], []

        def encode(sample):
            taken.append(sample)
            go_on.wait()
            return sample

        snapshots = snapshot.Snapshots(encode, lambda *given: sent.append(given))
        snapshots.start()
        doors = [collections.namedtuple("Door", "name")(name) for name in "abc"]
        snapshots.put(doors[0], 0)
        wait_for("the first one is under way", lambda: taken)
        for number in range(1, 1000):
            snapshots.put(doors[number % 3], number)
        self.assertEqual(3, len(snapshots.waiting))
        go_on.set()
        wait_for("all were sent", lambda: len(sent) == 4)
        self.assertEqual({(doors[0], 0), (doors[0], 999), (doors[1], 997), (doors[2], 998)}, set(sent))
        snapshots.stop()
        snapshots.join()

    def test_stopping_waits_for_no_snapshot(self):
        """Neither a frame that cannot be encoded nor hundreds of waiting frames delay the end of the publisher."""
        go_on, stopped = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        class Hangs:
            stopping, jpeg_of = threading.Event(), staticmethod(lambda sample: go_on.wait())

        publisher = mqtt.Publisher(config.Mqtt(port=free_port()), Hangs)
        publisher.start([])
        for number in range(300):
            publisher.snapshot(collections.namedtuple("Door", "name")(f"door{number}"), None)
        threading.Thread(target=lambda: (publisher.stop(), stopped.set()), daemon=True).start()
        self.assertTrue(stopped.wait(HANGS))  # go_on is not set yet
        self.assertTrue(Hangs.stopping.is_set())
        self.assertFalse(publisher.snapshots.waiting)

    def test_pipelines_are_kept_running(self):
        """A pipeline that ends, fails or hangs restarts with the contexts that all pipelines share."""
        descriptions = [
            "videotestsrc num-buffers=3 ! fakesink name=sink signal-handoffs=true",  # ends
            "videotestsrc ! identity error-after=4 ! fakesink name=sink signal-handoffs=true",  # fails
            "no-such-element",
            "appsrc ! fakesink name=sink signal-handoffs=true",  # hangs
            "videotestsrc is-live=true ! fakesink name=sink signal-handoffs=true",
        ]
        found = []

        class Few(supervised.Supervised):
            def build(self):
                description = descriptions[min(self.reconnects, len(descriptions) - 1)]
                self.reconnect.timeout = 0.3 if description.startswith("appsrc") else FOREVER
                pipeline = common.parse(description)
                pipeline.get_by_name("sink").connect("handoff", lambda *_: self.seen())
                found.append(pipeline)
                return pipeline

            def drain(self, pipeline):
                pipeline.send_event(common.Gst.Event.new_eos())

        few = Few("few", config.Reconnect(first=0.01, most=0.02))
        few.contexts = [common.Gst.Context.new("test.context", True)]
        with self.assertLogs("motion-alarm", "WARNING") as logged:
            few.start()
            self.addCleanup(few.stop)
            wait_for("the last pipeline", lambda: few.reconnects == 4 and few.up and few.fps > 0)
        reasons = [line.partition("lost: ")[2].partition(";")[0] for line in logged.output]
        self.assertEqual(["the stream ended", "no frame arrived for 0.3 s"], [reasons[0], reasons[3]])
        self.assertIn("no-such-element", reasons[2])
        self.assertTrue(all(pipeline.get_context("test.context") for pipeline in found))
        few.stop()
        few.join(HANGS)
        self.assertFalse(few.is_alive() or few.up)

    def test_a_pipeline_is_switched(self):
        """It stops while it plays, and while it waits for the next attempt; each time, it can be switched on or end."""
        description = "videotestsrc is-live=true ! fakesink name=sink signal-handoffs=true"

        class One(supervised.Supervised):
            def build(self):
                pipeline = common.parse(description)
                pipeline.get_by_name("sink").connect("handoff", lambda *_: self.seen())
                return pipeline

            def drain(self, pipeline):
                pipeline.send_event(common.Gst.Event.new_eos())

        one = One("one", config.Reconnect(first=FOREVER, most=FOREVER))
        one.start()
        self.addCleanup(one.stop)
        for _ in range(2):
            wait_for("frames", lambda: one.up and not one.problem)
            one.switch(False)
            wait_for("it is off", lambda: not one.up and one.problem == "switched off")
            one.switch(True)
        wait_for("frames", lambda: one.up)
        one.switch(False)
        wait_for("it is off", lambda: not one.up)
        description = "no-such-element"
        one.switch(True)
        wait_for("it waits", lambda: "no-such-element" in one.problem)
        one.switch(False)
        wait_for("it is off while it waits", lambda: one.problem == "switched off")
        one.stop()
        one.join(HANGS)
        self.assertFalse(one.is_alive())
        self.assertEqual(0, one.reconnects)

    def push(self, told_to, pictures, size, rate, waits=True, cudadiff=(), **settings):
        """Plays pictures (GRAY8) through a camera with these settings. With `waits`, each frame is sent after the
        camera has counted the previous one. Returns the camera, which continues."""
        door, pushed = start_camera(self, "appsrc name=source is-live=true format=time caps=video/x-raw,format=GRAY8,"
                                    f"width={size[0]},height={size[1]},framerate={rate}/1", told_to,
                                    cudadiff={"reference": "first", **dict(cudadiff)}, **settings)
        for number, picture in enumerate(pictures, 1):
            frame = common.Gst.Buffer.new_wrapped(picture)
            frame.pts = number * common.Gst.SECOND // rate
            pushed.emit("push-buffer", frame)
            if waits:
                wait_for("the frame", lambda: door.frames == number)
        return door

    def play(self, told_to, settings, boxes, waits=True):
        """Plays frames of 320×240: a dark frame, then one for each bright box (None: no box)."""
        pictures = []
        for box in [None, *boxes]:
            rows = [bytearray(320) for _ in range(240)]
            for row in rows[box[1] : box[1] + box[3]] if box else ():
                row[box[0] : box[0] + box[2]] = b"\xc8" * box[2]
            pictures.append(b"".join(rows))
        return self.push(told_to, pictures, (320, 240), 25, waits, settings)

    def test_motion_of_the_first_frames_comes_after_online(self):
        """Motion begins before the frames are counted."""
        told = []
        told_to = listener(event=lambda door, line: told.append((line["event"], door.up)),
                           state=lambda door: told.append(("state", door.up)))
        self.play(told_to, {}, [(100, 100, 64, 64)] * 2, waits=False)
        wait_for("motion", lambda: [entry for entry in told if entry[0] == "begin"])
        self.assertEqual(("state", True), told[0])
        self.assertIn(("begin", True), told)

    def test_a_camera_that_stalls_delays_no_message(self):
        """The last frame of the camera has no motion. No other frame follows, and the camera is not lost yet. Motion
        still ends, and the object leaves."""
        told = []
        # The object moves to the right, and is gone in the last frame.
        boxes = [(8 * number, 100, 50, 50) for number in range(2, 19)]
        told_to = listener(event=lambda _, line: told.append(line))
        door = self.play(told_to, {"gap": 0.5, "track-hold": 0.3}, [*boxes, None])
        wait_for("all messages", lambda: {line["event"] for line in told} == {"begin", "enter", "end", "leave"})
        self.assertTrue(door.up)
        self.assertEqual((19, 0), (door.frames, door.reconnects))
        self.assertTrue(all(line["time"] <= told[-1]["time"] for line in told))

    def test_conditions_of_the_picture(self):
        """Each kind of picture is shown for ten frames in two seconds."""
        noise, told = random.Random(1), []
        texture = bytes(noise.randrange(60, 200) for _ in range(160 * 120))
        kinds = {"normal": lambda number: bytes(value + (number + at) % 2 for at, value in enumerate(texture)),
                 "dark": lambda number: bytes([4 + number % 2]) * (160 * 120),
                 "covered": lambda number: bytes([120 + number % 2]) * (160 * 120), "frozen": lambda _: texture}
        shown = "normal", "dark", "normal", "covered", "normal", "frozen"
        door = self.push(listener(event=lambda door, line: told.append((line["event"], line.get("state")))),
                         (kinds[shown[number // 10]](number) for number in range(10 * len(shown))), (160, 120), 5,
                         watch=True, cudahistogram={"watch-time": 1})
        wait_for("the last condition", lambda: ("frozen", "begin") in told)
        self.assertEqual([("dark", "begin"), ("dark", "end"), ("covered", "begin"), ("covered", "end"),
                          ("frozen", "begin")], [each for each in told if each[0] in config.CONDITIONS])
        self.assertEqual(({"frozen"}, "the picture is frozen"), (door.conditions, door.trouble))
        states = discovery.states("x", door)
        self.assertEqual({"x/door/watch/dark": "OFF", "x/door/watch/bright": "OFF", "x/door/watch/covered": "OFF",
                          "x/door/watch/defocused": "OFF", "x/door/watch/frozen": "ON"},
                         {topic: state for topic, state in states.items() if "/watch/" in topic})
        self.assertEqual("the picture is frozen", states["x/door/problem"])
        announced = discovery.discovery("homeassistant", "x", [door])
        found = [json.loads(payload) for topic, payload in announced.items() if "/door_watch_" in topic]
        self.assertEqual({topic for topic in states if "/watch/" in topic}, {each["state_topic"] for each in found})
        samples = {(sample.name.removeprefix("cudavision_camera_"), [*sample.labels.values()][-1]): sample.value
                   for family in metrics.Collector([door], None, None).collect() for sample in family.samples}
        for key, value in {("watch", "frozen"): 1, ("watch", "covered"): 0, ("events_total", "covered"): 1,
                           ("events_total", "frozen"): 1, ("events_total", "bright"): 0}.items():
            self.assertEqual(value, samples[key], key)
        door.stop()
        door.join(HANGS)
        self.assertEqual(("frozen", "end"), told[-1])
        self.assertFalse(door.conditions)

    def test_conditions_end_when_a_camera_is_lost(self):
        door = camera.Camera(config.Camera(uri="test", key="door", watch=True), config.Reconnect(), listener())
        door.conditions.add("dark")
        door.lost()
        self.assertEqual(set(), door.conditions)

    def test_the_last_change_of_the_view_is_a_state(self):
        publisher = mqtt.Publisher(config.Mqtt(port=free_port()), None)
        door = collections.namedtuple("Door", "name")("door")
        for event in "scene", "moved", "light", "moves", "begin":
            publisher.event(door, {"event": event})
        self.assertEqual({"cudavision/door/view": '{"event": "moved"}'}, publisher.retained)

    def test_snapshots_show_the_best_view_without_tint(self):
        """A square enters across the left edge, grows and disappears. The first snapshot is its first frame; the last
        one shows it whole and largest."""
        sizes = [20, 30, 40, 60, 80, 100, 90, 70, 50]
        boxes = [(0 if size < 40 else 8 * index, 60, size, size) for index, size in enumerate(sizes)]
        for output in ("passthrough", "overlay", "mask"):
            with self.subTest(output):
                snapshots = []
                told_to = listener(snapshot=lambda _, sample, found=snapshots: found.append(sample))
                door = self.play(told_to, {"output": output, "gap": 0.1}, boxes)
                door.stop()
                door.join(HANGS)
                self.assertGreater(len(snapshots), 1)
                for each, size in ((snapshots[0], 20), (snapshots[-1], 100)):
                    found = each.get_buffer().extract_dup(0, each.get_buffer().get_size())
                    self.assertEqual({0: 320 * 240 - size * size, 200: size * size}, dict(collections.Counter(found)))

    def test_an_object_that_stops_is_reported(self):
        """And one that moves again, and the place of something that was taken away."""
        told = []
        boxes = [(10 + 4 * n, 100, 40, 40) for n in range(30)]
        boxes += [boxes[-1]] * 40 + [(126 + 4 * n, 100, 40, 40) for n in range(1, 30)]
        door = self.play(listener(event=lambda _, line: told.append(line)), {"still-time": 0.6, "gap": 0.1}, boxes)
        door.stop()
        door.join(HANGS)
        names = [line["event"] for line in told]
        self.assertEqual(["begin", "enter", "stopped", "moving", "leave", "end"], names)
        stopped = told[2]
        self.assertEqual(told[1]["id"], stopped["id"])
        self.assertAlmostEqual(stopped["time"] - stopped["since"], 0.6, delta=0.2)
        self.assertEqual(1, door.events["stopped"])

    def test_snapshots_are_not_too_many(self):
        sent, now = [], [0.0]
        each = best_view.BestView(sent.append, lambda: now[0])
        with mock.patch.object(best_view, "score_of", lambda sample: sample):
            each.look(5, "before the motion")
            each.begin()
            for score in (10, 11, 13, 12, 20, 19):
                each.look(score, score)
                now[0] += 0.1
            self.assertEqual([10], sent)  # immediately; better ones wait for a second
            now[0] += 1
            each.look(3, 3)
            self.assertEqual([10, 20], sent)
            each.look(24, 24)  # hardly better
            each.look(40, 40)
            each.finish()
            self.assertEqual([10, 20, 40], sent)
            each.look(100, 100)
            each.begin()
            each.look(0, 0)  # motion without an object also has a snapshot
            self.assertEqual([10, 20, 40, 0], sent)

    def test_places_on_the_wall(self):
        def places(count, **more):
            each = wall.Wall(config.Wall(width=1280, height=720, **more), list(range(count)), config.Reconnect())
            return [each.place(index) for index in range(count)]

        self.assertEqual([(0, 0, 1280, 720)], places(1))
        self.assertEqual([(0, 0, 640, 720), (640, 0, 640, 720)], places(2))
        self.assertEqual([(0, 0, 640, 360), (640, 0, 640, 360), (0, 360, 640, 360)], places(3))
        self.assertEqual([(0, 0, 426, 720), (426, 0, 427, 720), (853, 0, 427, 720)], places(3, columns=3))

    def test_secrets_are_hidden(self):
        """This extends the test for all programs in tests/examples/shared_test.py to another path."""
        uri = "rtsp://me:a secret@host/x"
        each = camera.Camera(config.Camera(uri=uri, key="door"), config.Reconnect(), None)
        for text in (uri, uri.replace(" ", "%20"), f"cannot open {uri.replace('/x', '/y')}", "no frame for 10 s"):
            self.assertNotIn("secret", each.hide(text), text)

    def test_names_of_topics(self):
        door = config.Camera(uri="test", key="door", cudadiff={"zones": "way in: 0,0 1,1 2,0; a/b: 0,0 1,1 2,0"})
        self.assertEqual(["way in", "a/b"], door.zones)
        state = collections.namedtuple("State", "name up enabled trouble motion objects settings occupied")(
            "door", True, True, "", False, 2, door, lambda zone: zone == "a/b")
        self.assertEqual({"home/x/door/status": "online", "home/x/door/enabled": "ON", "home/x/door/problem": "none",
                          "home/x/door/motion": "OFF", "home/x/door/objects": "2", "home/x/door/zone/way_in": "OFF",
                          "home/x/door/zone/a_b": "ON"},
                         discovery.states("home/x", state))
        self.assertIn("homeassistant/binary_sensor/home_2f_x/door_zone_a_b/config",
                      discovery.discovery("homeassistant", "home/x", [state]))

    def test_services_with_different_topics_do_not_meet(self):
        """Client ids must differ, because a broker disconnects one of two clients with equal ids. The ids announced to
        Home Assistant must also differ."""
        topics = "home/cams home_cams home__cams home_2f_cams home-cams häuser h_e4_user".split() + ["home cams"]
        door = config.Camera(uri="test", key="door")
        ids, found = set(), []
        for topic in topics:
            publisher = mqtt.Publisher(config.Mqtt(topic=topic, port=free_port()), None)
            ids.add(publisher.client._client_id)
            announced = discovery.discovery("homeassistant", topic,
                                            [camera.Camera(door, config.Reconnect(), publisher)])
            found += [*announced, *(json.loads(payload)["unique_id"] for payload in announced.values())]
            self.assertTrue(all(re.fullmatch("[A-Za-z0-9_/-]+", each) for each in announced))
        self.assertEqual((len(topics), len(found)), (len(ids), len(set(found))))


class CommandLine(Case):
    def program(self, *arguments, **environment):
        environment = {**os.environ, **environment}
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=HANGS, env=environment)

    def fails(self, status, *arguments, **environment):
        """Returns the only line that it prints."""
        done = self.program(*arguments, **environment)
        self.assertEqual((status, "", 1), (done.returncode, done.stdout, done.stderr.count("\n")), done.stderr)
        self.assertNotIn(SECRET, done.stderr)
        return done.stderr

    def configuration(self, text):
        file = self.folder / "cameras.toml"
        file.write_text(text, encoding="utf-8")
        return file

    def test_wrong_configurations(self):
        door = '[camera.door]\nuri = "test"\n'
        rtsp = f'[camera.door]\nuri = "rtsp://me:{SECRET}@127.0.0.1:9/x"\n'
        yard = "[camera.door.cudadiff]\nzones = 'yard: 0.0,0.0 1.0,1.0 0.0,1.0'\n"
        diff, watch = f"{door}[camera.door.cudadiff]\n", f"{door}watch = true\n[camera.door.cudahistogram]\n"
        folder = "[recording]\nfolder = '/tmp'"
        for text, expected in {
            "": "names no camera", "[camera": "is not TOML",
            f"{door}[mqqt]": "there is no table [mqqt]",
            f"{door}name = 1":
                "[camera.door] has no key name; it may have uri, title, wall, recording, watch, fps, onvif, source, "
                "cudadiff, cudahistogram",
            "[camera.door]": "[camera.door] needs the key uri",
            "[camera.door]\nuri = 1": "uri in [camera.door] must be a string",
            '["camera"."the door"]\nuri = "test"': "[camera.the door]: a name of a camera consists of",
            f'{door}wall = "yes"': "wall in [camera.door] must be true or false",
            f"{door}[mqtt]\nport = 70000": "port in [mqtt] must be 1 to 65535",
            f'{door}[mqtt]\ntopic = "a/#"': "topic in [mqtt] must be a topic without + and #",
            f'{door}[mqtt]\ntls = true\nca_file = "/nonexistent"':
                "cannot read /nonexistent: No such file or directory",
            f"{door}[reconnect]\nfirst = true": "first in [reconnect] must be a number",
            f"{door}[wall]\nsink = 'no-such-element'": 'no element "no-such-element"',
            f"{door}wall = false\n[wall]": "[wall] shows 1 to 63 cameras",
            f'[camera.door]\nuri = "rtsp://me:${{NO_SUCH}}@{SECRET}"':
                "uri in [camera.door] needs the environment variable NO_SUCH,",
            f'[camera.door]\nuri = "rtsp://me:{SECRET}$@x"': "uri in [camera.door] has a $ that does not begin ${NAME}",
            f"{diff}gap = 'x'": "cudadiff has no such property or value: gap=x",
            f"{diff}no-such = true": "cudadiff has no such property or value: no-such=true",
            f"{diff}zones = 'a b: 0,0 1,1 2,0; a_b: 0,0 1,1 2,0'": "two zones whose names differ only in",
            f"{diff}zones = 'a: 1,1'": "[camera.door.cudadiff]: zones has a (1,1), which is not a polygon",
            f"{diff}zones = '1,1'": '[camera.door.cudadiff]: zones is "1,1": it must be polygons with names',
            f"{diff}zones = 'a: 0,0 321,9 9,9'": "leaves the frame of 320×240 at 321,9",
            f"{rtsp}[camera.door.cudadiff]\nzones = 'a: 0,0 99999,9 9,9'":
                "which leaves every frame: pixels are 0 to 16384",
            f"{diff}lines = 'a: 5,5'": "[camera.door.cudadiff]: lines has a (5,5), which is not a line",
            f"{diff}mask-regions = 'x'": '[camera.door.cudadiff]: mask-regions is "x": it must be',
            f"{diff}gap = -1": "[camera.door.cudadiff]: gap is -1: it must be 0 to",
            f"{diff}min-area = 3\nmax-area = 2": "max-area is 2: it must be at least min-area, which is 3",
            f"{diff}region = 'roi'": "region is roi: cudadiff looks at the whole frame",
            f"{diff}async-depth = 90": "async-depth is 90: it must be 0 to 8",
            f"{diff}post-messages = false": "post-messages=false leaves nothing to watch",
            f"{rtsp}source = {{ no-such = 1 }}": "source in [camera.door]: rtspsrc has no property no-such",
            f"{rtsp}source = {{ latency = -5 }}": "source in [camera.door]: latency of rtspsrc cannot have this value",
            f"{rtsp}source = {{ protocols = 'no' }}":
                "source in [camera.door]: protocols of rtspsrc cannot have this value",
            f"{rtsp}source = {{ user-pw = 5.5, latency = '{SECRET}' }}": "latency of rtspsrc cannot have this value",
            f"{rtsp}fps = -1": "fps in [camera.door] must be 0 to 240",
            f"{rtsp}fps = '10'": "fps in [camera.door] must be a number",
            f"{rtsp}recording = true": "recording in [camera.door] needs the table [recording]",
            f"{rtsp}{folder}": "[recording] applies to no camera",
            f"{rtsp}recording = true\n[recording]": "[recording] needs the key folder",
            f"{rtsp}recording = true\n[recording]\nfolder = '/dev/null/x'":
                "cannot write to /dev/null: it is not a folder",
            f"{rtsp}recording = true\n{folder}\nbefore = -1": "before in [recording] must be 0 to 60",
            f"{door}recording = true\n{folder}": "pictures of a test source are not encoded",
            f"{rtsp}recording = 'visits'": "recording in [camera.door] must be true, false or a list of zones",
            f"{rtsp}recording = []": "recording in [camera.door] must be true, false or a list of zones",
            f"{rtsp}recording = ['yard']": "recording in [camera.door] needs the table [recording]",
            f"{rtsp}recording = ['yard']\n{folder}":
                "recording in [camera.door] names the zone 'yard', which zones in [camera.door.cudadiff] does not have",
            f"{rtsp}recording = ['yard', 5]\n{folder}\n{yard}": "names the zone 5, which",
            f"{rtsp}recording = ['yard']\n{folder}\n{yard}track = 'no'":
                "[camera.door.cudadiff]: track=false leaves no visits, which recording in [camera.door] needs",
            f"{door}[camera.door.cudahistogram]\nwatch-time = 5":
                "[camera.door.cudahistogram] needs watch = true in [camera.door]",
            f"{watch}watch-tim = 5":
                "[camera.door.cudahistogram]: cudahistogram has no such property or value: watch-tim=5",
            f"{watch}watch = false": "[camera.door.cudahistogram]: watch=false leaves nothing to watch",
            f"{watch}watch-time = -1": "[camera.door.cudahistogram]: watch-time is -1: it must be 0 to",
            f"{door}onvif = 8081": "onvif in [camera.door] needs the table [onvif], with username and password",
            f"{door}[onvif]\nusername = 'a'\npassword = '{SECRET}'": "[onvif] applies to no camera: write onvif = PORT",
            f"{door}onvif = 1\n[onvif]\nusername = 'a'": "[onvif] needs the key password",
            f"{door}onvif = 1\n[onvif]\nusername = 'a'\npassword = ''":
                "username and password in [onvif] must not be empty",
            f"{door}onvif = 65536": "onvif in [camera.door] must be 0 to 65535",
            f"{door}onvif = 81\n[camera.yard]\nuri = 'test'\nonvif = 81\n"
            f"[onvif]\nusername = 'a'\npassword = '{SECRET}'":
                "onvif in [camera.yard] and [camera.door] is the same port",
            f'[camera.door]\nuri = "rtps://me:{SECRET}@host"':
                "uri in [camera.door]: no installed plugin reads rtps://",
            '[camera.door]\nuri = "/nonexistent.mp4"': "cannot read /nonexistent.mp4: there is no such file",
            f'[camera.door]\nuri = "{self.folder}"': "it is a folder",
        }.items():
            with self.subTest(text), self.assertRaises(common.Failure) as raised:
                motion_alarm_service.make(motion_alarm_service.load(self.configuration(text))[0])
            self.assertIn(expected, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))
            self.assertNotIn(SECRET, str(raised.exception))

    def test_right_configurations(self):
        """Shapes in pixels are valid for a camera of unknown size. Settings without effect are warnings."""
        rtsp = '[camera.door]\nuri = "rtsp://127.0.0.1:9/x"\n[camera.door.cudadiff]\n'
        for text, warnings in {
            f"{rtsp}zones = 'yard 2000: 0,0 3839,9 9,2159'": [],
            f"{rtsp}zones = 'a: 0.0,0.0 1.0,1.0 0.0,0.5'\ntrack = false": ["zones has no effect with track=false"],
            f"{rtsp}preset = 'outdoor'\noutput = 'overlay'": [],
            '[camera.door]\nuri = "rtsp://127.0.0.1:9/x"\nwatch = true\n[camera.door.cudahistogram]\nwatch-time = 10\n'
            'region = "outside-roi"\nregions = "0,0,700,40"': [],
            '[camera.door]\nuri = "rtsp://127.0.0.1:9/x"\nrecording = ["way in"]\n[recording]\nfolder = "/tmp"\n'
            '[camera.door.cudadiff]\nzones = "way in: 0.0,0.0 1.0,1.0 0.0,0.5; street: 0,0 9,9 9,0"': [],
        }.items():
            with self.subTest(text):
                found = motion_alarm_service.load(self.configuration(text))[1]
                self.assertEqual([f"[camera.door.cudadiff]: {each}" for each in warnings], found)
        done = self.program("--check", self.configuration(f"{rtsp}track = false\nlines = 'a: 0.1,0.0 0.2,1.0'"))
        self.assertEqual((0, "1 cameras: door\n"), (done.returncode, done.stdout))
        self.assertEqual("[camera.door.cudadiff]: lines has no effect with track=false\n", done.stderr)

    def test_what_to_do_about_a_dead_camera(self):
        uri, errors = f"rtsp://me:{SECRET}@10.0.0.7:554/x", common.Gst.ResourceError
        resource = common.Gst.resource_error_quark()
        for error, expected in {
            errors.OPEN_READ_WRITE: "is it switched on and connected, and is 10.0.0.7:554 right?",
            errors.NOT_AUTHORIZED: "correct the user and the password in its uri",
            errors.NOT_FOUND: "correct the path in its uri: the camera does not know it",
        }.items():
            kind = troubles.kind_of(common.GLib.Error.new_literal(resource, "text", error))
            self.assertEqual(expected, advice.about_error(kind, uri))
        new = common.GLib.Error.new_literal
        library = new(common.Gst.library_error_quark(), "text", common.Gst.LibraryError.SETTINGS)
        self.assertEqual(advice.SETTINGS, troubles.kind_of(library))
        plugin = new(common.Gst.core_error_quark(), "text", common.Gst.CoreError.MISSING_PLUGIN)
        self.assertIn("gstreamer1.0-libav", advice.about_error(troubles.kind_of(plugin), uri))
        self.assertIn('protocols = "tcp"', advice.about_silence(uri, False))
        self.assertIn("10.0.0.7:554", advice.about_silence(uri, True))
        self.assertEqual("", advice.about_end("/clips/a.mp4"))

    def test_usage(self):
        file = self.configuration('[camera.door]\nuri = "test"\n')
        self.fails(2)
        self.fails(2, "--no-such", file)
        wrong = self.folder / "wrong.toml"
        wrong.write_text(f'[camera.door]\nuri = "rtsp://me:{SECRET}$@x"')
        self.assertIn("uri in [camera.door] has a $", self.fails(2, wrong))
        self.assertIn("No such file", self.fails(2, self.folder / "missing"))
        self.assertIn("Is a directory", self.fails(2, self.folder))
        self.assertEqual("1 cameras: door\n", self.program("--check", file).stdout)
        self.assertIn("--check", self.program("--help").stdout)
        self.assertIn("GST_PLUGIN_PATH",
                      self.fails(1, file, GST_PLUGIN_PATH="", GST_REGISTRY=str(self.folder / "registry.bin")))
        with taken_port() as port:
            text = self.fails(1, self.configuration(f'[camera.door]\nuri = "test"\n[metrics]\nport = {port}\n'))
            self.assertIn(f"cannot listen on 127.0.0.1:{port}", text)

    def test_soapbar_is_missing(self):
        for name in "soapbar.py", "lxml.py":
            (self.folder / name).write_text("raise ImportError('not here')")
        text = "[camera.door]\nuri = 'test'\n"
        missing = {"PYTHONPATH": str(self.folder)}
        self.assertEqual("1 cameras: door\n", self.program("--check", self.configuration(text), **missing).stdout)
        file = self.configuration(f"{text}onvif = 81\n[onvif]\nusername = 'a'\npassword = '{SECRET}'")
        said = self.fails(2, "--check", file, **missing)
        self.assertIn("[onvif] needs soapbar, which this Python does not have (not here)", said)
        self.assertIn("pip install -r examples/motion-alarm-service/requirements.txt", said)

    def test_stop_at_any_time(self):
        silent = socket.create_server(("127.0.0.1", 0))  # accepts, and never answers
        self.addCleanup(silent.close)
        for number, delay in ((signal.SIGTERM, 0.1), (signal.SIGINT, 1)):
            service = self.service(f"[mqtt]\nport = {free_port()}\n[camera.door]\nuri = "
                                   f"'rtsp://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/x'\n"
                                   "[camera.yard]\nuri = 'test'\n[wall]\nsink = 'fakesink sync=true'\n")
            wait_for("it listens", service.metrics)
            time.sleep(delay)
            self.assertEqual(0, service.stop(number))


if __name__ == "__main__":
    unittest.main()
