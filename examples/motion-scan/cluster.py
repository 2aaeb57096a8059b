# SPDX-License-Identifier: LGPL-2.1-or-later
"""Distributes clips to the workers of Ray, on this machine or on a cluster."""
import ast
import collections
import dataclasses
import math
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import tempfile

import child
import common

MOST_CLIPS = 16  # maximum number of clips at a time in a process with a GPU
LOSSES = 5  # maximum number of workers lost with the same clip
OPEN_FAILURES = 3  # maximum number of consecutive workers that are lost, crash or time out before they are open
CONNECT = 10  # seconds
STORE = 80 << 20  # size of Ray's shared memory in bytes; results are small
HERE = pathlib.Path(__file__).resolve().parent


def files_of(*entries):
    """These files, and the files of the modules here and in the parent folder that they import, directly or not. All
    other modules must be installed where they run."""
    found, waiting = set(), list(entries)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_bytes(), file)):
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import)
                     else [getattr(node, "module", None)])
            for name in names:
                waiting += [path for path in (HERE / f"{name}.py", HERE.parent / f"{name}.py") if path.is_file()][:1]
    return sorted(found)


CODE = files_of(HERE / "child.py", child.PROGRAM)  # the files that other machines need


def load_ray(local):
    """Imports Ray, which then reads its environment. On a single machine, its servers listen only on 127.0.0.1, and
    require a secret."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if local:
        os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_AUTH_MODE="token",
                          RAY_AUTH_TOKEN=secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise common.Failure(f"{error}: install examples/motion-scan/requirements.txt, see README.md there") from error
    return ray


def check_address(address):
    """Raises a Failure if nobody listens at HOST:PORT. Ray would try for many minutes."""
    match = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if match:
        try:
            socket.create_connection((match[1], int(match[2])), timeout=CONNECT).close()
        except (OSError, OverflowError) as error:
            raise common.Failure(
                f"cannot reach Ray at {address}: {getattr(error, 'strerror', None) or error}") from error
    elif address != "auto":
        raise common.Failure(f"--address={address} is neither HOST:PORT nor auto")


@dataclasses.dataclass(eq=False)
class Worker:
    """A Ray actor, see child.Worker. It accepts clips once it is open."""
    actor: object
    opening: object  # the result of the trial; None once it is open


@dataclasses.dataclass(eq=False)
class Job:
    clip: object
    request: dict
    worker: Worker = None  # the worker that has it now
    attempts: int = 0
    crashes: int = 0
    losses: int = 0  # number of workers lost with it

    def again(self, result, gone, retries):
        """Whether to retry after a result. `gone`: its worker was lost, which the clip has probably not caused."""
        if result["status"] != "crashed":
            return False
        self.losses += gone
        self.crashes += not gone
        return self.losses <= LOSSES and self.crashes <= max(1, retries)


class Cluster:
    """A connection to Ray, for a `with` block, with `workers` processes that process `clips` clips at a time each
    (None: the defaults, see README.md). `trial` is a request whose result shows whether a worker can work."""

    def __init__(self, address, workers, clips, use_gpus, trial):
        self.address, self.folder, self.trial, self.workers = address, None, trial, []
        self.waiting = collections.deque()  # jobs
        if address:
            check_address(address)
        self.ray = load_ray(not address)
        try:
            self.connect(workers)
            found = self.ray.cluster_resources()
            cores, gpus = max(1, int(found.get("CPU", 1))), int(found.get("GPU", 0)) if use_gpus else 0
            self.wanted = workers or gpus or cores
            self.share = 1 / math.ceil(self.wanted / gpus) if gpus else 0
            self.clips = clips or (max(1, min(MOST_CLIPS, cores // self.wanted)) if gpus else 1)
        except BaseException:
            self.close()
            raise

    def connect(self, workers):
        self.folder = tempfile.mkdtemp(prefix="motion-scan-", dir="/tmp")  # Ray's sockets need a short path
        handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
        quiet = {"logging_level": "error", "log_to_driver": False}
        try:
            if self.address:
                for file in CODE:
                    shutil.copy(file, self.folder)
                plugins = {key: value for key, value in os.environ.items() if key.startswith("GST_PLUGIN_PATH")}
                self.ray.init(address=self.address,
                              runtime_env={"working_dir": self.folder, "env_vars": plugins}, **quiet)
            else:
                cores = max(workers or 0, len(os.sched_getaffinity(0)))  # the cores that this process may use
                self.ray.init(num_cpus=cores, include_dashboard=False, object_store_memory=STORE, _temp_dir=self.folder,
                              _node_ip_address="127.0.0.1", **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise common.Failure(f"cannot start Ray: {str(error).splitlines()[0]}") from error
        signal.signal(signal.SIGTERM, handler)

    def close(self):
        self.ray.shutdown()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, threads):
        """Adds a worker, which waits for a core (and its share of a GPU) if none is free. With one thread, neither
        decoders nor elements divide a frame among cores, because each core has its own clips."""
        environment = {"OPENCV_FOR_THREADS_NUM": "1"} if threads == 1 else {}
        actor = self.ray.remote(child.Worker).options(num_cpus=1, num_gpus=self.share,
                                                      max_concurrency=self.clips).remote(environment)
        self.workers.append(Worker(actor, actor.analyse.remote({**self.trial, "threads": threads})))

    def drop(self, worker):
        if worker in self.workers:
            self.workers.remove(worker)
            self.ray.kill(worker.actor)

    def outcome(self, reference):
        """The result of a call to a worker, and whether the worker is gone: it was killed, or its machine was lost."""
        try:
            return self.ray.get(reference), False
        except self.ray.exceptions.RayError as error:
            actor = isinstance(error, self.ray.exceptions.RayActorError)
            return ({"status": "crashed",
                     "error": "the worker was killed" if actor else str(error).strip().splitlines()[-1]}, True)

    def check_open(self, worker, failures):
        """Reads the result of a trial. Raises a Failure if the plugin, the settings or the machine is wrong."""
        result, _ = self.outcome(worker.opening)
        if result["status"] == "ok":
            worker.opening = None
        elif result["status"] != "setup" and failures < OPEN_FAILURES:
            self.drop(worker)
        else:
            raise common.Failure(result["error"] + (" (on one of the machines)" if self.address else ""))

    def add(self, clip, request):
        """Adds a job while results() runs: it is the next one."""
        self.waiting.appendleft(Job(clip, request))

    def results(self, jobs, retries, stopped):
        """Works on clips. Takes pairs of a clip and its request (see analyse.py), and yields (clip, result) as they
        finish. After a crash of a process, each of its clips is retried in a separate process, after the waiting clips,
        once or up to `retries` times. After the loss of a worker, it is retried up to LOSSES times. The result has the
        number of `attempts`. Ends early once stopped() is true."""
        self.waiting, running = collections.deque(Job(clip, request) for clip, request in jobs), {}
        waiting = self.waiting
        wanted = min(self.wanted, len(waiting))
        threads = 1 if len(waiting) >= self.wanted * self.clips else 0
        failures = 0
        try:
            while (waiting or running) and not stopped():
                while len(self.workers) < wanted:
                    self.open(threads)
                self.hand_out(waiting, running, threads)
                opening = {worker.opening: worker for worker in self.workers if worker.opening}
                for reference in self.ray.wait([*running, *opening], timeout=0.5)[0]:
                    if reference in opening:
                        self.check_open(opening[reference], failures)
                        failures = failures + 1 if opening[reference].opening else 0
                        continue
                    job = running.pop(reference)
                    result, gone = self.outcome(reference)
                    if gone:
                        self.drop(job.worker)
                    if job.again(result, gone, retries):
                        waiting.append(job)
                    else:
                        yield job.clip, {**result, "attempts": job.attempts}
        finally:
            for worker in list(self.workers):
                self.drop(worker)

    def hand_out(self, waiting, running, threads):
        """Gives waiting clips to open workers, until each has its maximum. `running`: call → job."""
        for worker in (worker for worker in self.workers if not worker.opening):
            free = self.clips - sum(job.worker is worker for job in running.values())
            for _ in range(min(free, len(waiting))):
                job = waiting.popleft()
                job.worker, alone, job.attempts = worker, job.attempts > 0, job.attempts + 1
                running[worker.actor.analyse.remote({**job.request, "threads": threads}, alone=alone)] = job
