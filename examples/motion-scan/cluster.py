# SPDX-License-Identifier: LGPL-2.1-or-later
"""Spreads clips over the workers of Ray: on this machine, or on a cluster."""
import ast
import collections
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

PENDING = 1000  # clips that are handed to Ray at a time
CONNECT = 10  # seconds
STORE = 80 << 20  # bytes of Ray's shared memory; results are small
GPU_SHARE = 0.25  # of a clip, where there is a GPU
HERE = pathlib.Path(__file__).resolve().parent


def files_of(*entries):
    """These files, and those of the modules here and in the folder above that they import, directly or not. All other modules must
    be installed where they run."""
    found, waiting = set(), list(entries)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_bytes(), file)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
            for name in names:
                waiting += [path for path in (HERE / f"{name}.py", HERE.parent / f"{name}.py") if path.is_file()][:1]
    return sorted(found)


CODE = files_of(HERE / "child.py", child.PROGRAM)  # what other machines need


def load_ray(local):
    """Imports Ray, which reads its environment then. On one machine, its servers listen on 127.0.0.1 only, and want a secret."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if local:
        os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
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
            raise common.Failure(f"cannot reach Ray at {address}: {getattr(error, 'strerror', None) or error}") from error
    elif address != "auto":
        raise common.Failure(f"--address={address} is neither HOST:PORT nor auto")


class Cluster:
    """A connection to Ray, for a `with` block. Each clip takes one core and `gpus` of a GPU (None: GPU_SHARE if there is one)."""

    def __init__(self, address, workers, gpus):
        self.address, self.workers, self.folder = address, workers, None
        if address:
            check_address(address)
        self.ray = load_ray(not address)
        try:
            self.connect()
            found = self.ray.cluster_resources()
            if gpus and not found.get("GPU") and not address:
                raise common.Failure("this machine has no GPU for --gpus-per-clip")
        except BaseException:
            self.close()
            raise
        self.gpus = gpus if gpus is not None else GPU_SHARE if found.get("GPU") else 0
        self.task = self.ray.remote(max_retries=0, num_cpus=1, num_gpus=self.gpus)(child.analyse)

    def connect(self):
        self.folder = tempfile.mkdtemp(prefix="motion-scan-", dir="/tmp")  # short, because Ray's sockets may be in it
        handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
        quiet = {"logging_level": "error", "log_to_driver": False}
        try:
            if self.address:
                for file in CODE:
                    shutil.copy(file, self.folder)
                plugins = {key: value for key, value in os.environ.items() if key.startswith("GST_PLUGIN_PATH")}
                self.ray.init(address=self.address, runtime_env={"working_dir": self.folder, "env_vars": plugins}, **quiet)
            else:
                self.ray.init(num_cpus=self.workers, include_dashboard=False, object_store_memory=STORE, _temp_dir=self.folder,
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

    def outcome(self, reference):
        """The result of a task. A worker that was killed, or a lost machine, is a crash."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            killed = isinstance(error, self.ray.exceptions.WorkerCrashedError)
            return {"status": "crashed", "error": "the worker was killed" if killed else str(error).strip().splitlines()[-1]}

    def results(self, jobs, retries, stopped):
        """Analyses clips. Takes pairs of a clip and its request (see analyse.py), and yields (clip, result) as they finish. A crash
        is repeated up to `retries` times, after the clips that wait; the result says `attempts`. Ends early once stopped() is true.
        """
        waiting, running = collections.deque((clip, request, 1) for clip, request in jobs), {}
        window = self.workers if self.address and self.workers else PENDING
        try:
            while (waiting or running) and not stopped():
                while waiting and len(running) < window:
                    job = waiting.popleft()
                    running[self.task.remote(job[1])] = job
                for reference in self.ray.wait(list(running), timeout=0.5)[0]:
                    clip, request, attempt = running.pop(reference)
                    result = self.outcome(reference)
                    if result["status"] == "crashed" and attempt <= retries:
                        waiting.append((clip, request, attempt + 1))
                    else:
                        yield clip, {**result, "attempts": attempt}
        finally:
            for reference in running:
                self.ray.cancel(reference, force=True)
