# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads clock times from file names, as recorders write them, and finds which files belong to one camera.

Known forms are `2024-01-31_13-05-00.mp4`, with all usual separators between the numbers or none; the same with text
around it; a time whose date is the name of a parent folder (`2024-01-31/13-05-00.mp4`,
`2024/01/31/13.05.00-13.10.00[M].dav`); Frigate's `2024-01-31/13/camera/05.00.mp4`; and seconds or milliseconds since
1970 (`1706706300.mp4`)."""
import contextlib
import datetime
import os
import re
from dataclasses import dataclass

DATE = r"(?<!\d)(?P<year>(?:19|20)\d\d)[-_./]?(?P<month>0[1-9]|1[0-2])[-_./]?(?P<day>0[1-9]|[12]\d|3[01])"
TIME = (r"(?P<hour>[01]\d|2[0-3])[-_.:h]?(?P<minute>[0-5]\d)[-_.:m]?(?P<second>[0-5]\d)"
        r"(?:[.,]?(?P<fraction>\d{3}))?(?P<zone>Z)?(?!\d)")
BOTH = re.compile(rf"{DATE}(?:_| |-|T|\.|_T|--|__| at )?{TIME}", re.I)
ONLY_DATE, ONLY_TIME = re.compile(rf"{DATE}(?!\d)"), re.compile(rf"(?<!\d){TIME}", re.I)
FRIGATE = re.compile(rf"{DATE}/(?P<hour>\d\d)/(?P<camera>[^/]+)/(?P<minute>[0-5]\d)\.(?P<second>[0-5]\d)$")
EPOCH = re.compile(r"(?<!\d)([12]\d{9})(\d{3})?(?!\d)")
ABOVE = 4  # number of parent folders that may contain the date


@dataclass(frozen=True)
class Named:
    """The clock time in the name of a file, without a zone unless the name has one (`Z`), and the `series`: the common
    part of the file names of one camera."""
    clock: datetime.datetime
    series: tuple


def made(numbers, utc=False):
    """The clock time from the groups of a match; None if there is no such time."""
    with contextlib.suppress(ValueError):
        date = [int(numbers[name]) for name in ("year", "month", "day", "hour", "minute", "second")]
        return datetime.datetime(*date, 1000 * int(numbers.get("fraction") or 0),
                                 tzinfo=datetime.timezone.utc if utc or numbers.get("zone") else None)
    return None


def words(text):
    """The words after the clock time in a name that are not numbers, such as the lens of a dashcam (`_0012F`)."""
    return tuple(re.findall(r"(?<![^\W_])(?:\d+(?=[A-Z]{1,2}(?![^\W_])))?([^\W\d_]+)(?![^\W_])",
                            re.sub(r"\[[^]]*\]", "", text)))


def named(path):
    """The Named of a path, or None if it contains no clock time."""
    parts = os.path.abspath(path).split("/")
    stem, above = os.path.splitext(parts[-1])[0], "/".join(parts[-1 - ABOVE:-1])
    if (match := BOTH.search(stem)) and (clock := made(match.groupdict())):
        return Named(clock, ("/".join(parts[:-1]), stem[:match.start()], *words(stem[match.end():])))
    if (match := FRIGATE.search(f"{above}/{stem}")) and (clock := made(match.groupdict(), utc=True)):
        return Named(clock, ("/".join(parts[:-1 - ABOVE]), match["camera"]))
    time = ONLY_TIME.search(stem)
    for date in reversed(list(ONLY_DATE.finditer(above)) if time else []):
        if clock := made({**time.groupdict(), **date.groupdict()}):
            hourless = re.sub(r"(?<!\d)\d\d(?!\d)", "", above[date.end():])
            return Named(clock, ("/".join(parts[:-1 - ABOVE]), above[:date.start()], hourless, stem[:time.start()],
                                 *words(stem[time.end():])))
    if match := EPOCH.search(stem):
        seconds = int(match[1]) + int(match[2] or 0) / 1000
        clock = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        return Named(clock, ("/".join(parts[:-1]), stem[:match.start()], *words(stem[match.end():])))
    return None


def zoned(clock, fold=0):
    """A clock time with a zone; without one, the zone of this machine is used. At the end of summer time, `fold` is 1
    for the second of two equal times."""
    return clock if clock.tzinfo else clock.replace(fold=fold).astimezone()


def natural(path):
    """A key that sorts names naturally: `2.mp4` before `10.mp4`."""
    return [(0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
            for part in re.split(r"(\d+)", os.fsdecode(path)) if part]
