#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests `python3 -m cudavision` and the import of the package:  selftest_test.py PLUGIN_FILE

Exit status: 0; 1 after a failure; 77 where no element runs without a GPU (a build without the CPU backend).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from listed_test import operations

root = pathlib.Path(__file__).resolve().parent.parent
plugin = pathlib.Path(sys.argv.pop(1)).resolve()
AFTER_INIT = """
import ctypes
gst = ctypes.CDLL("libgstreamer-1.0.so.0")
gst.gst_init(None, None)
assert not gst.gst_element_factory_find(b"cudablend")
import cudavision
assert gst.gst_element_factory_find(b"cudablend")
"""


class SelfTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.registry = str(self.folder / "registry.bin")

    def python(self, *arguments, package=root / "gst/python", **variables):
        """Runs Python with the package, and without GStreamer variables except the given ones."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("GST_", "CUDAVISION_"))}
        environment.update(PYTHONPATH=str(package), GST_REGISTRY=self.registry, PYTHONDONTWRITEBYTECODE="1")
        # A copy of the plugin finds neither the library of metas beside it, nor the one that a test puts into its
        # folder.
        environment.update(LD_LIBRARY_PATH=f"{self.folder}:{plugin.parent.parent}", **variables)
        return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True,
                              timeout=900)

    def selftest(self, status=0, **options):
        """The output of the self-test, which ends with this status."""
        result = self.python("-m", "cudavision", "selftest", **options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def wheel(self):
        """A folder with the package as a wheel installs it."""
        package = self.folder / "site/cudavision"
        shutil.copytree(root / "gst/python/cudavision", package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / "gstreamer-1.0").mkdir()
        (package / "gstreamer-1.0" / plugin.name).symlink_to(plugin)
        return package

    def test_all_elements_run(self):
        said = self.selftest(GST_PLUGIN_PATH=str(plugin.parent))
        for operation in operations(root):
            self.assertRegex(said, rf"(?m)^cuda{operation} +(cpu|cuda): ok, 10 frames")
        for name in ("system", "Python", "GStreamer", "PyGObject", "plugin", "GPU", "driver", "backend"):
            self.assertRegex(said, rf"(?m)^{name} +\S")
        self.assertTrue(said.endswith("all is well\n"))

    def test_says_that_there_is_no_plugin(self):
        self.assertIn("there is no libgstcudavision.so", self.selftest(1, GST_PLUGIN_SYSTEM_PATH=""))

    def broken(self, old, new):
        """Variables for a folder with the plugin, where a needed library has another name of the same length."""
        folder = self.folder / "broken"
        folder.mkdir(exist_ok=True)
        data = plugin.read_bytes()
        self.assertIn(old, data)
        (folder / plugin.name).write_bytes(data.replace(old, new))
        return {"GST_PLUGIN_PATH": str(folder), "GST_PLUGIN_SYSTEM_PATH": ""}

    def test_names_the_package_of_a_missing_library(self):
        variables = self.broken(b"\0libgstvideo-1.0.so.0", b"\0libgstvideo-1.0.so.7")
        self.assertIn("libgstvideo-1.0.so.7", self.selftest(1, **variables))
        if version := re.search(rb"\0libopencv_core\.so\.(\d+)", plugin.read_bytes()):
            nines = "9" * len(version[1])
            variables = self.broken(version[0], f"\0libopencv_core.so.{nines}".encode())
            self.assertIn(f"apt install libopencv-core{nines}", self.selftest(1, **variables))

    def test_forgets_a_failure_that_is_over(self):
        variables = self.broken(b"\0libgstvideo-1.0.so.0", b"\0libgstvideo-1.0.so.7")
        self.selftest(1, **variables)
        library = next(path for path in pathlib.Path("/usr/lib").rglob("libgstvideo-1.0.so.0"))
        os.symlink(library, self.folder / "libgstvideo-1.0.so.7")
        self.selftest(**{**variables, "GST_PLUGIN_SYSTEM_PATH": str(library.parent / "gstreamer-1.0")})

    def test_import_finds_the_plugin_of_a_wheel(self):
        folder = str(self.wheel() / "gstreamer-1.0")
        site = self.folder / "site"
        show = "import os, cudavision; print(os.environ.get('GST_PLUGIN_PATH'), os.environ.get('GST_PLUGIN_PATH_1_0'))"
        self.assertEqual(self.python("-c", show, package=site).stdout, f"{folder} None\n")
        self.assertEqual(self.python("-c", show, package=site, GST_PLUGIN_PATH="/a:/b").stdout,
                         f"{folder}:/a:/b None\n")
        self.assertEqual(self.python("-c", show, package=site, GST_PLUGIN_PATH_1_0="/a").stdout, f"None {folder}:/a\n")
        self.assertEqual(self.python("-m", "cudavision", "path", package=site).stdout, folder + "\n")
        self.selftest(package=site)

    def test_import_finds_the_plugin_after_init(self):
        self.wheel()
        result = self.python("-c", AFTER_INIT, package=self.folder / "site")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_import_changes_nothing_without_a_wheel(self):
        show = "import os, cudavision; print(os.environ.get('GST_PLUGIN_PATH'))"
        self.assertEqual(self.python("-c", show, GST_PLUGIN_PATH="/a").stdout, "/a\n")
        result = self.python("-m", "cudavision", "path", GST_PLUGIN_PATH=str(plugin.parent))
        self.assertEqual(result.stdout, f"{plugin.parent}\n")

    def test_wrong_command(self):
        self.assertEqual(self.python("-m", "cudavision", "dance").returncode, 2)
        self.assertEqual(self.python("-m", "cudavision").returncode, 2)


if __name__ == "__main__":
    if os.environ.get("SANITIZE"):
        print("skipped: Python does not load a plugin that is built with sanitizers")
        sys.exit(77)
    unittest.main()
