# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a list of events for video editors: an EDL (CMX 3600) with the parts of the clip itself in non-drop
timecodes."""
RATE = 25  # frames per second of clips whose rate is unknown


def timecode(frames, rate):
    seconds, rest = divmod(frames, rate)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}:{rest:02}"


def text_of(name, parts, rate=None):
    """The text of the list. `parts` are pairs of begin and end in seconds of the clip `name`, `rate` is its number of
    frames per second. Timecodes count frames, so they run slightly slow if the rate is not a whole number."""
    rate = rate or RATE
    base = max(round(rate), 1)
    name = " ".join(name.encode("ascii", "replace").decode().split())
    lines, place = [f"TITLE: {name[:70]}", "FCM: NON-DROP FRAME"], 0
    for number, (begin, end) in enumerate(parts, 1):
        first = round(begin * rate)
        last = max(round(end * rate), first + 1)
        codes = [timecode(each, base) for each in (first, last, place, place + last - first)]
        lines += ["", f"{number:03}  AX       V     C        {' '.join(codes)}", f"* FROM CLIP NAME: {name}"]
        place += last - first
    return "\n".join(lines) + "\n"
