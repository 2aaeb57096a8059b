# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs an analyse.py that processes clip after clip. A worker of Ray runs this code, but nothing here needs Ray or
GStreamer."""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

GRACE = 5  # seconds after the timeout in which analyse.py reports its findings; then it is killed
PROGRAM = pathlib.Path(__file__).resolve().with_name("analyse.py")
STDERR = 2000  # bytes of stderr whose last line is reported


def last_line(stream):
    """The last line of an open file, or an empty text."""
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - STDERR))
    lines = stream.read().decode(errors="backslashreplace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def ended_by(status):
    """How a process ended, in words, from its return code."""
    if status >= 0:
        return f"the process ended with exit status {status}"
    try:
        return f"the process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the process was ended by signal {-status}"


class Process:
    """An analyse.py. It ends with the process that created this object, because its stdin ends then."""

    def __init__(self, environment):
        self.said = tempfile.TemporaryFile("a+b")  # opened for appending, so that it can be emptied in the meantime
        self.lock, self.numbers, self.waiting = threading.Lock(), itertools.count(), {}
        self.process = subprocess.Popen([sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, env={**os.environ, **environment}, start_new_session=True)
        self.crash = None  # the result of all requests once the process has ended
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            result = json.loads(line) if line.endswith(b"\n") else None  # None: it died while writing
            if result:
                with self.lock:
                    waiting = self.waiting.pop(result.pop("number"))
                waiting.set_result(result)
        words = [ended_by(self.process.wait()), last_line(self.said)]
        with self.lock:
            self.crash = {"status": "crashed", "error": ": ".join(filter(None, words))}
            for waiting in self.waiting.values():
                waiting.set_result(dict(self.crash))

    def analyse(self, request):
        """The result of analyse.py; or the status `crashed` with an error; or `timeout` if the process had to be
        killed."""
        number, future = next(self.numbers), concurrent.futures.Future()
        with self.lock:
            if self.crash:
                return dict(self.crash)
            if number and not self.waiting:  # text before request 0 may say why it cannot start
                self.said.truncate(0)
            self.waiting[number] = future
            try:
                self.process.stdin.write(json.dumps({**request, "number": number}).encode() + b"\n")
                self.process.stdin.flush()
            except OSError:  # it has ended; listen() reports how
                pass
        try:
            return future.result(request["timeout"] + GRACE)
        except concurrent.futures.TimeoutError:
            self.process.kill()
            self.process.wait()  # the next clip gets a new process
            return {"status": "timeout",
                    "error": f"the clip did not end within {request['timeout']:g} seconds, and had to be killed"}

    def close(self):
        with contextlib.suppress(OSError):  # it has ended, and did not read the last request
            self.process.stdin.close()


class Worker:
    """Analyses clips, several at a time if several threads call it. `environment`: variables for analyse.py."""

    def __init__(self, environment=None):
        self.environment, self.lock, self.process = environment or {}, threading.Lock(), None

    def shared(self):
        """The process that processes clip after clip, or a new one if it has ended."""
        with self.lock:
            if not self.process or self.process.crash or self.process.process.poll() is not None:
                self.process = Process(self.environment)
            return self.process

    def analyse(self, request, alone=False):
        """The result of a request (see Process), with `seconds`, its duration. `alone`: in a separate process."""
        began = time.monotonic()
        process = Process(self.environment) if alone else self.shared()
        try:
            return {**process.analyse(request), "seconds": time.monotonic() - began}
        finally:
            if alone:
                process.close()
