# SPDX-License-Identifier: LGPL-2.1-or-later
"""Target: the configuration of motion-alarm-service. Any file becomes a Config, or a Failure with one sentence."""
import os
import re

import common
import config

FILES = ("examples/motion-alarm-service/config.py",)


def one_input(data):
    with open(os.memfd_create("cameras"), "w+b") as stream:
        stream.write(data)
        stream.flush()
        try:
            loaded = config.load(f"/proc/self/fd/{stream.fileno()}")
        except common.Failure as failure:
            assert str(failure), "a failure without a sentence"
            return
    assert loaded.cameras
    topics = set()
    for camera in loaded.cameras:
        assert re.fullmatch("[A-Za-z0-9_-]*", camera.key), camera.key
        assert isinstance(camera.uri, str) and isinstance(camera.title, str) and isinstance(camera.wall, bool)
        assert isinstance(camera.source, dict) and isinstance(camera.cudadiff, dict)
        for zone in camera.zones:
            topic = f"{camera.key}/{config.slug(zone)}"
            assert topic not in topics, f"two zones have the topic {topic}"
            topics.add(topic)
            assert re.fullmatch("[A-Za-z0-9_-]*", config.identifier(zone)), zone
    for part, fields in (("mqtt", {"port": (1, 65535)}), ("metrics", {"port": (1, 65535)}),
                         ("wall", {"width": (16, 16384), "columns": (0, 63)})):
        for field, (least, most) in fields.items():
            assert getattr(loaded, part) is None or least <= getattr(getattr(loaded, part), field) <= most
    if loaded.mqtt:
        assert not re.search(r"[+#\0]|^/|/$", loaded.mqtt.topic), loaded.mqtt.topic
