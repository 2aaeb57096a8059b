# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs examples/motion-scan on Ray: bad clips, killed workers, and stops. Needs Ray and Arrow; see scan_test.py."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from unittest import mock

from programs import EXAMPLES, rows_of
from scan_fixture import FOREVER, FRAMES, LIMIT, PROGRAM, Folder, make_clip, make_sound
from servers import HttpServer, free_port, listens


def table(name):
    import pyarrow.parquet
    return pyarrow.parquet.read_table(name).to_pylist()


class Held(HttpServer):
    """A clip on an HTTP server that sends nothing until `go_on` is set. `requests` counts the requests."""

    def __init__(self, path):
        self.go_on, self.requests, self.data = threading.Event(), 0, pathlib.Path(path).read_bytes()
        super().__init__()
        self.uri = f"http://{self.place}/held.avi"

    def answer(self, request):
        self.requests += 1
        self.go_on.wait()
        request.send_response(200)
        request.send_header("Content-Length", str(len(self.data)))
        request.end_headers()
        request.wfile.write(self.data)  # a killed reader is not an error

    def close(self):
        self.go_on.set()
        super().close()


def processes():
    """The running processes: number → (parent, state, command line)."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            found[int(path.name)] = int(parent), state, (path / "cmdline").read_bytes()
    return found


def clip_processes(ancestor):
    """The descendants of a process that analyse a clip: their numbers, with their workers."""
    known = processes()

    def below(process):
        while process in known and process != ancestor:
            process = known[process][0]
        return process == ancestor
    return [(process, parent) for process, (parent, state, line) in known.items()
            if b"analyse.py" in line and state not in "ZX" and below(process)]


def is_connected(process, port):
    """Whether a process has a connection to a port of this machine."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}")}
    with contextlib.suppress(OSError):  # it may end, and close its files
        return any(os.readlink(file) in sockets for file in pathlib.Path(f"/proc/{process}/fd").iterdir())
    return False


def end_group(group, number=signal.SIGTERM):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


class Scan(Folder):
    """The program on Ray."""

    def start(self, *arguments, workers=2):
        # A separate session, as in a terminal: Ctrl-C reaches all of its processes.
        command = [sys.executable, str(PROGRAM), *arguments, f"--workers={workers}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
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
        """Waits until processes have ended. They may remain as zombies until their parent collects them."""
        ends = time.monotonic() + LIMIT
        while any(processes().get(number, (0, "Z"))[1] not in "ZX" for number in numbers):
            self.assertLess(time.monotonic(), ends, f"{numbers} do not end")
            time.sleep(0.02)

    def finished(self):
        return len(list(self.folder.glob("out/results/*.json")))

    def test_bad_clips_and_a_killed_worker_lose_nothing_else(self):
        os.mkdir("clips")
        make_clip("clips/a.avi")
        good = ["a.avi", 'b "c" ! filesink location=victim.avi', "d\udcff <i>ü.avi",
                *(f"{number}.avi" for number in range(4))]
        for name in good[1:]:
            shutil.copy("clips/a.avi", os.path.join("clips", name))
        self.touch("clips/broken.avi", "victim")
        make_sound("clips/sound.mkv")
        held = Held("clips/a.avi")
        self.addCleanup(held.close)
        scan = self.start("clips", held.uri, "--out=out", "--retries=1", f"--timeout={FOREVER}")
        # Once all others are finished, only the waiting clip is left.
        self.wait_for(scan, lambda: self.finished() == 9 and held.requests, "nine results, and the clip that waits")
        ((killed, worker),) = [each for each in clip_processes(scan.pid)
                               if is_connected(each[0], held.server.server_address[1])]
        os.kill(worker, signal.SIGKILL)
        self.wait_gone([killed])
        held.go_on.set()
        out, err = self.finish(scan, 0)
        self.assertRegex(out, r"clips +10: 8 ok, 2 failed")
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("clips/")]), 2, err)
        # A clip that never ends costs only its own time. The other clips already have their results.
        os.mkfifo("clips/endless.mkv")
        out, err = self.finish(self.start("clips", held.uri, "--out=out", "--timeout=1"), 0)
        self.assertRegex(out, r"clips +11: 8 ok, 2 failed, 1 timeout")
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("clips/")]), 1, err)
        rows = {row["clip"]: row for row in table("out/clips.parquet")}
        expected = dict.fromkeys((os.fsencode(f"clips/{name}").decode("utf-8", "backslashreplace") for name in good),
                                 "ok")
        expected[held.uri] = "ok"
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {**expected, "clips/broken.avi": "failed", "clips/sound.mkv": "failed",
                          "clips/endless.mkv": "timeout"})
        self.assertEqual(sorted(row["attempts"] for row in rows.values()), [1] * 10 + [2])
        self.assertEqual({row["frames"] for row in rows.values() if row["status"] == "ok"}, {FRAMES})
        self.assertIn("no video", rows["clips/sound.mkv"]["error"])
        for name in ("seconds", "events", "objects"):
            found = table(f"out/{name}.parquet")
            self.assertEqual({row["clip"] for row in found}, set(expected))
            self.assertEqual({sum(row["clip"] == clip for row in found) for clip in expected},
                             {len(found) // len(expected)})
        page = pathlib.Path("out/summary.html").read_text()
        self.assertEqual(page.count("<tr>"), 12)
        self.assertIn("&lt;i&gt;ü.avi", page)
        self.assertNotIn("<i>", page)
        links = re.findall('(?:src|href)="([^"]*)"', page)
        self.assertTrue(links and all(pathlib.Path("out", link).is_file() for link in links), links)
        self.assertNotIn("@import", page)
        self.assertEqual(pathlib.Path("victim").read_text(), "x")

    def test_a_clip_that_kills_its_process_costs_no_other(self):
        make_clip("a.avi")
        held = [Held("a.avi") for _ in range(2)]
        for each in held:
            self.addCleanup(each.close)
        os.truncate("a.avi", os.path.getsize("a.avi") // 2)
        scan = self.start("a.avi", *(each.uri for each in held), "--out=out", "--retries=1", "--clips-per-worker=2",
                          f"--timeout={FOREVER}", workers=1)

        def processes_of(before=()):
            """The processes that have the two clips, once both differ from `before`."""
            found = [process for each in held for process, _ in clip_processes(scan.pid)
                     if is_connected(process, each.server.server_address[1])]
            return found if len(found) == 2 and not set(found) & set(before) else None
        first = self.wait_for(scan, processes_of, "two clips in progress")
        self.assertEqual(first[0], first[1])
        os.kill(first[0], signal.SIGKILL)
        second = self.wait_for(scan, lambda: processes_of(first), "two clips that are tried again")
        self.assertNotEqual(second[0], second[1])
        os.kill(second[0], signal.SIGKILL)
        self.wait_gone(second[:1])
        held[1].go_on.set()
        out, _ = self.finish(scan, 0)
        self.assertRegex(out, r"clips +3: 2 ok \(1 incomplete\), 1 crashed\n")
        # After the signal, an error contains the last output of the process, such as a warning of a library.
        rows = {row["clip"]: (row["status"], row["attempts"], row["error"] and row["error"].partition(":")[0])
                for row in table("out/clips.parquet")}
        self.assertEqual(rows, {"a.avi": ("ok", 1, None), held[1].uri: ("ok", 2, None),
                                held[0].uri: ("crashed", 2, "the process was ended by SIGKILL")})

    def crash_cuts(self):
        """Processes that cut clips of events kill themselves. The file beside the clip with the suffix .crash says how
        many times."""
        os.mkdir("site")
        pathlib.Path("site/sitecustomize.py").write_text(f"""
import os, sys
if any(each.endswith("analyse.py") for each in sys.orig_argv):
    sys.path.append({str(EXAMPLES)!r})
    import clips_of_events
    cut = clips_of_events.cut_each

    def crash(path, *arguments):
        left = int(open(path + ".crash").read()) if os.path.exists(path + ".crash") else 0
        if left:
            open(path + ".crash", "w").write(str(left - 1))
            os.kill(os.getpid(), 9)
        cut(path, *arguments)

    clips_of_events.cut_each = crash
""")
        self.enterContext(mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder / "site")}))

    def test_clips_of_events(self):
        os.mkdir("clips")
        names = "0.avi", "1 ü.avi", "=2.avi", "3.avi"
        for name in names:
            make_clip(f"clips/{name}")
        self.touch("clips/text.avi")
        self.crash_cuts()
        pathlib.Path("clips/0.avi.crash").write_text("1")
        pathlib.Path("clips/3.avi.crash").write_text("9")
        out, err = self.finish(self.start("--clips", "clips", "--out=out", "--retries=1", "--before=0.5", "--after=0"),
                               0)
        # One crash is retried. A clip that always crashes keeps its analysis.
        self.assertRegex(out, r"clips +5: 4 ok, 1 failed\n")
        self.assertRegex(out, r"clips of events +3, in out/clips; remarks on 1 in")
        self.assertIn("clips/3.avi: not all of its motions were cut out: the process was ended by SIGKILL", err)
        self.assertEqual(pathlib.Path("clips/0.avi.crash").read_text() + pathlib.Path("clips/3.avi.crash").read_text(),
                         "07")
        rows = {row["clip"]: row for row in table("out/clips.parquet")}
        self.assertEqual([rows[f"clips/{name}"]["cuts"] for name in (*names, "text.avi")], [1, 1, 1, 0, 0])
        self.assertIn("SIGKILL", rows["clips/3.avi"]["cut_remark"])
        cut = {row["clip"]: row["cut"] for row in table("out/events.parquet") if row["event"] == "motion"}
        self.assertEqual([bool(cut[f"clips/{name}"]) for name in names], [True] * 3 + [False])
        self.assertTrue(cut["clips/1 ü.avi"].startswith("clips/1_ü_"))
        listed = self.list_of_clips()
        self.assertEqual(sorted(f"clips/{row['file']}" for row in listed), sorted(filter(None, cut.values())))
        self.assertEqual(rows_of("out/clips/clips.csv"),
                         [{key: str(value) for key, value in row.items()} for row in listed])
        links = set(re.findall('href="(clips/[^"]*)"', pathlib.Path("out/summary.html").read_text()))
        self.assertEqual({urllib.parse.unquote(link) for link in links}, set(filter(None, cut.values())))
        for file in links:
            self.assertGreater(os.path.getsize(pathlib.Path("out", urllib.parse.unquote(file))), 1000)
        # Repeating the same call does nothing. A call for another kind of clips only cuts: results keep their analysis.
        out, err = self.finish(self.start("--clips", "clips", "--out=out", "--before=0.5", "--after=0"), 0)
        self.assertRegex(out, "analysed now +none")
        os.unlink("clips/3.avi.crash")
        before = {row["clip"]: (row["cpu_seconds"], row["frames"]) for row in rows.values()}
        out, err = self.finish(self.start("clips", "--clips=visits", "--out=out"), 0)
        self.assertRegex(out, r"clips of events +\d+, in out/clips\n")
        rows = table("out/clips.parquet")
        self.assertEqual({row["clip"]: (row["cpu_seconds"], row["frames"]) for row in rows}, before)
        self.assertFalse([row for row in table("out/events.parquet") if row["cut"]])
        cut = [row["cut"] for row in table("out/objects.parquet")]
        self.assertTrue(cut and all("_object-" in file and pathlib.Path("out", file).is_file() for file in cut), cut)
        self.assertEqual(len(cut), len(list(self.folder.glob("out/clips/*/*.mkv"))))
        # A run without --clips keeps them.
        out, err = self.finish(self.start("clips", "--out=out"), 0)
        self.assertRegex(out, rf"clips of events +{len(cut)}, in out/clips\n")

    def start_nodes(self, place):
        """Starts a cluster of two nodes with one core each, which cannot see the examples. Returns its port, and the
        second node."""
        hide = ["unshare", "--map-root-user", "--mount", "bash", "-euc", 'mount -t tmpfs none "$0" && exec "$@"',
                str(EXAMPLES)]
        if subprocess.run([*hide, "true"], capture_output=True).returncode:
            self.skipTest("this machine lets nobody mount")
        ray, port = str(pathlib.Path(sys.executable).with_name("ray")), free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        for arguments in (["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={place}"],
                          [f"--address=127.0.0.1:{port}"]):
            node = subprocess.Popen([*hide, ray, "start", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=1",
                                     "--disable-usage-stats", *arguments], cwd="/", env=environment,
                                    start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(node.wait)
            self.addCleanup(end_group, node.pid)
            self.wait_for(node, lambda: listens(port), "a node")

        def nodes():
            said = subprocess.run([ray, "status", f"--address=127.0.0.1:{port}"], capture_output=True, text=True)
            return said.stdout.count(" node_")
        self.wait_for(node, lambda: nodes() == 2, "two nodes")
        return port, node

    def test_a_cluster_that_loses_a_node_loses_no_clip(self):
        """The two nodes have only the plugin: --address sends the rest. The second one is killed while it works."""
        place = tempfile.mkdtemp(prefix="scan-", dir="/tmp")  # short, because it contains Ray's sockets
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        port, node = self.start_nodes(place)
        os.mkdir("clips")
        for number in range(6):
            make_clip(f"clips/{number}.avi")
        held = [Held("clips/0.avi") for _ in range(2)]  # one for each node
        for each in held:
            self.addCleanup(each.close)
        scan = self.start(*(each.uri for each in held), "clips", "--out=out", f"--address=127.0.0.1:{port}",
                          f"--timeout={FOREVER}", "--clips")
        self.wait_for(scan, lambda: all(each.requests for each in held), "a clip on each node")
        running = clip_processes(node.pid)
        self.assertEqual(len(running), 1)
        end_group(node.pid, signal.SIGKILL)
        self.wait_gone([process for process, _ in running])
        for each in held:
            each.go_on.set()
        out, err = self.finish(scan, 0)
        self.assertRegex(out, r"clips +8: 8 ok")
        rows = table("out/clips.parquet")
        self.assertEqual({row["frames"] for row in rows}, {FRAMES})
        self.assertEqual(sorted(row["attempts"] for row in rows), [1] * 7 + [2])
        # All clips are equal: the retried one must have the results of the undisturbed ones.
        for name in ("seconds", "events", "objects"):
            found = {row["clip"]: [] for row in rows}
            for row in table(f"out/{name}.parquet"):
                found[row["clip"]].append([value for column, value in row.items()
                                           if column not in ("clip", "cut", "cut_remark", "picture")])
            first, *others = found.values()
            self.assertTrue(first, name)
            self.assertEqual([first] * len(others), others, name)
        # The nodes write the clips of events into the folder that they share. An input that is not a file cannot be
        # cut.
        self.assertEqual(sorted(row["cuts"] for row in rows), [0] * 2 + [1] * 6)
        self.assertEqual([row["cut_remark"] for row in rows], ["it is not a file"] * 2 + [None] * 6)
        self.assertTrue(all(pathlib.Path("out", row["cut"]).is_file() for row in table("out/events.parquet")
                            if row["cut"]))

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
        self.assertIn("the same command continues", err)
        self.wait_gone(running)
        rows = {row["clip"]: row["status"] for row in table("out/clips.parquet")}
        first = {path.name: path.stat().st_mtime_ns for path in self.folder.glob("out/results/*.json")}
        self.assertEqual(list(rows.values()).count("ok"), len(first))
        self.assertTrue(2 <= len(first) < 8, first)
        os.unlink("clips/7.avi")
        make_clip("clips/7.avi", frames=27)
        # The rest runs as two shards. The last one writes the tables.
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
        self.assertIn("8 of 8 clips already have a result", err)
        self.assertRegex(out, "analysed now +none")
