# SPDX-License-Identifier: LGPL-2.1-or-later
"""The configuration: a TOML file becomes a `Config`. Each class below is a table of the file, and each field is a key
with its default."""

import dataclasses
import os
import re
import string
import tomllib
import typing

from common import Failure

# What cudahistogram watches the picture for.
CONDITIONS = ("dark", "bright", "covered", "defocused", "frozen")
# ${NAME} in the value is replaced from the environment, so that the file needs no passwords.
ENVIRONMENT = {"environment": True}


def between(least, most):
    return {"least": least, "most": most}


@dataclasses.dataclass
class Mqtt:
    host: str = "127.0.0.1"
    port: int = dataclasses.field(default=1883, metadata=between(1, 65535))
    topic: str = "cudavision"  # all topics begin with it; each service needs its own
    username: str = dataclasses.field(default="", metadata=ENVIRONMENT)
    password: str = dataclasses.field(default="", metadata=ENVIRONMENT)
    tls: bool = False
    ca_file: str = ""  # PEM; if empty, the system's authorities
    discovery: str = "homeassistant"  # Home Assistant's discovery prefix; "" publishes no discovery


@dataclasses.dataclass
class Metrics:
    host: str = "127.0.0.1"
    port: int = dataclasses.field(default=9750, metadata=between(1, 65535))


@dataclasses.dataclass
class Wall:
    # A pipeline description that gets video/x-raw, format=I420; empty: the page, or a screen if there is no page.
    sink: str = ""
    width: int = dataclasses.field(default=1280, metadata=between(16, 16384))
    height: int = dataclasses.field(default=720, metadata=between(16, 16384))
    fps: int = dataclasses.field(default=10, metadata=between(1, 240))
    columns: int = dataclasses.field(default=0, metadata=between(0, 63))  # 0: as square as possible
    hold: float = dataclasses.field(
        default=5, metadata=between(0, 1e6)
    )  # how many seconds the last picture of a lost camera stays


@dataclasses.dataclass
class Page:
    host: str = "127.0.0.1"
    port: int = dataclasses.field(default=9752, metadata=between(1, 65535))


@dataclasses.dataclass
class Onvif:
    username: str = dataclasses.field(metadata=ENVIRONMENT)  # the user name for clients
    password: str = dataclasses.field(metadata=ENVIRONMENT)
    host: str = "127.0.0.1"


@dataclasses.dataclass
class Reconnect:
    first: float = dataclasses.field(default=1, metadata=between(0.01, 3600))  # seconds before the first new attempt
    most: float = dataclasses.field(default=60, metadata=between(0.01, 86400))  # maximum seconds between attempts
    timeout: float = dataclasses.field(
        default=10, metadata=between(0.1, 3600)
    )  # a camera without a frame for this number of seconds is lost


@dataclasses.dataclass
class Recording:
    folder: str  # gets a folder for each camera that is recorded
    before: float = dataclasses.field(default=5, metadata=between(0, 60))  # seconds
    after: float = dataclasses.field(default=5, metadata=between(0, 600))  # seconds after the last motion or visit
    # Maximum length of a clip in seconds; a longer motion is split.
    longest: float = dataclasses.field(default=300, metadata=between(5, 86400))
    size: float = dataclasses.field(default=10, metadata=between(0, 1e6))  # GiB for each camera; 0: no limit
    days: float = dataclasses.field(default=30, metadata=between(0, 36500))  # how long a clip is kept; 0: forever


@dataclasses.dataclass
class Camera:
    uri: str = dataclasses.field(metadata=ENVIRONMENT)  # as for motion_alarm.py: a URI, /dev/video0, a file, `test`
    title: str = ""  # the displayed name; topics and labels use the key of the table
    wall: bool = True  # whether it has a place on the wall
    # Whether motion is recorded as in [recording], or the names of the zones whose visits are recorded.
    recording: bool | list = False
    watch: bool = False  # whether the picture is watched for CONDITIONS
    # At least this many frames per second of a live camera are analysed, if it sends as many; 0: all. See sampling.py.
    fps: float = dataclasses.field(default=10, metadata=between(0, 240))
    # The port of its ONVIF device; 0: none.
    onvif: int = dataclasses.field(default=0, metadata=between(0, 65535))
    source: dict = dataclasses.field(default_factory=dict)  # properties of the source element, such as rtspsrc
    cudadiff: dict = dataclasses.field(default_factory=dict)  # properties of cudadiff
    cudahistogram: dict = dataclasses.field(default_factory=dict)  # properties of the element that watches
    key: str = ""

    @property
    def zones(self) -> list[str]:
        """The names of the zones, in order."""
        shapes = str(self.cudadiff.get("zones", "")).split(";")
        return list(dict.fromkeys(shape.rpartition(":")[0].strip() for shape in shapes if shape.strip()))

    @property
    def recorded_zones(self) -> list[str]:
        """The names of the zones whose visits are recorded; empty if motion or nothing is recorded."""
        return self.recording if isinstance(self.recording, list) else []


# The optional parts of the service. Each one starts only if its table is present.
PARTS = {"mqtt": Mqtt, "metrics": Metrics, "wall": Wall, "recording": Recording, "page": Page, "onvif": Onvif}


@dataclasses.dataclass
class Config:
    cameras: list[Camera]
    reconnect: Reconnect
    mqtt: Mqtt | None
    metrics: Metrics | None
    wall: Wall | None
    recording: Recording | None
    page: Page | None
    onvif: Onvif | None


def slug(text: str) -> str:
    """The text in characters that MQTT topics and Home Assistant's ids allow."""
    return re.sub("[^A-Za-z0-9_-]", "_", text)


def identifier(topic: str) -> str:
    """A topic, written in the characters that slug() keeps. Different topics give different results: a _ is doubled,
    and any other character becomes _CODE_ with its hexadecimal number."""
    return re.sub("[^A-Za-z0-9-]", lambda match: "__" if match[0] == "_" else f"_{ord(match[0]):x}_", topic)


def expand(text: str, where: str) -> str:
    try:
        return string.Template(text).substitute(os.environ)
    except KeyError as error:
        raise Failure(f"{where} needs the environment variable {error.args[0]}, which is not set") from error
    except ValueError as error:
        raise Failure(f"{where} has a $ that does not begin ${{NAME}}; write $$ for the character itself") from error


def fill(kind, table, where: str, **more):
    """Makes a dataclass from a table of the file. Raises a Failure that names a wrong key or value, but never the value
    itself, which may be a password."""
    if not isinstance(table, dict):
        raise Failure(f"[{where}] must be a table")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in more}
    types = typing.get_type_hints(kind)
    for name in table:
        if name not in fields:
            raise Failure(f"[{where}] has no key {name}; it may have {', '.join(fields)}")
    values = {}
    for name, field in fields.items():
        place, wanted = f"{name} in [{where}]", types[name]
        if name not in table:
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise Failure(f"[{where}] needs the key {name}")
            continue
        value = table[name]
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) not in (typing.get_args(wanted) or (wanted,)) or value == []:
            words = {
                str: "a string",
                int: "a whole number",
                float: "a number",
                bool: "true or false",
                dict: "a table",
                bool | list: "true, false or a list of zones",
            }
            raise Failure(f"{place} must be {words[wanted]}")
        if "least" in field.metadata and not field.metadata["least"] <= value <= field.metadata["most"]:
            raise Failure(f"{place} must be {field.metadata['least']} to {field.metadata['most']}")
        values[name] = expand(value, place) if "environment" in field.metadata else value
    return kind(**values, **more)


def check_topic(topic: str, place: str):
    if not re.fullmatch(r"[^/+#\0]+(/[^/+#\0]+)*", topic):
        raise Failure(f"{place} must be a topic without + and #, and must not begin or end with /")


def check_onvif(cameras: list[Camera], settings: Onvif | None):
    if settings and not (settings.username and settings.password):
        raise Failure("username and password in [onvif] must not be empty")
    ports = {}
    for camera in cameras:
        if not camera.onvif:
            continue
        if not settings:
            raise Failure(f"onvif in [camera.{camera.key}] needs the table [onvif], with username and password")
        if camera.onvif in ports:
            raise Failure(f"onvif in [camera.{camera.key}] and [camera.{ports[camera.onvif]}] is the same port")
        ports[camera.onvif] = camera.key
    if settings and not ports:
        raise Failure("[onvif] applies to no camera: write onvif = PORT in the table of each camera that is a device")


def load(file: str) -> Config:
    """Reads the file. Raises a Failure with one sentence if it contains an error."""
    try:
        with open(file, "rb") as stream:
            document = tomllib.load(stream)
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"{file} is not TOML: {error}") from error
    for name in document:
        if name not in ("camera", "reconnect", *PARTS):
            raise Failure(f"there is no table [{name}]; there are camera.NAME, reconnect, {', '.join(PARTS)}")
    tables = document.get("camera")
    if not isinstance(tables, dict) or not tables:
        raise Failure(f"{file} names no camera: write a table [camera.NAME] for each one")
    cameras = []
    for key, table in tables.items():
        if slug(key) != key:
            raise Failure(
                f"[camera.{key}]: a name of a camera consists of the letters a to z and A to Z, digits, _ and -; "
                "its title may contain other characters"
            )
        camera = fill(Camera, table, f"camera.{key}", key=key)
        camera.title = camera.title or key
        if len({slug(zone) for zone in camera.zones}) < len(camera.zones):
            raise Failure(f"[camera.{key}] has two zones whose names differ only in characters that topics cannot have")
        cameras.append(camera)
    parts = {name: fill(kind, document[name], name) if name in document else None for name, kind in PARTS.items()}
    if parts["mqtt"]:
        check_topic(parts["mqtt"].topic, "topic in [mqtt]")
        if parts["mqtt"].discovery:
            check_topic(parts["mqtt"].discovery, "discovery in [mqtt]")
    if parts["wall"] and not 1 <= sum(camera.wall for camera in cameras) <= 63:
        raise Failure("[wall] shows 1 to 63 cameras; wall = false in the table of a camera omits it")
    if parts["wall"] and not parts["wall"].sink and not parts["page"]:
        parts["wall"].sink = "videoconvert ! autovideosink"
    for camera in cameras:
        if camera.cudahistogram and not camera.watch:
            raise Failure(f"[camera.{camera.key}.cudahistogram] needs watch = true in [camera.{camera.key}]")
        if camera.recording and not parts["recording"]:
            raise Failure(f"recording in [camera.{camera.key}] needs the table [recording], which names the folder")
        for zone in camera.recorded_zones:
            if zone not in camera.zones:
                raise Failure(
                    f"recording in [camera.{camera.key}] names the zone {zone!r}, which zones in "
                    f"[camera.{camera.key}.cudadiff] does not have"
                )
    if parts["recording"] and not any(camera.recording for camera in cameras):
        raise Failure(
            "[recording] applies to no camera: write recording = true in the table of each camera that is recorded"
        )
    check_onvif(cameras, parts["onvif"])
    return Config(cameras, fill(Reconnect, document.get("reconnect", {}), "reconnect"), **parts)
