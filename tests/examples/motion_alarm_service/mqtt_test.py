# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests MQTT with a real mosquitto."""

import json
import os
import shutil
import signal
import subprocess
import unittest

from helpers import SECRET, Case, the_clip, wait_for


def camera(port, zones="left side: 0.0,0.0 0.75,0.0 0.75,1.0 0.0,1.0; right: 0.75,0.0 1.0,0.0 1.0,1.0 0.75,1.0",
           more=""):
    return f"""
[mqtt]
port = {port}
{more}
[camera.door]
title = 'Front <door> & "garden"'
uri = "{the_clip()}"
[camera.door.cudadiff]
zones = "{zones}"
lines = "gate: 0.75,0.0 0.75,1.0"
reference = "first"
gap = 0.5
track-hold = 0.3
"""


class Mqtt(Case):
    def check_discovery(self, found):
        """Checks that the keys required by Home Assistant exist, and that entities refer to existing topics."""
        entities = {topic: json.loads(payload) for topic, payload in found.last.items()
                    if topic.startswith("homeassistant/")}
        self.assertEqual({f"homeassistant/{kind}/cudavision/door_{name}/config" for kind, names in {
            "binary_sensor": ("motion", "zone_left_side", "zone_right", "connection"),
            "sensor": ("objects", "problem"), "image": ("snapshot",), "switch": ("enabled",)}.items()
            for name in names}, set(entities))
        self.assertEqual(len(entities), len({entity["unique_id"] for entity in entities.values()}))
        for topic, entity in entities.items():
            component = topic.split("/")[1]
            state = entity["image_topic" if component == "image" else "state_topic"]
            self.assertIn(state, found.last)
            self.assertTrue(entity["name"] and entity["origin"]["name"] and entity["device"]["identifiers"])
            self.assertEqual('Front <door> & "garden"', entity["device"]["name"])
            self.assertEqual("all", entity["availability_mode"])
            for place in entity["availability"]:
                self.assertIn(found.last[place["topic"]].decode(),
                              (place["payload_available"], place["payload_not_available"]))
            if component != "binary_sensor":
                self.assertNotIn("device_class", entity)
            else:
                self.assertIn(entity.get("device_class"), {None, "motion", "occupancy", "connectivity"})
                self.assertIn(found.last[state].decode(),
                              (entity.get("payload_on", "ON"), entity.get("payload_off", "OFF")))

    def test_events_states_discovery_and_snapshot(self):
        broker = self.broker()
        found, service = self.subscriber(broker), self.service(camera(broker.port))
        found.expect("cudavision/status", b"online")
        found.expect("cudavision/door/status", b"online")
        wait_for("a light", lambda: any(event["event"] == "light" for event in found.events("door")))
        events = found.events("door")
        names = [event["event"] for event in events]
        self.assertLess(names.index("begin"), names.index("end"))
        self.assertTrue(all(event["camera"] == "door" and event["at"].endswith("+00:00") for event in events))
        begin = events[names.index("begin")]
        self.assertGreater(begin["regions"][0]["width"], 0)
        self.assertTrue(1 <= begin["time"] < 4, begin)  # the ball is there; a busy machine skips frames
        visits = [(event["event"], event["id"], event["zone"]) for event in events
                  if event["event"] in ("enter", "leave")]
        self.assertEqual({"left side", "right"}, {zone for _, _, zone in visits})
        entered, left = ({visit[1:] for visit in visits if visit[0] == name} for name in ("enter", "leave"))
        self.assertEqual(entered, left)
        cross = next(event for event in events if event["event"] == "cross")
        self.assertEqual("gate", cross["line"])
        self.assertIn(cross["direction"], ("left", "right"))
        # The states followed, in this order.
        def payloads(topic):
            return [payload for name, payload, _ in found.messages if name == f"cudavision/door/{topic}"]

        self.assertEqual([b"OFF", b"ON", b"OFF"], payloads("motion")[:3])
        for zone in ("left_side", "right"):
            self.assertEqual([b"OFF", b"ON", b"OFF"], payloads(f"zone/{zone}")[:3])
        self.assertEqual([b"0", b"1"], payloads("objects")[:2])
        self.show(found.last["cudavision/door/snapshot"], 320, 240)
        self.check_discovery(found)
        # A stop ends motion and visits, and is not a failure.
        wait_for("motion", lambda: found.last["cudavision/door/motion"] == b"ON")
        self.assertEqual(0, service.stop(signal.SIGINT))
        for topic, payload in (("status", b"offline"), ("door/status", b"offline"), ("door/motion", b"OFF"),
                               ("door/objects", b"0")):
            found.expect(f"cudavision/{topic}", payload)
        for name, other in (("begin", "end"), ("enter", "leave")):
            counts = [sum(event["event"] == each for event in found.events("door")) for each in (name, other)]
            self.assertEqual(counts[0], counts[1], name)
        # A late subscriber finds the states.
        late = self.subscriber(broker)
        late.expect("cudavision/status", b"offline")
        states = {topic: payload for topic, payload in found.last.items() if not topic.endswith("/event")}
        wait_for("the retained states", lambda: late.last == states)
        self.assertTrue(all(retained for _, _, retained in late.messages))

    def test_a_camera_is_switched(self):
        broker = self.broker()
        found, service = self.subscriber(broker), self.service(camera(broker.port))
        command = "cudavision/door/enabled/set"

        def publish(payload, topic=command, retain=False):
            found.client.publish(topic, payload, qos=1, retain=retain)

        wait_for("motion", lambda: found.last.get("cudavision/door/motion") == b"ON")
        found.expect("cudavision/door/enabled", b"ON")
        publish("OFF")
        for topic, payload in (("enabled", b"OFF"), ("status", b"offline"), ("problem", b"switched off"),
                               ("motion", b"OFF"), ("objects", b"0")):
            found.expect(f"cudavision/door/{topic}", payload)
        for name, other in (("begin", "end"), ("enter", "leave")):
            counts = [sum(event["event"] == each for event in found.events("door")) for each in (name, other)]
            self.assertEqual(counts[0], counts[1], name)
        self.assertEqual((0, 0), tuple(service.metrics()[f"camera_{name}", "door"] for name in ("up", "enabled")))
        publish("off")  # neither ON nor OFF
        wait_for("a warning", lambda: f"{command}: the payload must be ON or OFF" in service.log)
        publish("ON", "cudavision/gate/enabled/set")
        wait_for("another one", lambda: "gate/enabled/set: there is no such camera" in service.log)
        publish("ON")
        for topic, payload in (("enabled", b"ON"), ("status", b"online"), ("problem", b"none"), ("motion", b"ON")):
            found.expect(f"cudavision/door/{topic}", payload)
        # A retained command also applies to the next start of the service.
        publish("OFF", retain=True)
        found.expect("cudavision/door/problem", b"switched off")
        self.assertEqual(0, service.stop())
        service = self.service(camera(broker.port))
        wait_for("off again", lambda: service.metrics()["camera_enabled", "door"] == 0)
        found.expect("cudavision/door/status", b"offline")

    def test_last_will(self):
        broker = self.broker()
        found, service = self.subscriber(broker), self.service(camera(broker.port))
        found.expect("cudavision/status", b"online")
        service.process.kill()
        found.expect("cudavision/status", b"offline")

    def test_broker_lost_and_back(self):
        broker = self.broker()
        service = self.service(camera(broker.port))
        service.wait_metric("mqtt_connected")
        service.wait_metric("camera_events_total", "door", "begin")
        broker.kill()
        wait_for("the loss is noticed", lambda: service.metrics()[("mqtt_connected",)] == 0)
        began = service.metrics()["camera_events_total", "door", "begin"]
        wait_for("motion without a broker", lambda: service.metrics()["camera_events_total", "door", "begin"] > began)
        began = service.metrics()["camera_events_total", "door", "begin"]
        broker.start()
        found = self.subscriber(broker)
        for topic in ("status", "door/status", "door/motion", "door/objects", "door/zone/left_side", "door/zone/right",
                      "door/snapshot"):
            wait_for(f"{topic} again", lambda: f"cudavision/{topic}" in found.last)
        self.check_discovery(found)
        self.assertEqual(b"online", found.last["cudavision/status"])
        # Nothing old arrived later: the states agree with the metrics.
        service.wait_metric("camera_events_total", "door", "begin", least=began + 1)
        found.expect("cudavision/door/motion", b"ON")
        wait_for("motion ends", lambda: not service.metrics()["camera_motion", "door"])
        found.expect("cudavision/door/motion", b"OFF")

    def test_events_wait_for_the_broker(self):
        broker = self.broker()
        broker.kill()
        service = self.service(camera(broker.port))
        service.wait_metric("camera_events_total", "door", "end")
        broker.start()
        found = self.subscriber(broker)
        wait_for("the first event", lambda: any(event["event"] == "begin" for event in found.events("door")))
        wait_for("it does not say that there is no broker", lambda: "there is no broker" in service.log)

    def test_what_left_the_configuration_is_removed(self):
        broker = self.broker()
        found, service = self.subscriber(broker), self.service(camera(broker.port))
        topic = "homeassistant/binary_sensor/cudavision/door_zone_right/config"
        wait_for("the zone", lambda: found.last.get(topic))
        self.assertEqual(0, service.stop())
        self.service(camera(broker.port, "left side: 0.0,0.0 0.75,0.0 0.75,1.0 0.0,1.0"))
        found.expect(topic, b"")
        wait_for("the other zone", lambda: found.last.get(topic.replace("right", "left_side")))

    def test_password_and_tls(self):
        passwords, key, certificate = (self.folder / name for name in ("passwords", "key.pem", "certificate.pem"))
        subprocess.run([shutil.which("mosquitto_passwd"), "-b", "-c", passwords, "me", SECRET], check=True,
                       capture_output=True)
        if not shutil.which("openssl"):
            self.skipTest("no openssl")
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1 -addext " \
            f"subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
        subprocess.run(make.split(), check=True, capture_output=True)
        for file in (passwords, key, certificate):
            os.chmod(file, 0o644)
        broker = self.broker(f"password_file {passwords}", f"keyfile {key}", f"certfile {certificate}")
        more = f'username = "me"\npassword = "${{MQTT_PASSWORD}}"\ntls = true\nca_file = "{certificate}"'
        service = self.service(camera(broker.port, more=more), {"MQTT_PASSWORD": SECRET})
        service.wait_metric("mqtt_connected")
        self.assertEqual(0, service.stop())
        service = self.service(camera(broker.port, more=more), {"MQTT_PASSWORD": "wrong"})
        wait_for("it is refused", lambda: "the broker refused the connection" in service.log)
        self.assertEqual(0, service.metrics()[("mqtt_connected",)])


if __name__ == "__main__":
    unittest.main()
