# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m cudavision selftest | path"""

import argparse
import sys

from . import PLUGIN_FOLDER, _selftest


def main():
    parser = argparse.ArgumentParser(prog="python3 -m cudavision",
                                     description="Says whether the plugin cudavision works here.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "selftest",
        help="show what is found and missing, and run each element on each backend; exit status 0 only if all "
        "tests pass",
    )
    commands.add_parser("path", help="print the folder of the plugin, for GST_PLUGIN_PATH")
    if parser.parse_args().command == "selftest":
        sys.exit(_selftest.run())
    folder = PLUGIN_FOLDER if PLUGIN_FOLDER.is_dir() else _selftest.plugin_folder()
    if not folder:
        sys.exit("GStreamer does not find the plugin cudavision: run python3 -m cudavision selftest")
    print(folder)


main()
