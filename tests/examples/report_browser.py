#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Opens a report of examples/motion-report in a headless Chromium.

The video must play, and seek by clicks on the timeline and on an event, and by keys. Boxes, tracks, the tint, the heat
map and the histogram are drawn over it and can be switched off. Events can be filtered and zones drawn. The console
stays empty, and nothing is loaded from elsewhere. The page fits a phone, and has a dark mode. A page with an hour of
invented data also works.
Needs a finished build in BUILD_DIR (build). Exit status 77 without Debian's chromium, chromium-driver and
python3-selenium.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import browser

if browser.missing:
    print(f"skipped: no {browser.missing}")
    sys.exit(77)
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ["GST_PLUGIN_PATH"] = str(pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")).resolve() / "gst")
import programs  # noqa: E402

NAME = '<script>document.title = "broken"<!-- "><img src=x onerror=alert(2)>.avi'
ZONES, LINES = ("left: 0.0,0.0 0.5,0.0 0.5,1.0 0.0,1.0; <b>right</b>: 161,0 320,0 320,240 161,240",
                "middle: 0.5,0.0 0.5,1.0")


def until(condition, what):
    """Waits until a function returns a true value. Returns this value."""
    end = time.monotonic() + browser.HANGS
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {browser.HANGS} s: {what}"
        time.sleep(0.1)
    return found


def make(folder):
    """Writes a clip with an unusual name, and two reports: with the video in the page, and beside it. The second report
    has a clip that browsers play, if there is an encoder for it. Returns the pages."""
    played = programs.has("openh264enc")
    for name, encoder in ((NAME, "jpegenc ! matroskamux"),
                          ("played", "openh264enc ! h264parse ! mp4mux" if played else "jpegenc ! avimux")):
        with open(folder / name, "wb") as stream:
            programs.launch(f"videotestsrc pattern=ball num-buffers=240 ! video/x-raw,width=320,height=240 ! {encoder} "
                            "! filesink location=/dev/stdout", stdout=stream)
    for name, clip, more in (("one", NAME, []), ("two", "played", ["--embed=0", "--clips=visits"])):
        subprocess.run([programs.REPORT, f"--clip={folder / clip}", f"--out={folder / name}", f"--zones={ZONES}",
                        f"--lines={LINES}", *more], check=True, stdout=subprocess.DEVNULL)
    return folder / "one/report.html", folder / "two/report.html"


class Report:

    def __init__(self, chromium, path):
        self.browser = chromium
        chromium.get(path.as_uri())
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
        until(lambda: float(self.find("#timeline").get_attribute("aria-valuenow")) > 0.5, "the timeline follows")
        self.video("pause()")
        assert self.video("error") is None and self.find("#message").text == ""

    def check_seeking(self):
        length = self.video("duration")
        assert 7.5 < length < 8.5, length
        timeline = self.find("#timeline")
        for share in 0.75, 0.25:
            action = webdriver.ActionChains(self.browser)
            action.move_to_element_with_offset(timeline, round((share - 0.5) * timeline.size["width"]),
                                               0).click().perform()
            self.expect_time(share * 8, "a click on the timeline")
        timeline.send_keys(Keys.ARROW_RIGHT)
        self.expect_time(3, "an arrow key")
        self.find("h1").click()  # keys also work outside the timeline
        self.browser.execute_script("document.activeElement.blur()")
        self.keys(Keys.ARROW_LEFT)
        self.expect_time(2, "an arrow key outside the timeline")
        card = self.find("#events .event")
        entered = next(one["entered"] for one in self.data()["objects"]
                       if f"object-{one['id']}" == card.get_attribute("data-key"))
        card.find_element(By.CSS_SELECTOR, ".main").click()
        self.expect_time(entered, "a click on an event")
        assert "chosen" in card.get_attribute("class")
        zone = card.find_elements(By.CSS_SELECTOR, ".places button")[-1]
        zone.click()
        self.expect_time(float(zone.get_attribute("data-seek")), "a click on a zone or a line")
        self.find("#before").click()
        until(lambda: self.video("currentTime") < length, "the button of the previous event")

    def keys(self, *keys):
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()

    def data(self):
        return json.loads(self.find("#data").get_attribute("textContent"))

    def painted(self):
        """The share of the layer over the video that is painted."""
        return self.browser.execute_script("""
            const layer = document.getElementById("layer"), pen = layer.getContext("2d");
            const data = pen.getImageData(0, 0, layer.width, layer.height).data;
            return data.filter((value, i) => i % 4 === 3 && value).length / (layer.width * layer.height);""")

    def only(self, *names):
        """Switches these layers on, and all others off."""
        for name in "boxes", "tracks", "tint", "heat", "histogram":
            self.browser.execute_script("const box = document.getElementById(arguments[0]); if (box.checked "
                                        "!== arguments[1]) box.click()",
                                        name, name in names)

    def check_drawing(self):
        """Checks zones and lines, and each layer over the video while an object is in the picture."""
        assert self.count("#overlay .zones polygon") == 2 and self.count("#overlay .lines line") == 1
        names = [text.text for text in self.browser.find_elements(By.CSS_SELECTOR, "#overlay text")]
        assert {"left", "<b>right</b>", "middle"} <= set(names), names
        box = self.browser.execute_script("""
            const zone = document.querySelector("#overlay polygon").getBoundingClientRect();
            const picture = document.getElementById("video").getBoundingClientRect();
            return [zone.width / picture.width, zone.height / picture.height];""")
        assert abs(box[0] - 0.5) < 0.02 and abs(box[1] - 1) < 0.02, box
        best = self.data()["objects"][0]
        self.browser.execute_script("document.getElementById('video').currentTime = arguments[0]", best["best"])
        self.expect_time(best["best"], "the script")
        until(lambda: str(best["id"]) in self.find("#layer").get_attribute("data-boxes").split(),
              "an object has its box")
        self.only()
        until(lambda: self.painted() == 0, "all layers can be switched off")
        for layer in "boxes", "tracks", "tint", "heat", "histogram":
            self.only(layer)
            until(lambda: self.painted() > 0, f"something is drawn: {layer}")
        self.only("tint")
        x, y, w, h = best["box"]
        inside = self.browser.execute_script("""
            const [x, y, w, h] = arguments, layer = document.getElementById("layer"), scale = layer.width / 320;
            return layer.getContext("2d").getImageData((x + w / 2) * scale, (y + h / 2) * scale, 1, 1).data[0];""",
            x, y, w, h)
        assert inside > 200, f"what moves is red at its best time, not {inside}"
        self.only("boxes", "tracks", "tint")
        assert (self.count("#timeline .changed") == self.count("#timeline .mean") == 1
                and self.count("#timeline .object") > 0)
        for key, group in ("z", "zones"), ("l", "lines"):
            self.keys(key)
            assert self.find(f"#overlay .{group}").get_attribute("visibility") == "hidden", f"{group} can be hidden"
            self.keys(key)

    def check_filters(self):
        cards = lambda: self.count("#events .event")  # noqa: E731
        everything = cards()
        assert everything == len(self.data()["objects"]) and self.count("#events img") == everything
        for name, value in ("least", "1000"), ("size", "100"), ("from", "1:00"):
            field = self.find(f"#{name}")
            before = field.get_attribute("value")
            field.clear()
            field.send_keys(value)
            until(lambda: not cards(), f"no event passes the filter {name}")
            field.clear()
            field.send_keys(before or " ")
            until(lambda: cards() == everything, f"all events pass without {name}")
        for value in "<b>right</b>", "":
            self.browser.execute_script("const zone = document.getElementById('zone'); zone.value = arguments[0];"
                                        "zone.dispatchEvent(new Event('input', {bubbles: true}))", value)
            expected = (sum(any(name == value for name, *_ in one["visits"]) for one in self.data()["objects"]) if value
                        else everything)
            assert cards() == expected, (value, cards(), expected)

    def draw_polygon(self, *corners):
        """Draws with the mouse on the picture. Corners are shares of its size, relative to its centre."""
        self.find("#zone-draw").click()
        overlay = self.find("#overlay")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", overlay)
        for x, y in corners:
            place = round(x * overlay.size["width"]), round(y * overlay.size["height"])
            webdriver.ActionChains(self.browser).move_to_element_with_offset(overlay, *place).click().perform()
            time.sleep(0.6)  # two quick clicks would be a double click
        self.keys(Keys.ENTER)

    def check_zones(self):
        """A zone can be drawn with the mouse. Its text is an option of the report."""
        self.browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        name = self.find("#zone-name")
        name.clear()
        name.send_keys("a: it's; ")
        self.draw_polygon((-0.25, -0.25), (0.25, -0.25), (0, 0.25))
        text = self.find("#zone-text").get_attribute("value")
        said = subprocess.run(["sh", "-c", f"printf %s {text}"], check=True, stdout=subprocess.PIPE, text=True).stdout
        found = re.fullmatch(r"--zones=a it's: (0\.2[45]\d),0\.2[45]\d 0\.7[45]\d,0\.2[45]\d 0\.(49|50)\d,0\.7[45]\d",
                             said)
        assert found, said
        assert self.count("#overlay .drawn polygon") == 1
        Select(self.find("#zone-kind")).select_by_value("mask")
        self.draw_polygon((-0.4, -0.4), (-0.3, -0.4), (-0.3, 0.4), (-0.4, 0.4))
        text = self.find("#zone-text").get_attribute("value")
        assert re.search(r" --set=mask-regions='0\.(09|10)\d,0\.(09|10)\d( 0\.\d{3},0\.\d{3}){3}'$", text), text
        assert self.count("#overlay .drawn polygon.ignored") == 1
        self.find("#zone-clear").click()
        assert (self.count("#overlay .drawn polygon") == 0
                and self.find("#zone-text").get_attribute("value") == "--zones=''")

    def check_names(self, title):
        """Names are shown as text, and each control has a name."""
        assert self.browser.title == f"{title} – motion report", self.browser.title
        assert self.find("h1").text == title
        nameless = self.browser.execute_script("""
            return [...document.querySelectorAll("button, select, input, video, [role]")].filter((e) =>
              e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
              .map((e) => e.outerHTML);""")
        assert not nameless, nameless
        for name in "zones", "lines":
            assert self.find(f"#{name}-label").is_displayed()

    def check_looks(self):
        """The page fits a phone, has a dark mode, and prints."""
        darkness = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)[0]"
        assert self.browser.execute_script(darkness) > 200
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})
        assert self.browser.execute_script(darkness) < 60
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        widths = (until(lambda: self.browser.execute_script("return [innerWidth, "
                                                            "document.scrollingElement.scrollWidth]"), "a width"))
        assert widths == [360, 360], widths
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert len(self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]) > 10000


def check_silence(chromium, folder):
    """Nothing was logged. Only these files, parts of them, and the page's own video were loaded."""
    # The test itself reads the canvas, which causes a warning about speed.
    assert not (lines := [one for one in chromium.get_log("browser") if "getImageData" not in one["message"]]), lines
    messages = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    # Ignore the first tab.
    urls = [one["request"]["url"][:200] for one in sent if one["documentURL"].startswith("file:")]
    assert all(url.startswith(("data:", "blob:", folder.as_uri() + "/")) for url in urls), urls
    return urls


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch)
        pages = make(folder)
        beside, = (folder / "two").glob("report.[mw]*")
        assert not list((folder / "one").glob("report.[mw]*"))
        chromium = browser.start(folder, "1400,1330", performance="ALL")
        try:
            for page, title in zip(pages, (NAME, "played")):
                report = Report(chromium, page)
                report.check_names(title)
                report.check_playing()
                report.check_seeking()
                report.check_drawing()
                report.check_filters()
                report.check_zones()
                assert check_silence(chromium, folder)
            if report.data()["clocks"]:  # mp4mux writes the clock time
                assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", report.find("#now").text), report.find("#now").text
            assert all((folder / "two" / link.get_attribute("href").rpartition("two/")[2]).is_file()
                       for link in chromium.find_elements(By.CSS_SELECTOR, "#events .clip"))
            report.check_looks()
            check_silence(chromium, folder)
            # Without its video, the page says what is missing.
            beside.unlink()
            chromium.refresh()
            until(lambda: beside.name in report.find("#message").text, "a sentence about the missing video")
            chromium.get_log("browser")
            check_long(chromium, folder)
        finally:
            chromium.quit()


def check_long(chromium, folder):
    """A page of an hour, with many objects and no video."""
    subprocess.run([ROOT / "tests/examples/long_report.py", folder / "long", "--hours=1"], check=True)
    chromium.get((folder / "long/report.html").as_uri())
    count = lambda: len(chromium.find_elements(By.CSS_SELECTOR, "#events .event"))  # noqa: E731
    assert count() == 60, count()
    chromium.find_element(By.ID, "more").click()
    assert count() == 120, count()
    chromium.find_elements(By.CSS_SELECTOR, "#events .main")[100].click()
    until(lambda: chromium.find_element(By.ID, "layer").get_attribute("data-boxes"), "boxes of a later minute")
    assert "There is no video" in chromium.find_element(By.ID, "message").text
    check_silence(chromium, folder)


if __name__ == "__main__":
    main()
