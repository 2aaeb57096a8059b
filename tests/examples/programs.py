# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets a test of the programs in examples/ import their modules. Ends it with status 77 without what they import."""
import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.dont_write_bytecode = True
sys.path[:0] = [str(EXAMPLES)]
try:
    import numpy  # noqa: F401: the report needs it
    import common  # noqa: F401
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer, or no NumPy ({error})")
    sys.exit(77)
