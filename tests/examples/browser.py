# SPDX-License-Identifier: LGPL-2.1-or-later
"""A headless Chromium for tests. `missing` names what is not installed."""
import os
import shutil

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    missing = ", ".join(name for name in ("chromium", "chromedriver") if not shutil.which(name))
except ImportError:
    missing = "python3-selenium"
HANGS = 900  # longer than anything takes on the busiest machine, in seconds


def start(folder, size, strategy="normal", **logs):
    """Starts the browser with its own profile in a folder. size: width and height of the window. strategy: what loading
    a page waits for. logs: additional kinds of logs."""
    options = Options()
    options.binary_location, options.page_load_strategy = shutil.which("chromium"), strategy
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={size}",
                     f"--user-data-dir={folder / 'profile'}", *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", **logs})
    os.environ["no_proxy"] = "127.0.0.1,localhost"  # for the driver
    found = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    found.set_page_load_timeout(HANGS)
    found.set_script_timeout(HANGS)
    return found
