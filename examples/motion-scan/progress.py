# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shows how far a scan is: a bar in a terminal, otherwise a line every ten seconds."""
import sys
import time

EVERY = 10  # seconds between lines


class Progress:
    """Counts finished clips, for a `with` block. `total` are those of this run."""

    def __init__(self, total):
        self.total, self.done, self.failed, self.told = total, 0, 0, 0
        self.began = self.said = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
                self.bar = tqdm(total=total, unit="clip", smoothing=0.05, dynamic_ncols=True)
            except ImportError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()
        elif self.done > self.told:
            self.line()

    def say(self, text):
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def line(self):
        seconds = time.monotonic() - self.began
        failed = f", {self.failed} failed" if self.failed else ""
        left = (self.total - self.done) * seconds / self.done
        about = f", about {left:.0f} s left" if left else ""
        self.say(f"  {self.done} of {self.total} clips{failed}, {self.done / seconds:.2f} clips/s{about}")
        self.said, self.told = time.monotonic(), self.done

    def add(self, clip, result):
        self.done += 1
        if result["status"] != "ok":
            self.failed += 1
            self.say(f"{clip.name}: {result['error']}")
        if self.bar is not None:
            self.bar.set_postfix(failed=self.failed, refresh=False)
            self.bar.update()
        elif time.monotonic() - self.said >= EVERY:
            self.line()
