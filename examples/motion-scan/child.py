# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs analyse.py for one clip and waits for it. This is what a worker of Ray does; nothing here needs Ray or GStreamer."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

GRACE = 5  # seconds after the time-out in which analyse.py reports what it found; then it is killed
PROGRAM = pathlib.Path(__file__).resolve().with_name("analyse.py")
STDERR = 2000  # bytes of stderr whose last line is reported


def last_line(stream):
    """The last line of an open file, or nothing."""
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


def analyse(request):
    """Analyses a clip in a process of its own. Returns the result of analyse.py (see there), or the status `crashed` with an
    error, or `timeout` if the process had to be killed. Adds `seconds`, the time that it took."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen([sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(json.dumps({**request, "parent": os.getpid()}).encode(), request["timeout"] + GRACE)
            except subprocess.TimeoutExpired:
                output = None
            finally:
                if process.poll() is None:
                    process.kill()
        if output is None:
            result = {"status": "timeout",
                      "error": f"the clip did not end within {request['timeout']:g} seconds, and had to be killed"}
        elif process.returncode:
            words = [ended_by(process.returncode), last_line(said)]
            result = {"status": "crashed", "error": ": ".join(filter(None, words))}
        else:
            result = json.loads(output)
    return {**result, "seconds": time.monotonic() - began}
