"""A headless Chromium spoken to in WebDriver's own words, so that the tests need no driver library."""

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
# Names of what sticks out of its figure, or of the whole page.
CLIPPED = """
  const texts = [...document.querySelectorAll('svg text')].filter(t => {
    const box = t.getBoundingClientRect(), frame = t.closest('figure').getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
  });
  const wide = document.documentElement.scrollWidth > innerWidth ? ['the page'] : [];
  return [...texts.map((t) => t.textContent), ...wide]"""
_local = build_opener(ProxyHandler({}))  # the driver is on this machine; a proxy would not find it


class Browser:
    """One page at a time; closes with the `with` block."""

    def __init__(self, profile: Path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._root = f"http://127.0.0.1:{port}"
        self._driver = subprocess.Popen(
            [str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            self._wait_for_driver()
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._driver.terminate()
            raise
        self._session = f"/session/{answer['sessionId']}"

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            self._call("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait(timeout=10)

    def open(self, page: Path, *, width: int = 1200, height: int = 900, dark: bool = False, fragment: str = "") -> None:
        """Load a page from disk in a window of the given size and colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._call("POST", f"{self._session}/url", {"url": "about:blank"})
        self.console(), self.requests()  # forget what came before
        self._call("POST", f"{self._session}/url", {"url": page.resolve().as_uri() + fragment})

    def run(self, script: str) -> Any:
        """The value of a piece of JavaScript that returns one."""
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.devtools("Input.dispatchKeyEvent", {"type": kind, "key": key})

    def console(self) -> list[str]:
        """What the page complained about since the last call."""
        return [entry["message"] for entry in self._log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """The addresses that the page asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def clipped(self) -> list[str]:
        """What is cut off: text that leaves its figure, or a page wider than the screen."""
        return self.run(CLIPPED)

    def screenshot(self, *, whole_page: bool = False) -> bytes:
        answer = self.devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole_page})
        return base64.b64decode(answer["data"])

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _log(self, kind: str) -> list[dict[str, Any]]:
        return self._call("POST", f"{self._session}/se/log", {"type": kind})

    def _wait_for_driver(self) -> None:
        for _ in range(100):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except URLError:
                time.sleep(0.1)
        raise RuntimeError("chromedriver did not start within ten seconds")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        payload = None if method != "POST" else json.dumps(body or {}).encode()
        request = Request(self._root + path, payload, {"Content-Type": "application/json"}, method=method)
        try:
            with _local.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:500]}") from None


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory):
    """One browser for all tests of a process; folders with such tests import it in their conftest."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver, which are not installed")
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
