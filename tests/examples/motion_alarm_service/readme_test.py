# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests README.md: its commands run, its tables are complete, and its configurations are valid."""

import configparser
import dataclasses
import os
import re
import shutil
import subprocess
import unittest

from helpers import EXAMPLE, HANGS, Case, free_port, wait_for

import config
import metrics
import motion_alarm_service

ROOT = EXAMPLE.parents[1]
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
TABLES = {}  # the text of the first cell of a table: its rows
for table in re.findall(r"(?:^\|.*\n)+", README, re.M):
    header, _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.strip().split("\n")]
    TABLES[header[0]] = rows


def command(word):
    """The only command of README.md with this word."""
    found = [line for line in COMMANDS if word in line]
    assert len(found) == 1, found
    COMMANDS.remove(found[0])
    return found[0]


class Readme(Case):
    def run_command(self, line, **environment):
        return subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=ROOT, capture_output=True, text=True,
                              timeout=HANGS, env={**os.environ, **environment})

    def test_commands(self):
        """Each command runs unchanged, except for other ports, a sink that needs no screen, and another folder instead
        of /etc."""
        self.check_packages(command("apt-get install"))
        self.assertEqual("export GST_PLUGIN_PATH=$PWD/build/gst", command("export"))  # the test already sets it
        checked = self.run_command(command("--check"))
        self.assertEqual((0, "2 cameras: ball, moments\n"), (checked.returncode, checked.stdout), checked.stderr)
        self.check_demo(command("--verbose"))
        self.check_unit([command(word) for word in ("cameras.toml /etc", "/passwords", "motion-alarm.service /etc",
                                                    "systemctl")])
        self.check_environment([command(word) for word in ("-m venv", "bin/pip", "bin/python")])
        self.assertEqual([], COMMANDS)

    def check_packages(self, line):
        """The word mqtt in tests/prepare.sh stands for these packages."""
        known = subprocess.run(["bash", "-euc", f'. "{ROOT}/tests/prepare.sh"; echo "${{packages_with[mqtt]}}"'],
                               check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertLessEqual(set(line.split()[3:]), set(known.split()))

    def check_environment(self, lines):
        """The message about a missing soapbar names the same commands."""
        folder = EXAMPLE.relative_to(ROOT)
        self.assertEqual(f"~/onvif/bin/pip install -r {folder}/requirements.txt", lines[1])
        self.assertEqual(f"~/onvif/bin/python {folder}/motion_alarm_service.py cameras.toml", lines[2])
        self.assertTrue((EXAMPLE / "requirements.txt").is_file())
        for line in lines[:2]:
            self.assertIn(line.replace("~/onvif", "FOLDER"), motion_alarm_service.NO_SOAPBAR)

    def check_demo(self, line):
        broker, subscribe, ask, look = self.broker(), command("mosquitto_sub"), command("curl"), command("tcpclientsrc")
        ports = {port: str(free_port()) for port in ("9750", "9751")}
        demo = (EXAMPLE / "demo.toml").read_text(encoding="utf-8")
        for table, port in (("mqtt", broker.port), ("metrics", ports["9750"]), ("page", free_port())):
            demo = demo.replace(f"[{table}]", f"[{table}]\nport = {port}")
        demo = demo.replace("9751", ports["9751"])
        file = self.folder / "demo.toml"
        file.write_text(demo, encoding="utf-8")
        self.assertIn(" examples/motion-alarm-service/demo.toml", line)
        service = subprocess.Popen(
            [word.replace("examples/motion-alarm-service/demo.toml", str(file)) for word in line.split()], cwd=ROOT,
            stderr=subprocess.DEVNULL)
        self.addCleanup(service.wait)
        self.addCleanup(service.terminate)
        ask = ask.replace("9750", ports["9750"])
        wait_for("curl", lambda: 'cudavision_camera_up{camera="ball"} 1.0' in self.run_command(ask).stdout)
        if shutil.which("mosquitto_sub"):
            events = self.run_command(f"{subscribe} -p {broker.port} -C 3 -W {HANGS}").stdout
            self.assertRegex(events, r"^(cudavision/(ball|moments)/event \{.*\n){3}$")
        shown = self.run_command(look.replace("9751", ports["9751"]).replace("videoconvert ! autovideosink",
                                                                             "identity eos-after=5 ! fakesink"))
        self.assertEqual(0, shown.returncode, shown.stderr)

    def check_unit(self, lines):
        stubs = self.folder / "bin"
        stubs.mkdir()
        for name, text in {
            "sudo": 'exec "$@"',
            "systemctl":
                f'[[ $* == "enable --now motion-alarm" && -e {self.folder}/etc/systemd/system/motion-alarm.service ]]',
        }.items():
            (stubs / name).write_text(f"#!/bin/bash\n{text}\n")
            (stubs / name).chmod(0o755)
        for line in lines:
            done = self.run_command(line.replace("/etc/", f"{self.folder}/etc/"), PATH=f"{stubs}:{os.environ['PATH']}")
            self.assertEqual(0, done.returncode, (line, done.stderr))
        self.assertEqual(0o600, (self.folder / "etc/motion-alarm/passwords").stat().st_mode & 0o777)
        file = self.folder / "etc/systemd/system/motion-alarm.service"
        text = file.read_text(encoding="utf-8")
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(text)
        program, configuration = parser["Service"]["ExecStart"].split()
        self.assertEqual("/etc/motion-alarm/cameras.toml", configuration)
        names = "MQTT", "DOOR", "HALL", "YARD", "CELLAR"
        passwords = {f"{name}_PASSWORD": "x" for name in names}
        done = self.run_command(f"{program.replace('/opt/cudavision', str(ROOT))} --check {self.folder}{configuration}",
                                **passwords)
        self.assertEqual((0, "4 cameras: door, hall, yard, cellar\n"), (done.returncode, done.stdout), done.stderr)
        if shutil.which("systemd-analyze"):
            file.write_text(text.replace("/opt/cudavision", str(ROOT)), encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, timeout=HANGS)
            self.assertNotIn("motion-alarm.service", done.stderr)

    def test_tables_of_the_configuration(self):
        for name in "camera.NAME", "reconnect", "mqtt", "metrics", "wall", "recording", "page", "onvif":
            kind = getattr(config, name.partition(".")[0].capitalize())
            defaults = {}
            for names, values, _ in TABLES[name]:
                names, values = names.split(", "), values.split(", ")
                defaults.update(zip(names, values + [""] * (len(names) - len(values))))
            fields = {field.name: field.default for field in dataclasses.fields(kind) if field.name != "key"}
            self.assertEqual(set(fields), set(defaults), name)
            for field, default in defaults.items():
                if default and default != "NAME":
                    found = str(fields[field])
                    self.assertEqual(found.lower() if found in ("True", "False") else found, default, field)

    def test_sinks_of_the_wall(self):
        sinks = re.findall(r"`([^`]+ ! (?:tcpserversink|filesink) [^`]+)`", README)
        self.assertEqual(2, len(sinks))
        for sink in sinks:
            file = self.folder / "cameras.toml"
            file.write_text(f'[camera.door]\nuri = "test"\n[wall]\nsink = "{sink}"\n')
            done = self.run_command(f"{EXAMPLE}/motion_alarm_service.py --check {file}")
            self.assertEqual((0, "1 cameras: door\n"), (done.returncode, done.stdout), done.stderr)

    def test_table_of_the_metrics(self):
        class Parts:
            frames = fps = up = enabled = motion = objects = reconnects = connected = written_clips = failures = 0
            name, events = "door", dict.fromkeys(
                ("begin", "end", "enter", "leave", "cross", "stopped", "moving", "removed", "light", "scene", "moves",
                 "moved", *config.CONDITIONS), 0)
            settings, conditions = config.Camera(uri="test", watch=True), ()

        Parts.recorder, Parts.pace, Parts.dropped = Parts, Parts, {"encoded": 0, "decoded": 0}
        found = {sample.name for family in metrics.Collector([Parts], Parts, Parts).collect()
                 for sample in family.samples}
        self.assertEqual(found, {name for names, _ in TABLES["metric"] for name in names.split(", ")})
        self.assertIn(f"127.0.0.1:{config.Metrics().port}", README)


if __name__ == "__main__":
    unittest.main()
