"""A real Chromium without a screen, and the program that serves the page to it."""

from __future__ import annotations

import base64
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 180.0  # seconds for a page or a fit, also on a busy machine
WIDE, PHONE = 1280, 390  # pixels
SHOTS = Path("browser-output")


@contextmanager
def served() -> Iterator[str]:
    """The address that ``sumgp app`` prints; the program is stopped as by Ctrl-C."""
    command = [sys.executable, "-m", "sumgp.cli.app", "app", "--no-browser"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert program.stdout is not None
    try:
        line = program.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, line
        yield found[0]
    finally:
        program.send_signal(signal.SIGINT)
        rest = program.communicate(timeout=60)[0]
    assert program.returncode == 0, rest
    assert "stopped" in rest
    assert "Traceback" not in rest


@contextmanager
def chromium(downloads: Path) -> Iterator[webdriver.Chrome]:
    """A browser that keeps what it downloads in a folder, and notes what its console says."""
    options = Options()
    options.binary_location = next(p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n)))
    # Without its sandbox, because tests often run as root; it opens no page but ours.
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    several = {"profile.default_content_setting_values.automatic_downloads": 1}
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads), **several})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        look(browser)
        yield browser
    finally:
        browser.quit()


def look(browser: webdriver.Chrome, width: int = WIDE, theme: str = "light") -> None:
    """Set the width of the window and the theme that the person prefers."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)


def wait(browser: webdriver.Chrome, condition: Any) -> Any:
    """What the condition gives, once it is true."""
    return WebDriverWait(browser, PATIENCE, 0.2).until(condition)


def shown(browser: webdriver.Chrome, selector: str) -> Any:
    """The first such element, once it can be seen."""
    return wait(browser, lambda b: next((e for e in b.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()), None))


def drawn(browser: webdriver.Chrome) -> None:
    """Wait until the script has drawn every panel of every figure."""
    script = """const figures = [...document.querySelectorAll("figure[data-figure]")];
      return figures.length > 0 && figures.every((f) => f.querySelector("picture").hidden
        && [...f.querySelectorAll(".panel")].every((p) => p.querySelector(".main-svg")));"""
    wait(browser, lambda b: b.execute_script(script))


def downloaded(folder: Path, name: str) -> bytes:
    """A file of the downloads, once it is complete."""
    until = time.monotonic() + PATIENCE
    while not (folder / name).is_file() or list(folder.glob("*.crdownload")):
        assert time.monotonic() < until, [path.name for path in folder.iterdir()]
        time.sleep(0.1)
    return (folder / name).read_bytes()


def shot(browser: webdriver.Chrome, name: str) -> None:
    """The whole page as a picture, to be looked at."""
    SHOTS.mkdir(exist_ok=True)
    size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (SHOTS / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def check_page(browser: webdriver.Chrome, name: str) -> None:
    """In both themes and at both widths: no serious finding of axe, nothing wider than the window; pictures are kept."""
    found = []
    for theme in ("light", "dark"):
        for width in (WIDE, PHONE):
            look(browser, width, theme)
            time.sleep(0.6)
            browser.execute_script("window.scrollTo(0, 0)")
            shot(browser, f"{name}-{width}-{theme}")
            wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            found += [f"{width} {theme}: {wide} pixels too wide"] if wide > 0 else []
            violations = Axe().run(browser)["violations"]
            found += [
                f"{width} {theme}: {v['id']} {[n['html'][:120] for n in v['nodes'][:3]]}"
                for v in violations
                if v["impact"] in ("serious", "critical")
            ]
    look(browser)
    assert found == []


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the console says that is worse than a remark: errors of scripts, and what the page's rules forbade."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def elsewhere(browser: webdriver.Chrome) -> list[str]:
    """Addresses that the page asked for and that are not of this machine."""
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    return [address for address in asked if not address.startswith(("http://127.0.0.1:", "data:", "blob:"))]
