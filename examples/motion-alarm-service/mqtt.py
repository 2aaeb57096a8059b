# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishes to an MQTT broker with paho-mqtt, 1.6 or 2.

States (retained) and events (not retained) are sent differently:
- States have QoS 0, and all of them are published again after each connection. With QoS 1, paho would later repeat
  messages that were in flight when the connection broke, so old states would follow the current ones.
- Events have QoS 1. Up to 1000 of them wait while there is no connection; more are dropped.
A separate thread makes the snapshots and sends them one after the other. A slow connection causes fewer snapshots, not
later ones."""

import json
import logging
import threading

import discovery
from common import Failure
from config import identifier
from snapshot import Snapshots

try:
    import paho.mqtt.client as paho
except ImportError:
    paho = None

log = logging.getLogger("motion-alarm")
LAST = 2  # seconds for each of the three things that stop() waits for


class Publisher:
    def __init__(self, settings, encoder):
        if paho is None:
            raise Failure("[mqtt] needs python3-paho-mqtt, which is not installed")
        self.settings, self.encoder = settings, encoder
        self.commands = {}  # topic → the camera that it switches
        self.retained = {}  # topic → payload: the states, the snapshots and the discovery
        self.lock = threading.RLock()  # keeps the order in which states are published
        self.connected = self.stopping = self.full = False
        self.snapshots = Snapshots(lambda sample: self.encoder.jpeg_of(sample), self.send_snapshot)
        version = (paho.CallbackAPIVersion.VERSION2,) if hasattr(paho, "CallbackAPIVersion") else ()
        # No other service may have this id, because a broker disconnects one of two clients with equal ids. The id
        # never changes. A broker that has not yet noticed that the old connection is broken therefore sends its last
        # will before it accepts the new one, and not minutes later.
        self.client = paho.Client(*version, client_id=f"{identifier(settings.topic)}-motion-alarm")
        self.client.on_connect, self.client.on_disconnect, self.client.on_message = (
            self.on_connect,
            self.on_disconnect,
            self.on_message,
        )
        self.client.on_connect_fail = lambda *_: log.warning(
            "mqtt: there is no broker at %s:%d", settings.host, settings.port
        )
        self.client.will_set(self.topic("status"), "offline", qos=1, retain=True)
        self.client.reconnect_delay_set(1, 30)
        self.client.max_queued_messages_set(1000)
        if settings.username:
            self.client.username_pw_set(settings.username, settings.password)
        if settings.tls:
            try:
                self.client.tls_set(settings.ca_file or None)
            except OSError as error:
                why = error.strerror or "it is not a certificate"
                raise Failure(f"cannot read {settings.ca_file}: {why}") from error

    def topic(self, *names) -> str:
        return "/".join([self.settings.topic, *names])

    def start(self, cameras):
        self.commands = {discovery.command_topic(self.settings.topic, camera.name): camera for camera in cameras}
        self.put(self.topic("status"), "online")
        if self.settings.discovery:
            for topic, payload in discovery.discovery(self.settings.discovery, self.settings.topic, cameras).items():
                self.put(topic, payload)
        for camera in cameras:
            self.state(camera)
        self.snapshots.start()
        self.client.connect_async(self.settings.host, self.settings.port, keepalive=30)
        self.client.loop_start()

    def stop(self):
        """Sends the snapshot in progress and the last message, `offline`. Waits at most six seconds, even if messages
        are lost."""
        self.stopping = True
        self.snapshots.stop()
        self.encoder.stopping.set()
        if self.snapshots.is_alive():
            self.snapshots.join(LAST)
        with self.lock:
            self.retained[self.topic("status")] = "offline"
            last = self.client.publish(self.topic("status"), "offline", qos=1, retain=True)
        if self.connected:
            try:
                last.wait_for_publish(LAST)
            except (RuntimeError, ValueError):  # the connection just broke
                pass
        self.client.disconnect()
        ends = threading.Thread(target=self.client.loop_stop, daemon=True)  # loop_stop() may wait for a connection
        ends.start()
        ends.join(LAST)

    def put(self, topic, payload):
        """Publishes a state if it is new. Returns paho's result, or None."""
        with self.lock:
            if self.retained.get(topic) == payload:
                return None
            self.retained[topic] = payload
            return self.client.publish(topic, payload, qos=0, retain=True)

    def state(self, camera):
        with self.lock:
            for topic, payload in discovery.states(self.settings.topic, camera).items():
                self.put(topic, payload)

    def event(self, camera, line):
        """Publishes an event, and a state: the last change of the view."""
        if line["event"] in ("scene", "moved"):
            self.put(self.topic(camera.name, "view"), json.dumps(line))
        full = (
            self.client.publish(self.topic(camera.name, "event"), json.dumps(line), qos=1).rc
            == paho.MQTT_ERR_QUEUE_SIZE
        )
        if full and not self.full:
            log.warning("mqtt: events are dropped, because 1000 of them wait for the broker")
        self.full = full

    def clip(self, camera, line):
        """Publishes an event, and a state: the last clip."""
        self.event(camera, line)
        self.put(self.topic(camera.name, "clip"), json.dumps(line))

    def snapshot(self, camera, sample):
        self.snapshots.put(camera, sample)

    def send_snapshot(self, camera, jpeg):
        """Publishes a snapshot, and waits until it is written to the connection, if there is one."""
        sent = self.put(self.topic(camera.name, "snapshot"), jpeg)
        try:
            while sent and self.connected and not self.stopping and not sent.is_published():
                sent.wait_for_publish(0.1)
        except (RuntimeError, ValueError):  # the connection just broke; the next one gets all states
            pass

    def on_connect(self, client, _, flags, reason, *__):
        if reason != 0:  # a number, or in paho 2 an object that can be compared with one
            log.error(
                "mqtt: the broker refused the connection: %s",
                reason if hasattr(reason, "is_failure") else paho.connack_string(reason),
            )
            return
        log.info("mqtt: connected to %s:%d", self.settings.host, self.settings.port)
        self.connected = True
        client.subscribe(discovery.command_topic(self.settings.topic, "+"), qos=1)
        if self.settings.discovery:
            client.subscribe(f"{self.settings.discovery}/+/{identifier(self.settings.topic)}/+/config")
        with self.lock:
            for topic, payload in self.retained.items():
                client.publish(topic, payload, qos=0, retain=True)

    def on_disconnect(self, *_):
        if self.connected and not self.stopping:
            log.warning("mqtt: disconnected")
        self.connected = False

    def on_message(self, client, _, message):
        """Switches a camera. Removes the discovery of cameras and zones that are no longer in the configuration."""
        if message.topic.endswith("/enabled/set"):
            self.command(message.topic, message.payload)
        elif message.retain and message.payload and message.topic not in self.retained:
            client.publish(message.topic, b"", qos=0, retain=True)

    def command(self, topic, payload):
        camera, on = self.commands.get(topic), {b"ON": True, b"OFF": False}.get(payload)
        if camera and on is not None:
            camera.switch(on)
        elif payload:  # an empty one only removes a retained command
            log.warning("mqtt: %s: %s", topic, "the payload must be ON or OFF" if camera else "there is no such camera")
