# SPDX-License-Identifier: LGPL-2.1-or-later
"""Topics and their payloads, as pure functions of the state of a camera. The keys of Home Assistant's discovery follow
https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery (one message for each entity, which every version from
2023.7 on reads)."""

import json

from config import CONDITIONS, identifier, slug

WITHOUT_FRAMES = "connection", "enabled", "problem", "snapshot"
LONGEST = 255  # maximum number of characters of a state in Home Assistant


def states(topic: str, camera) -> dict[str, str]:
    """The retained topics of a camera with their current payloads, except the snapshot."""
    base = f"{topic}/{camera.name}"
    found = {
        f"{base}/status": "online" if camera.up else "offline",
        f"{base}/enabled": "ON" if camera.enabled else "OFF",
        f"{base}/problem": camera.trouble[:LONGEST] or "none",
        f"{base}/motion": "ON" if camera.motion else "OFF",
        f"{base}/objects": str(camera.objects),
    }
    for zone in camera.settings.zones:
        found[f"{base}/zone/{slug(zone)}"] = "ON" if camera.occupied(zone) else "OFF"
    for condition in CONDITIONS if camera.settings.watch else ():
        found[f"{base}/watch/{condition}"] = "ON" if condition in camera.conditions else "OFF"
    return found


def command_topic(topic: str, camera: str) -> str:
    """The topic whose payload, ON or OFF, switches a camera. camera: its name, or + for all."""
    return f"{topic}/{camera}/enabled/set"


def entities(topic: str, camera):
    """Yields the entities of a camera: component, id within the camera, and the keys that differ."""
    base = f"{topic}/{camera.name}"
    yield "binary_sensor", "motion", {"name": "Motion", "device_class": "motion", "state_topic": f"{base}/motion"}
    for zone in camera.settings.zones:
        yield "binary_sensor", f"zone_{slug(zone)}", {
            "name": f"Zone {zone}",
            "device_class": "occupancy",
            "state_topic": f"{base}/zone/{slug(zone)}",
        }
    for condition in CONDITIONS if camera.settings.watch else ():
        yield "binary_sensor", f"watch_{condition}", {
            "name": f"Picture {condition}",
            "device_class": "problem",
            "state_topic": f"{base}/watch/{condition}",
        }
    yield "sensor", "objects", {
        "name": "Objects",
        "state_class": "measurement",
        "unit_of_measurement": "objects",
        "icon": "mdi:walk",
        "state_topic": f"{base}/objects",
    }
    yield "image", "snapshot", {"name": "Snapshot", "content_type": "image/jpeg", "image_topic": f"{base}/snapshot"}
    yield "sensor", "problem", {
        "name": "Problem",
        "icon": "mdi:camera-off",
        "entity_category": "diagnostic",
        "state_topic": f"{base}/problem",
    }
    yield "switch", "enabled", {
        "name": "Enabled",
        "icon": "mdi:cctv",
        "state_topic": f"{base}/enabled",
        "command_topic": command_topic(topic, camera.name),
        "retain": True,
    }
    yield "binary_sensor", "connection", {
        "name": "Connection",
        "device_class": "connectivity",
        "entity_category": "diagnostic",
        "state_topic": f"{base}/status",
        "payload_on": "online",
        "payload_off": "offline",
    }


def discovery(prefix: str, topic: str, cameras) -> dict[str, str]:
    """Home Assistant's discovery: topic → JSON. An entity is available while the service runs and frames arrive from
    the camera. The entities in WITHOUT_FRAMES do not need frames."""
    node, messages = identifier(topic), {}
    for camera in cameras:
        device = {
            "identifiers": [f"{node}_{camera.name}"],
            "name": camera.settings.title,
            "manufacturer": "cudavision",
            "model": "motion-alarm-service",
        }
        for component, entity, keys in entities(topic, camera):
            available = [f"{topic}/status"] + (
                [f"{topic}/{camera.name}/status"] if entity not in WITHOUT_FRAMES else []
            )
            payload = {
                "unique_id": f"{node}_{camera.name}_{entity}",
                **keys,
                "device": device,
                "origin": {"name": "cudavision motion-alarm-service"},
                "availability": [
                    {"topic": each, "payload_available": "online", "payload_not_available": "offline"}
                    for each in available
                ],
                "availability_mode": "all",
            }
            messages[f"{prefix}/{component}/{node}/{camera.name}_{entity}/config"] = json.dumps(payload)
    return messages
