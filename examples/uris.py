# SPDX-License-Identifier: LGPL-2.1-or-later
"""URIs of inputs: the file that a URI names, its form for GStreamer, and its form to display.

User, password and most values of a query are secrets. They must not appear in names, titles, tables, logs and errors,
so every program here displays a location with shown() or names_of(), and texts of other programs with hide()."""
import collections
import re
import urllib.parse

URI = re.compile(r"[a-z][-+.a-z0-9]*://", re.I)
SECRET = "***"  # replaces hidden parts
# Query parameters that describe the stream of a camera. All others may be secret, whatever their name.
HARMLESS = frozenset("cam camera ch channel codec format fps height id profile quality resolution stream subtype "
                     "track video width".split()
)
# A user may contain any character, so it ends at the last @. An @ after a host such as [::1]:554 belongs to the path.
USER = re.compile(r"(?!\[[^\]/?#@]*\](?::[0-9]*)?(?:[/?#]|$))(?=[^/?#]*[:@])(.*)@([^@]*)", re.S)
# Some recorders expect the password in the path.
IN_PATH = re.compile("[^/?#]*(?:user|pass|pwd|token|key)[^/?#=]*=[^/?#]*", re.I)
# Options for this program: a fragment, which no server gets. A fragment with other names belongs to the URI.
OPTIONS = re.compile("#((?:every|certificate)=[^&#/?@]*(?:&(?:every|certificate)=[^&#/?@]*)*)$")
HOST_AND_PORT = re.compile("[^/?#@]*:[0-9]+[/?#]")


def path_of(location):
    """The path of a location that is a path or the URI of a file on this machine; otherwise None."""
    if match := re.fullmatch("file://(?:localhost)?(/.*)", location, re.I | re.S):
        return urllib.parse.unquote(match[1], errors="surrogateescape")
    return None if URI.match(location) else location


def user_of(location):
    """The `user:password` of a URI, or an empty text. Text with a port before its @ is not a user: this @ belongs to
    the path."""
    match = None if path_of(location) is not None else USER.fullmatch(location.partition("://")[2])
    return match[1] if match and not HOST_AND_PORT.match(match[1]) else ""


def options_of(location):
    """The options at the end of a URI, by name: #every=2&certificate=any."""
    match = OPTIONS.search(location) if path_of(location) is None else None
    return dict(each.split("=", 1) for each in match[1].split("&")) if match else {}


def opened(location):
    """The form of a URI for elements, without options. Characters of the user that would end the host for them are
    escaped, and so is a % that does not begin an escape."""
    if options_of(location):
        location = OPTIONS.sub("", location)
    user = user_of(location)
    if not user:
        return location
    whole = re.sub("%(?![0-9A-Fa-f]{2})", "%25", user)
    return location.replace(user, urllib.parse.quote(whole, safe="%:!$&'()*+,;=", errors="surrogateescape"), 1)


def _shown_parameter(text):
    name, equals, value = text.partition("=")
    if not text or (name.lower() in HARMLESS and re.fullmatch("[-.0-9A-Za-z_]{0,32}", value)):
        return text
    return f"{name}={SECRET}" if equals and re.fullmatch("[A-Za-z][-.0-9A-Za-z_]{0,31}", name) else SECRET


def _parameters(location):
    return re.split("[&;]", location.partition("#")[0].partition("?")[2])


def shown(location):
    """A location to display: a path unchanged; a URI without user, password and fragment, and with *** for the values
    of its query that may be secret. If it is unclear which part is the password, only the scheme is left."""
    if path_of(location) is not None:
        return location
    scheme, _, rest = location.partition("://")
    if user := USER.fullmatch(rest):
        if HOST_AND_PORT.match(rest) or re.search("@.*[?]", user[1], re.S):
            return f"{scheme}://{SECRET}"
        rest = user[2]
    place, query, _ = rest.partition("#")[0].partition("?")
    return f"{scheme}://{IN_PATH.sub(SECRET, place)}{query}{'&'.join(map(_shown_parameter, _parameters(rest)))}"


def name_of(location):
    """The name of a location in errors: the path of a file, or shown()."""
    path = path_of(location)
    return shown(location) if path is None else path


def names_of(locations):
    """shown() of each location, by location. Different locations that look the same are numbered."""
    names, counts = {}, collections.Counter()
    for location in dict.fromkeys(locations):
        name = shown(location)
        counts[name] += 1
        names[location] = name if counts[name] == 1 else f"{name} ({counts[name]})"
    return names


def _secrets_of(location):
    """The texts that hide() removes outside URIs, the longest first. Short texts are excluded, because they are parts
    of other words."""
    found = {user_of(location), user_of(opened(location)), *IN_PATH.findall(location.partition("?")[0])}
    if shown(location).endswith(f"://{SECRET}"):
        found.add(location.partition("://")[2])
    for parameter in _parameters(location):
        if parameter != _shown_parameter(parameter):
            value = parameter.partition("=")[2]
            found |= {parameter, value, urllib.parse.unquote(value)}
    return sorted((each for each in found if len(each) >= 4), key=len, reverse=True)


def hide(text, location=""):
    """A text, such as an element's error, without the secrets of a location and of each URI in it."""
    if path_of(location) is None:
        for uri in (location, opened(location)):
            text = text.replace(uri, shown(location))
        for secret in _secrets_of(location):
            text = text.replace(secret, SECRET)
    return re.sub(rf"{URI.pattern}[^\s\"<>]*", lambda match: shown(match[0]), text, flags=re.I)
