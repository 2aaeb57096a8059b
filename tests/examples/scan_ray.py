# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs examples/motion-scan on Ray: bad clips, killed workers, and stops. Needs Ray and Arrow; see scan_test.py."""
import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from scan_fixture import EXAMPLES, FOREVER, FRAMES, LIMIT, PROGRAM, Folder, make_clip, make_sound


def table(name):
    import pyarrow.parquet
    return pyarrow.parquet.read_table(name).to_pylist()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Held:
    """A clip at an HTTP server that gives nothing before `go_on` is set. `requests` counts who asks."""

    def __init__(self, path):
        self.go_on, self.requests, data = threading.Event(), 0, pathlib.Path(path).read_bytes()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.requests += 1
                self.go_on.wait()
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(data)))
                handler.end_headers()
                with contextlib.suppress(OSError):  # a killed reader
                    handler.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.uri = f"http://127.0.0.1:{self.server.server_port}/held.avi"

    def close(self):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


def processes():
    """The living processes: number → (parent, state, command line)."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            found[int(path.name)] = int(parent), state, (path / "cmdline").read_bytes()
    return found


def clip_processes(ancestor):
    """The processes below one that analyse a clip: their numbers, with their workers."""
    known = processes()

    def below(process):
        while process in known and process != ancestor:
            process = known[process][0]
        return process == ancestor
    return [(process, parent) for process, (parent, state, line) in known.items()
            if b"analyse.py" in line and state not in "ZX" and below(process)]


class Scan(Folder):
    """The program on Ray."""

    def start(self, *arguments):
        # A session of its own, as a terminal gives one: Ctrl-C goes to all of its processes.
        command = [sys.executable, str(PROGRAM), *arguments, "--workers=2"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        with process:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                print(*process.communicate(timeout=LIMIT), file=sys.stderr)

    def finish(self, process, status):
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.fail("the scan hangs")
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def wait_for(self, scan, condition, text):
        ends = time.monotonic() + LIMIT
        while not (found := condition()):
            if scan.poll() is not None:
                self.fail(f"the scan ended before there was {text}: {scan.communicate()}")
            self.assertLess(time.monotonic(), ends, text)
            time.sleep(0.02)
        return found

    def wait_gone(self, numbers):
        """Waits until processes have ended. They may wait for a parent that asks how."""
        while any(processes().get(number, (0, "Z"))[1] not in "ZX" for number in numbers):
            time.sleep(0.02)

    def finished(self):
        return len(list(self.folder.glob("out/results/*.json")))

    def test_bad_clips_and_a_killed_worker_lose_nothing_else(self):
        os.mkdir("clips")
        make_clip("clips/a.avi")
        good = ["a.avi", 'b "c" ! filesink location=victim.avi', "d\udcff <i>ü.avi", *(f"{number}.avi" for number in range(4))]
        for name in good[1:]:
            shutil.copy("clips/a.avi", os.path.join("clips", name))
        self.touch("clips/broken.avi", "victim")
        make_sound("clips/sound.mkv")
        held = Held("clips/a.avi")
        self.addCleanup(held.close)
        scan = self.start("clips", held.uri, "--out=out", "--retries=1", f"--timeout={FOREVER}")
        # Once all others are finished, the clip that waits is the only one.
        self.wait_for(scan, lambda: self.finished() == 9 and held.requests, "nine results, and the clip that waits")
        ((killed, worker),) = clip_processes(scan.pid)
        os.kill(worker, signal.SIGKILL)
        self.wait_gone([killed])
        held.go_on.set()
        out, err = self.finish(scan, 0)
        self.assertRegex(out, r"clips +10: 8 ok, 2 failed")
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("clips/")]), 2, err)
        # A clip that never ends costs only its own time; the others have their results already.
        os.mkfifo("clips/endless.mkv")
        out, err = self.finish(self.start("clips", held.uri, "--out=out", "--timeout=1"), 0)
        self.assertRegex(out, r"clips +11: 8 ok, 2 failed, 1 timeout")
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("clips/")]), 1, err)
        rows = {row["clip"]: row for row in table("out/clips.parquet")}
        expected = dict.fromkeys((os.fsencode(f"clips/{name}").decode("utf-8", "backslashreplace") for name in good), "ok")
        expected[held.uri] = "ok"
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {**expected, "clips/broken.avi": "failed", "clips/sound.mkv": "failed", "clips/endless.mkv": "timeout"})
        self.assertEqual(sorted(row["attempts"] for row in rows.values()), [1] * 10 + [2])
        self.assertEqual({row["frames"] for row in rows.values() if row["status"] == "ok"}, {FRAMES})
        self.assertIn("no video", rows["clips/sound.mkv"]["error"])
        for name in ("seconds", "events", "objects"):
            found = table(f"out/{name}.parquet")
            self.assertEqual({row["clip"] for row in found}, set(expected))
            self.assertEqual({sum(row["clip"] == clip for row in found) for clip in expected}, {len(found) // len(expected)})
        page = pathlib.Path("out/summary.html").read_text()
        self.assertEqual(page.count("<tr>"), 12)
        self.assertIn("&lt;i&gt;ü.avi", page)
        self.assertNotIn("<i>", page)
        self.assertNotRegex(page, "(src|href)=|@import")
        self.assertEqual(pathlib.Path("victim").read_text(), "x")

    def test_nodes_need_nothing_but_the_plugin(self):
        """A cluster of two nodes that do not see the examples: --address sends what they need."""
        hide = ["unshare", "--map-root-user", "--mount", "bash", "-euc", 'mount -t tmpfs none "$0" && exec "$@"', str(EXAMPLES)]
        if subprocess.run([*hide, "true"], capture_output=True).returncode:
            self.skipTest("this machine lets nobody mount")
        os.mkdir("clips")
        for number in range(6):
            make_clip(f"clips/{number}.avi")
        ray, port = str(pathlib.Path(sys.executable).with_name("ray")), free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        place = tempfile.mkdtemp(prefix="scan-", dir="/tmp")  # short, because Ray's sockets are in it
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        for arguments in (["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={place}"],
                          [f"--address=127.0.0.1:{port}"]):
            node = subprocess.Popen([*hide, ray, "start", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=1",
                                     "--disable-usage-stats", *arguments], cwd="/", env=environment, start_new_session=True,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(node.wait)
            self.addCleanup(os.killpg, node.pid, signal.SIGTERM)
            self.wait_for(node, lambda: listens(port), "a node")

        def nodes():
            said = subprocess.run([ray, "status", f"--address=127.0.0.1:{port}"], capture_output=True, text=True)
            return said.stdout.count(" node_")
        self.wait_for(node, lambda: nodes() == 2, "two nodes")
        out, err = self.finish(self.start("clips", "--out=out", f"--address=127.0.0.1:{port}"), 0)
        self.assertRegex(out, r"clips +6: 6 ok")
        self.assertEqual({row["frames"] for row in table("out/clips.parquet")}, {FRAMES})

    def test_a_stopped_scan_goes_on_without_repeating_work(self):
        os.mkdir("clips")
        for number in range(7):
            make_clip(f"clips/{number}.avi", frames=20 + number)
        os.mkfifo("clips/7.avi")  # nobody writes into it
        scan = self.start("clips", "--out=out", f"--timeout={FOREVER}")
        self.wait_for(scan, lambda: self.finished() >= 2, "two results")
        running = [process for process, _ in clip_processes(scan.pid)]
        os.killpg(scan.pid, signal.SIGINT)
        _, err = self.finish(scan, 128 + signal.SIGINT)
        self.assertIn("the same command goes on", err)
        self.wait_gone(running)
        rows = {row["clip"]: row["status"] for row in table("out/clips.parquet")}
        first = {path.name: path.stat().st_mtime_ns for path in self.folder.glob("out/results/*.json")}
        self.assertEqual(list(rows.values()).count("ok"), len(first))
        self.assertTrue(2 <= len(first) < 8, first)
        os.unlink("clips/7.avi")
        make_clip("clips/7.avi", frames=27)
        # The rest as two shards; the tables come with the last one.
        outs, done = [], len(first)
        for index in range(2):
            out, _ = self.finish(self.start("clips", "--out=out", f"--shard={index}/2"), 0)
            outs.append(out)
            if "analysed now" in out:
                now = re.search(r"analysed now +(\d+|none)", out)[1]
                done += 0 if now == "none" else int(now)
            else:
                done = self.finished()
        self.assertEqual(done, 8)
        self.assertRegex(outs[1], r"clips +8: 8 ok")
        now = {path.name: path.stat().st_mtime_ns for path in self.folder.glob("out/results/*.json")}
        self.assertEqual(len(now), 8)
        self.assertEqual({name: now[name] for name in first}, first)
        self.assertEqual([row["frames"] for row in table("out/clips.parquet")], [20 + number for number in range(8)])
        # Nothing is left: not even Ray is started.
        out, err = self.finish(self.start("clips", "--out=out"), 0)
        self.assertIn("8 of 8 clips have a result already", err)
        self.assertRegex(out, "analysed now +none")
