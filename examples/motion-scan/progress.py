# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shows the progress of a scan: clips, hours of video, speed, time left. In a terminal, this is a bar; elsewhere, it is
a line every ten seconds."""
import sys
import time

EVERY = 10  # seconds between lines


def length_of(seconds):
    """A readable length of time."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


class Progress:
    """Counts finished clips, for a `with` block. `total` is the number of clips in this run."""

    def __init__(self, total):
        self.total, self.done, self.failed, self.told, self.video = total, 0, 0, 0, 0.0
        self.began = self.said = time.monotonic()
        self.ended = self.bar = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
                self.bar = tqdm(total=total, unit="clip", smoothing=0.05, dynamic_ncols=True)
            except ImportError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = time.monotonic()  # Ray takes a while to stop, and analyses nothing meanwhile
        if self.bar is not None:
            self.bar.close()
        elif self.done > self.told:
            self.line()

    def say(self, text):
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def amount(self):
        """The amount of video and the speed, as a text."""
        speed = self.video / max(1e-3, self.seconds())
        return f"{self.video / 3600:.2f} h of video, {speed:.3g} times real time"

    def seconds(self):
        return (self.ended or time.monotonic()) - self.began

    def sum(self):
        return f"{self.done} in {length_of(self.seconds())}: {self.amount()}"

    def line(self):
        failed = f", {self.failed} failed" if self.failed else ""
        left = (self.total - self.done) * self.seconds() / self.done
        about = f", about {length_of(left)} left" if left else ""
        self.say(f"  {self.done} of {self.total} clips{failed}, {self.amount()}{about}")
        self.said, self.told = time.monotonic(), self.done

    def add(self, clip, result):
        self.done += 1
        self.video += result.get("duration") or 0
        if result["status"] != "ok":
            self.failed += 1
            self.say(f"{clip.name}: {result['error']}")
        if self.bar is not None:
            failed = f", {self.failed} failed" if self.failed else ""
            self.bar.set_postfix_str(self.amount() + failed, refresh=False)
            self.bar.update()
        elif time.monotonic() - self.said >= EVERY:
            self.line()
