#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes docs/report.png, a picture of the report of vtest.avi in a browser:  report_picture.py MEDIA

MEDIA is a folder with vtest.avi (the examples/data of Debian's opencv-doc). Needs chromium, chromium-driver,
python3-selenium and python3-pil.
"""
import io
import pathlib
import subprocess
import sys
import tempfile
import time

from PIL import Image

docs = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(docs.parent / 'tests' / 'examples'))
import report_browser  # noqa: E402

ZONES = 'path: 0.0,0.24 0.62,0.34 0.62,0.62 0.0,0.45; car park: 0.72,0.1 1.0,0.1 1.0,0.5 0.72,0.35'
OBJECT, TIME = 7, 27.5  # the object that is chosen, and the time that is shown in seconds


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch)
        subprocess.run(
            [docs.parent / 'examples' / 'motion-report' / 'motion_report.py', f'--clip={sys.argv[1]}/vtest.avi',
             f'--out={folder}', f'--zones={ZONES}', '--lines=gate: 360,170 340,330'], check=True, timeout=300)
        browser = report_browser.start(folder)
        try:
            report = report_browser.Report(browser, folder / 'report.html')
            report.find(f'.event[data-key="object-{OBJECT}"] .main').click()
            browser.execute_script(
                "document.getElementById('histogram').click(); document.getElementById('video').controls = false")
            browser.execute_script("document.getElementById('video').currentTime = arguments[0]", TIME)
            report.expect_time(TIME, 'the script')
            time.sleep(1)
            picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB')
        finally:
            browser.quit()
    picture = picture.resize((1000, picture.height * 1000 // picture.width), Image.LANCZOS)
    picture.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(docs / 'report.png', optimize=True)


if __name__ == '__main__':
    main()
