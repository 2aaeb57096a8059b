# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bodies of ONVIF messages: reads requests, and makes answers from onvif_answers.xml."""

import copy
import datetime
import pathlib
import re

from lxml import etree

NAMES = {
    "trt": "http://www.onvif.org/ver10/media/wsdl",
    "tev": "http://www.onvif.org/ver10/events/wsdl",
    "ter": "http://www.onvif.org/ver10/error",
    "wsnt": "http://docs.oasis-open.org/wsn/b-2",
    "wsrf": "http://docs.oasis-open.org/wsrf/rw-2",
}
TOPIC = "RuleEngine/CellMotionDetector/Motion"
DURATION = re.compile(
    r"P(?:([0-9]{1,6})D)?(?:T(?=[0-9])(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,6}(?:\.[0-9]{1,9})?)S)?)?"
)
ANSWERS = {
    each.tag: each
    for each in etree.parse(pathlib.Path(__file__).with_name("onvif_answers.xml"),
                            etree.XMLParser(remove_blank_text=True, remove_comments=True)).getroot()
}


def tag(prefix: str, name: str) -> str:
    return f"{{{NAMES[prefix]}}}{name}"


def fill(name: str, values):
    """The element with this tag, with values in place of the words in braces."""
    element = copy.deepcopy(ANSWERS[name])
    for each in element.iter():
        each.text = each.text and each.text.format_map(values)
        for key, value in each.items():
            each.set(key, value.format_map(values))
    return element


def stamp(time) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def times(now, left: float) -> dict[str, str]:
    """The current time, and the time in `left` seconds."""
    return {"time": stamp(now), "end": stamp(now + datetime.timedelta(seconds=left))}


def seconds_of(text: str, now) -> float:
    """The seconds from `now` to the end of a duration (PT60S) or to a point in time. Raises ValueError."""
    if (match := DURATION.fullmatch(text)) and any(match.groups()):
        return sum(float(part or 0) * unit for part, unit in zip(match.groups(), (86400, 3600, 60, 1)))
    end = datetime.datetime.fromisoformat(text)
    return ((end if end.tzinfo else end.replace(tzinfo=datetime.timezone.utc)) - now).total_seconds()


def text_of(request, prefix: str, name: str) -> str:
    """The text of a child of a request, or an empty text."""
    return (request.findtext(tag(prefix, name)) or "").strip()


def wants_motion(request) -> bool:
    """Whether the filter of a subscription includes motion. Prefixes are ignored, because each client has its own
    prefixes and there is only one topic."""
    found = request.findall(".//{*}TopicExpression")
    places = [part.strip() for each in found for part in (each.text or "").split("|")]
    for place in places:
        below, plain = place.endswith("//."), re.sub(r"[^/:]*:", "", place.removesuffix("//."))
        if plain == TOPIC or (below and f"{TOPIC}/".startswith(f"{plain}/")):
            return True
    return not places
