"""A real browser for all tests of pages: Chromium without a window, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustump.page import Page


class Browser:
    """A browser that opens pages from the disk, and refuses those that log an error."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, page: Page, *, width: int = 1280) -> None:
        path = self.folder / "page.html"
        page.save(path)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(path.as_uri())
        self.run("return new Promise((done) => setTimeout(done, 50))")
        self.check()

    def run(self, script: str, *arguments: Any) -> Any:
        """The result of a script in the page, in which `gpustump` is the model."""
        return self.driver.execute_script(script, *arguments)

    def tab(self, name: str) -> None:
        self.element(f"//button[@role='tab'][.='{name}']").click()

    def element(self, path: str) -> Any:
        """The first element that is shown; `path` is an XPath."""
        for found in self.driver.find_elements("xpath", path):
            if found.is_displayed():
                return found
        raise AssertionError(f"nothing is shown at {path}")

    def check(self) -> None:
        """Nothing was logged: no error of a script, and nothing that the policy refused."""
        assert self.driver.get_log("browser") == []


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its chromedriver is installed")
    folder = tmp_path_factory.mktemp("pages")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for option in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"user-data-dir={folder / 'user'}",
    ):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    saving = {"behavior": "allow", "downloadPath": str(folder)}
    found.execute_cdp_cmd("Browser.setDownloadBehavior", saving)
    yield Browser(found, folder)
    found.quit()
