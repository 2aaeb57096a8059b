#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Opens a report of examples/motion-report in a headless Chromium:  report_browser.py [PICTURE]

The video plays, and seeks by clicks on the time line, on a row of the table and by keys; zones and lines are drawn; the console
stays empty; nothing is loaded from elsewhere; the page fits a phone, and is dark if that is asked for. PICTURE is a PNG to write.
Needs a finished build in BUILD_DIR (build). Exit status 77 without Debian's chromium, chromium-driver and python3-selenium.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    print("skipped: no python3-selenium")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = '<script>document.title = "broken"<!-- "><img src=x onerror=alert(2)>.avi'
ZONES, LINES = "left: 0.0,0.0 0.5,0.0 0.5,1.0 0.0,1.0; <b>right</b>: 161,0 320,0 320,240 161,240", "middle: 0.5,0.0 0.5,1.0"
SECONDS = 900  # that nothing needs, however busy the machine is


def until(condition, what):
    """Waits until a function returns something true, and returns that."""
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {SECONDS} s: {what}"
        time.sleep(0.1)
    return found


def make(folder):
    """Writes a clip with an unusual name, and two reports: with the video in the page, and beside it. Returns the pages."""
    build = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")).resolve()
    environment = {**os.environ, "GST_PLUGIN_PATH": str(build / "gst")}
    with open(folder / NAME, "wb") as stream:
        subprocess.run("gst-launch-1.0 -q videotestsrc pattern=ball num-buffers=240 ! video/x-raw,width=320,height=240 ! jpegenc ! "
                       "matroskamux ! fdsink".split(), check=True, timeout=SECONDS, env=environment, stdout=stream)
    for name, more in ("one", []), ("two", ["--embed=0"]):
        subprocess.run([ROOT / "examples/motion-report/motion_report.py", f"--clip={folder / NAME}", f"--out={folder / name}",
                        f"--zones={ZONES}", f"--lines={LINES}", *more], check=True, timeout=SECONDS, env=environment,
                       stdout=subprocess.DEVNULL)
    return folder / "one/report.html", folder / "two/report.html"


def start(folder):
    """A Chromium without a window, in a profile of its own."""
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1400,1330",
                     f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    os.environ["no_proxy"] = "127.0.0.1,localhost"  # for the driver
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.set_page_load_timeout(SECONDS)
    browser.set_script_timeout(SECONDS)
    return browser


class Report:
    """An open report."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get(path.as_uri())
        until(lambda: self.video("readyState") >= 2, "the video can be played")

    def video(self, expression):
        return self.browser.execute_script(f"return document.getElementById('video').{expression}")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector):
        return len(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def expect_time(self, expected, what):
        until(lambda: abs(self.video("currentTime") - expected) < 0.15 and not self.video("seeking"),
              f"{what} seeks to {expected:.2f} s")

    def check_playing(self):
        self.video("play()")
        until(lambda: self.video("currentTime") > 0.5, "the video plays")
        until(lambda: float(self.find("#timeline").get_attribute("aria-valuenow")) > 0.5, "the time line follows")
        self.video("pause()")
        assert self.video("error") is None and self.find("#message").text == ""

    def check_seeking(self):
        length = self.video("duration")
        assert 7.5 < length < 8.5, length
        timeline = self.find("#timeline")
        for share in 0.75, 0.25:
            action = webdriver.ActionChains(self.browser)
            action.move_to_element_with_offset(timeline, round((share - 0.5) * timeline.size["width"]), 0).click().perform()
            self.expect_time(share * 8, "a click on the time line")
        timeline.send_keys(Keys.ARROW_RIGHT)
        self.expect_time(3, "an arrow key")
        row = self.find("tbody tr[data-object]")
        entered = float(row.get_attribute("data-seek"))
        row.find_element(By.CSS_SELECTOR, "td[data-label=path]").click()
        self.expect_time(entered, "a click on a row")
        assert "chosen" in row.get_attribute("class") and self.count("#overlay polyline") == 1
        zone = self.browser.find_elements(By.CSS_SELECTOR, ".places button")[-1]
        zone.click()
        self.expect_time(float(zone.get_attribute("data-seek")), "a click on a zone or a line")
        self.find("#before").click()
        until(lambda: self.video("currentTime") < length, "the button of the previous object")

    def check_drawing(self):
        """Zones, lines, and the number of an object that is in the picture."""
        assert self.count("#overlay polygon") == 2 and self.count("#overlay g > line") == 1
        names = [text.text for text in self.browser.find_elements(By.CSS_SELECTOR, "#overlay text")]
        assert {"left", "<b>right</b>", "middle"} <= set(names), names
        box = self.browser.execute_script("""
            const zone = document.querySelector("#overlay polygon").getBoundingClientRect();
            const picture = document.getElementById("video").getBoundingClientRect();
            return [zone.width / picture.width, zone.height / picture.height];""")
        assert abs(box[0] - 0.5) < 0.02 and abs(box[1] - 1) < 0.02, box
        seen = json.loads(self.find("#data").get_attribute("textContent"))["objects"][0]["track"]
        self.browser.execute_script("document.getElementById('video').currentTime = arguments[0]", seen[len(seen) // 2][0])
        until(lambda: self.count("#overlay .moving text"), "an object has its number")
        assert self.count("#timeline .changed") == self.count("#timeline .mean") == 1 and self.count("#timeline .object") > 0
        self.find("#numbers").click()
        until(lambda: not self.count("#overlay .moving text"), "numbers can be hidden")
        self.find("#numbers").click()

    def check_names(self):
        """Names are texts, and each control has one."""
        assert self.browser.title == f"{NAME} – motion report", self.browser.title
        assert self.find("h1").text == NAME
        nameless = self.browser.execute_script("""
            return [...document.querySelectorAll("button, select, input, video, [role]")].filter((e) => e.checkVisibility() &&
              !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim())).map((e) => e.outerHTML);""")
        assert not nameless, nameless
        assert self.find("#shapes-label").is_displayed()
        self.browser.execute_script("document.getElementById('shapes-label').hidden = true")  # as without zones and lines
        assert not self.find("#shapes-label").is_displayed()

    def check_looks(self):
        """Fits a phone, is dark if that is asked for, and prints."""
        darkness = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)[0]"
        assert self.browser.execute_script(darkness) > 200
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})
        assert self.browser.execute_script(darkness) < 60
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        widths = until(lambda: self.browser.execute_script("return [innerWidth, document.scrollingElement.scrollWidth]"), "a width")
        assert widths == [360, 360], widths
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert len(self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]) > 10000


def check_silence(browser, folder):
    """Nothing was logged, and nothing was loaded but these files, parts of them, and the page's own video."""
    assert not (lines := browser.get_log("browser")), lines
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    urls = [one["request"]["url"][:200] for one in sent if one["documentURL"].startswith("file:")]  # not of the first tab
    assert all(url.startswith(("data:", "blob:", folder.as_uri() + "/")) for url in urls), urls
    return urls


def main():
    for program in "chromium", "chromedriver", "gst-launch-1.0":
        if not shutil.which(program):
            print(f"skipped: no {program}")
            sys.exit(77)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch)
        pages = make(folder)
        assert (folder / "two/report.webm").is_file() and not (folder / "one/report.webm").exists()
        browser = start(folder)
        try:
            for page in pages:
                report = Report(browser, page)
                report.check_names()
                report.check_playing()
                report.check_seeking()
                report.check_drawing()
                assert check_silence(browser, folder)
            if len(sys.argv) > 1:
                browser.save_screenshot(sys.argv[1])
            report.check_looks()
            check_silence(browser, folder)
            # Without its video the page says what is missing.
            (folder / "two/report.webm").unlink()
            browser.refresh()
            until(lambda: "report.webm" in report.find("#message").text, "a sentence about the missing video")
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
