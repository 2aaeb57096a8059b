# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pull points of a camera: each client has a queue of motion states, which it reads at any time.

Everything is limited: the number of pull points, the length of a queue, the time of a wait, and the lifetime of an
unused pull point. set() never waits for a client."""

import collections
import datetime
import secrets
import threading
import time

MOST = 16  # maximum number of pull points of a camera
QUEUE = 100  # maximum number of messages of a pull point; a new one replaces the oldest
LIFE = (10.0, 3600.0)  # the shortest and the longest lifetime that a client can request, in seconds
LONGEST = 60.0  # maximum number of seconds that a client waits for a message

Message = collections.namedtuple("Message", "operation motion time")  # Initialized or Changed; bool; UTC


class Gone(Exception):
    """There is no such pull point, or it has ended."""


class Full(Exception):
    """The maximum number of pull points is reached."""


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class PullPoint:
    def __init__(self, life):
        self.queue = collections.deque(maxlen=QUEUE)
        self.turn = 0  # number of the last pull: each pull ends the previous one
        self.live(life)

    def live(self, seconds):
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until it ends."""
        return self.end - time.monotonic()


class PullPoints:

    def __init__(self):
        self.changed = threading.Condition()
        self.points, self.motion, self.since = {}, False, now()

    def set(self, motion: bool):
        """Tells each pull point about motion, if it has changed."""
        with self.changed:
            if motion != self.motion:
                self.motion, self.since = motion, now()
                self._forget()
                for point in self.points.values():
                    point.queue.append(Message("Changed", motion, self.since))
                self.changed.notify_all()

    def create(self, life: float) -> tuple[str, float]:
        """Makes a pull point, which begins with the current state. Returns its key and its lifetime in seconds. Raises
        Full."""
        with self.changed:
            self._forget()
            if len(self.points) >= MOST:
                raise Full
            key, point = secrets.token_hex(8), PullPoint(min(max(life, LIFE[0]), LIFE[1]))
            self.points[key] = point
            point.queue.append(Message("Initialized", self.motion, self.since))
            return key, point.left

    def renew(self, key: str, life: float) -> float:
        """Returns the new lifetime of the pull point in seconds. Raises Gone, as the methods below do."""
        with self.changed:
            point = self._find(key)
            point.live(min(max(life, LIFE[0]), LIFE[1]))
            return point.left

    def synchronize(self, key: str):
        """Puts the current state into the queue of the pull point again."""
        with self.changed:
            self._find(key).queue.append(Message("Initialized", self.motion, self.since))
            self.changed.notify_all()

    def remove(self, key: str):
        with self.changed:
            self._find(key)
            del self.points[key]
            self.changed.notify_all()

    def pull(self, key: str, wait: float, limit: int) -> tuple[list[Message], float]:
        """Waits for a message for `wait` seconds (at most LONGEST), and takes up to `limit` messages, the oldest first.
        Returns them, and the lifetime of the pull point in seconds. Another pull of the same pull point ends this one,
        because a client that asks again no longer expects the earlier answer."""
        wait = min(max(wait, 0), LONGEST)
        with self.changed:
            point = self._find(key)
            point.turn = turn = point.turn + 1
            point.live(max(point.left, wait + LONGEST))  # a client that pulls is alive
            self.changed.notify_all()
            self.changed.wait_for(
                lambda: point.queue or point.turn != turn or self.points.get(key) is not point, wait
            )
            if self.points.get(key) is not point:
                raise Gone
            count = min(limit, len(point.queue)) if point.turn == turn else 0
            return [point.queue.popleft() for _ in range(count)], point.left

    def _find(self, key) -> PullPoint:
        self._forget()
        if key not in self.points:
            raise Gone
        return self.points[key]

    def _forget(self):
        self.points = {key: point for key, point in self.points.items() if point.left > 0}
