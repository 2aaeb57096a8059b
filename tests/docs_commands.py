#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the commands of the pages:  docs_commands.py PROJECT_FOLDER BUILD_FOLDER [PAGE]…

The pages are README.md, docs/**/*.md and examples/*/README.md. Each command of their ```sh blocks runs separately in
bash, in a folder that looks like the project with its build and has the inputs that the pages name (clip.mp4, clips …:
see make_inputs). SUBSTITUTES lists the replacements: for sinks that need a screen, cameras, sources without an end, and
`…` for the rest of a pipeline. A command passes if it exits with 0 and no element posts a warning. A comment before a
block changes this:

  <!-- not run: REASON -->   the block is skipped; REASON says what it needs and which test runs it instead
  <!-- needs: MODULE -->     the block is skipped where Python has no such module
  <!-- prints: TEXT -->      the output of the block contains TEXT
  <!-- fails: TEXT -->       its last command fails, with TEXT in its output
  <!-- file: NAME -->        the block is a file, which the commands of the page use

Python programs are compiled. Links between pages, including anchors, are checked. Exit status: 0; 1 with the failures;
77 without Python's bindings of GStreamer or without its encoders.
"""
import argparse
import concurrent.futures
import dataclasses
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GObject, Gst
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer ({error})")
    sys.exit(77)

# Commands of short clips that sometimes do not end, also without our elements: GStreamer loses the end of a stream that
# comes within milliseconds of its start, and splitmuxsink of GStreamer 1.26 can stall.
MAY_NOT_END = re.compile(r"\bconcat name=|splitmuxsink")
LIMIT = 600  # seconds after which a command counts as hanging; none takes nearly as long, even on the busiest machine
# A block in another language could be a command that nobody runs.
LANGUAGES = {"", "c", "dockerfile", "ini", "json", "python", "sh", "text", "toml", "yaml"}
# The replacements in a command, in this order.
SUBSTITUTES = [
    (r"^… !", "gst-launch-1.0 … !"),                                                # a pipeline without its beginning
    (r"(gst-launch-1\.0 (?:-\w )*)… !", r"\1filesrc location=clip.mp4 ! decodebin !"),
    (r"! …$", "! fakesink"),
    (r"! detector !", "! identity !"),
    (r"rtspsrc location=\S+ ! rtph264depay", "filesrc location=clip.mp4 ! qtdemux"),  # cameras
    (r"uridecodebin uri=rtsp://\S+", "filesrc location=clip.mp4 ! decodebin"),
    (r"rtsp://\S+|/dev/video\d", "clip.mp4"),
    (r"v4l2src device=\S+", "videotestsrc"),
    (r"(?<![\w-])videotestsrc(?![^!]*num-buffers)", "videotestsrc num-buffers=10"),    # without an end
    (r"(motion-alarm .*)\btest$", r"\1test:30"),
    (r"(?:gl|x|auto)\w*videosink|autovideosink", "fakesink"),                        # a screen
]
NEEDS_GPU = {"nvh264dec": "avdec_h264"}  # replaced if GStreamer lacks the element


@dataclasses.dataclass
class Block:
    page: Path
    line: int
    language: str
    marks: dict
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    def commands(self):
        """The commands without comments. A line that ends with a backslash continues on the next one."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        return [line for line in (re.sub(r"(^|\s+)#\s.*", "", line).strip() for line in lines) if line]


def blocks_of(page, text):
    """The blocks of a page. Raises ValueError for a block that it does not understand."""
    found = []
    for match in re.finditer(r"((?:^<!-- .*? -->\n)*)^( *)```([^\n`]*)\n(.*?)^\2```$", text, re.M | re.S):
        marks = dict(mark.split(": ", 1) for mark in re.findall(r"<!-- ([\w ]+: .*?) -->", match[1]))
        found.append(Block(page, text.count("\n", 0, match.start(3)) + 1, match[3].strip(), marks, match[4]))
        for test in re.findall(r"tests/[\w./-]+\w", marks.get("not run", "")):
            if not (Path(__file__).parents[1] / test).exists():
                raise ValueError(f"{found[-1]}: there is no {test}")
        if found[-1].language not in LANGUAGES:
            raise ValueError(f"{found[-1]}: the test does not know the language {found[-1].language}")
        if found[-1].language != "sh" and re.search(r"^(\$ )?(gst-(launch|inspect)|sudo|export) ?", match[4], re.M):
            raise ValueError(f"{found[-1]}: a command that is not in a block of sh")
    if text.count("```") != 2 * len(found):
        raise ValueError(f"{page}: a block was not found")
    return found


def start_gstreamer(build, work):
    """Uses only this build of the plugin and a separate registry, here and in all commands."""
    os.environ.update(GST_PLUGIN_PATH=str(build / "gst"), GST_REGISTRY=str(work / "registry.bin"))
    os.environ.pop("GST_PLUGIN_PATH_1_0", None)  # it would take precedence over the setting on a page
    Gst.init(None)
    for element in ("openh264enc", "mp4mux", "jpegenc", "avdec_h264"):
        if not Gst.ElementFactory.find(element):
            print(f"skipped: GStreamer has no {element}")
            sys.exit(77)
    if not Gst.ElementFactory.find("cudablend"):
        sys.exit(f"there is no plugin in {build}/gst")


def make_inputs(folder, project, build):
    """Makes the folder in which commands run: the project, its build, and the files that the pages name."""
    for name in ("docs", "examples", "gst", "tests"):
        (folder / name).symlink_to(project / name)
    (folder / "build").symlink_to(build)
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)  # the Python with the bindings
    (folder / "clips").mkdir()
    (folder / "photos").mkdir()

    def launch(description):
        command = ["gst-launch-1.0", "-q", *description.split()]
        subprocess.run(command, cwd=folder, check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)

    launch("videotestsrc pattern=ball num-buffers=40 ! video/x-raw,format=I420,width=320,height=240,framerate=20/1 ! "
           "openh264enc ! h264parse ! mp4mux ! filesink location=clip.mp4")
    launch("videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=320,height=240 ! tee name=t "
           "t. ! queue ! jpegenc ! filesink location=photo.jpg t. ! queue ! videoconvert ! pngenc ! "
           "filesink location=photo.png")
    for name in ("door.mp4", "yard.mp4", "screen.mp4", "clips/a.mp4", "clips/b.mp4"):
        shutil.copy(folder / "clip.mp4", folder / name)
    for name in ("page.jpg", "photos/1.jpg", "photos/2.jpg"):
        shutil.copy(folder / "photo.jpg", folder / name)
    for name in ("disc.png", "logo.png", "wall.png"):
        shutil.copy(folder / "photo.png", folder / name)


def run(command, folder, environment):
    """The exit status and the output of a command. After LIMIT seconds, it is killed with all its processes. A command
    that may not end has more attempts."""
    for limit in (60, 60, 60, LIMIT) if MAY_NOT_END.search(command) else (LIMIT,):
        status, output = run_once(command, folder, environment, limit)
        if status != 124:
            break
    return status, output


def run_once(command, folder, environment, limit):
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output.decode(errors="replace") + f"\nended after {limit} seconds"
    return process.returncode, output.decode(errors="replace")


def substitute(command):
    for pattern, replacement in SUBSTITUTES:
        command = re.sub(pattern, replacement, command)
    for element, replacement in NEEDS_GPU.items():
        if not Gst.ElementFactory.find(element):
            command = command.replace(element, replacement)
    return command


def wrong_pad_property(command):
    """Finds properties that a pad lacks, and wrong values. gst-launch-1.0 says nothing about them."""
    pad = Gst.ElementFactory.make("cudablend").request_pad_simple("sink_%u")
    for name, value in re.findall(r"\bsink_\d+::([\w-]+)=(\S+)", command):
        spec = pad.find_property(name)
        if spec is None:
            return f"a pad has no property {name}"
        if spec.value_type.is_a(GObject.TYPE_ENUM):
            Gst.util_set_object_arg(pad, name, value)
            if Gst.value_serialize(GObject.Value(spec.value_type, pad.get_property(name))) != value:
                return f"{value} is no value of {name}"
    return ""


class Tester:
    def __init__(self, project, work):
        self.project, self.work = project, work
        self.environment = {**os.environ, "INSTALL": "0", "TMPDIR": str(work), "LANGUAGE": "en",
                            "GST_DEBUG_NO_COLOR": "1"}

    def test_page(self, page, blocks):
        """Runs the blocks of a page. Returns the numbers of executed commands and compiled programs, the skips, and the
        failures."""
        counts, skips, failures = {"commands": 0, "blocks": 0, "programs": 0}, [], []
        folder = self.work / re.sub(r"\W", "_", str(page))
        shutil.copytree(self.work / "inputs", folder, symlinks=True)
        environment = {**self.environment, "HOME": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        for block in blocks:
            if "file" in block.marks:
                (folder / block.marks["file"]).write_text(block.text, encoding="utf-8")
            if block.language == "python":
                try:
                    compile(block.text, str(block), "exec")
                    counts["programs"] += 1
                except SyntaxError as error:
                    failures.append(f"{block}: {error}")
            counts["programs"] += block.language == "c" and "file" in block.marks
        for block in blocks:
            if block.language == "sh":
                try:
                    self.test_block(block, folder, environment, counts, skips)
                except AssertionError as error:
                    failures.append(str(error))
        return counts, skips, failures

    def test_block(self, block, folder, environment, counts, skips):
        module = block.marks.get("needs")
        if "not run" in block.marks or (module and importlib.util.find_spec(module) is None):
            skips.append(f"{block}: {block.marks.get('not run') or f'needs Python’s module {module}'}")
            return
        settings, said, commands = "", "", block.commands()
        assert commands, f"{block}: the block has no command"
        for command in commands:
            changed = substitute(command)
            wrong = wrong_pad_property(command)
            assert not wrong, f"{block}: {command}\n{wrong}"
            if re.match(r"export |cd ", changed):  # for later commands
                settings += changed + "\n"
                continue
            status, output = run(settings + changed, folder, environment)
            counts["commands"] += 1
            said += output
            if "fails" in block.marks and command is commands[-1]:
                right = status not in (0, 124) and block.marks["fails"] in said
            else:
                right = status == 0 and ("prints" in block.marks or not re.search(r"^WARNING: ", output, re.M))
            assert right, f"{block}: {changed}\nexit status {status}\n{output}"
        assert block.marks.get("prints", "") in said, f"{block}: the output has no {block.marks['prints']}:\n{said}"
        counts["blocks"] += 1


def anchors_of(text):
    """The anchors that GitHub makes from headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong_links(project, page, text):
    """A line for each link of a page to a missing file or heading."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (project / page).parent / path if path else project / page
        if not file.exists():
            wrong.append(f"{page}: there is no {target}")
        elif anchor and anchor not in anchors_of(file.read_text(encoding="utf-8")):
            wrong.append(f"{page}: {target} is no heading")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("page", nargs="*", help="only these pages, such as docs/start.md")
    arguments = parser.parse_args()
    project, build = arguments.project.resolve(), arguments.build.resolve()
    files = [project / "README.md", *sorted((project / "docs").rglob("*.md")),
             *sorted((project / "examples").glob("*/README.md"))]
    texts = {file.relative_to(project): file.read_text(encoding="utf-8") for file in files}
    texts = {page: text for page, text in texts.items() if not arguments.page or str(page) in arguments.page}
    failures, skips, total = [], [], {"commands": 0, "blocks": 0, "programs": 0}
    for page, text in texts.items():
        failures += wrong_links(project, page, text)
    began = time.monotonic()
    with (tempfile.TemporaryDirectory() as work,
          concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool):
        start_gstreamer(build, Path(work))
        tester = Tester(project, Path(work))
        (tester.work / "inputs").mkdir()
        make_inputs(tester.work / "inputs", project, build)
        for counts, skipped, failed in pool.map(lambda item: tester.test_page(item[0], blocks_of(*item)),
                                                texts.items()):
            total = {name: total[name] + counts[name] for name in total}
            skips += skipped
            failures += failed
    print(*(f"skipped: {skip}" for skip in skips), *failures, sep="\n")
    if not arguments.page and (total["commands"] < 40 or total["programs"] < 3):
        failures.append("")
        print("that is too little: were the blocks found?")
    print(f"{total['commands']} commands of {total['blocks']} blocks and {total['programs']} programs of {len(texts)} "
          f"pages, {len(skips)} blocks skipped, {len(failures)} failures, {time.monotonic() - began:.0f} s")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
