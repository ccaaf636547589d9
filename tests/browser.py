"""Debian's Chromium, driven over a pipe by its own protocol: no driver and no port."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--disable-dev-shm-usage",
             "--disable-background-networking", "--no-first-run", "--hide-scrollbars")  # fmt: skip
PATIENCE = 60


class Browser:
    """One tab."""

    def __init__(self, ears, mouth):
        self._ears, self._mouth, self._rest, self._number, self.errors = ears, mouth, b"", 0, []
        self._session = None
        self.target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{room}.enable")

    def do(self, method, **what):
        self._number += 1
        told = {"id": self._number, "method": method, "params": what}
        told |= {} if self._session is None else {"sessionId": self._session}
        os.write(self._mouth, json.dumps(told).encode() + b"\0")
        while (found := self._next()).get("id") != self._number:
            pass
        if "error" in found:
            raise RuntimeError(found["error"])
        return found["result"]

    def _next(self):
        while b"\0" not in self._rest:
            if not select.select([self._ears], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium says nothing")
            self._rest += os.read(self._ears, 1 << 20)
        head, _, self._rest = self._rest.partition(b"\0")
        found = json.loads(head)
        if found.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"):
            self.errors.append(found["params"])
        return found

    def value(self, script):
        found = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script):
        """Wait for something, also through the loading of another page."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError, RuntimeError):
                if self.value(script):
                    return
            time.sleep(0.02)
        raise TimeoutError(script)

    def go(self, url):
        self.do("Page.navigate", url=url)
        self.until(f"document.readyState == 'complete' && location.href != 'about:blank' && {json.dumps(url)} != ''")

    def press(self, selector):
        """Press a button that loads another page."""
        self.value(f"window.old = true; document.querySelector({json.dumps(selector)}).click()")
        self.until("!window.old && document.readyState == 'complete'")

    def write(self, selector, text):
        self.value(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def look(self, *, width=1100, height=800, dark=False, phone=False):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.do("Emulation.setEmulatedMedia", features=scheme)
        scale = 2 if phone else 1
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)

    def picture(self, path):
        found = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def browser(place):
    """A browser that ends with the block; its profile lies in a directory."""
    (far_ears, mouth), (ears, far_mouth) = os.pipe(), os.pipe()
    told = f'exec "$0" "$@" 3</dev/fd/{far_ears} 4>/dev/fd/{far_mouth}'  # where Chromium listens and speaks
    command = ["sh", "-c", told, CHROMIUM, *ARGUMENTS, f"--user-data-dir={place}"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, pass_fds=(far_ears, far_mouth), **silent)
    try:
        tab = Browser(ears, mouth)
        yield tab
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            tab.do("Target.closeTarget", targetId=tab.target)
        process.kill()
        process.wait()
        for one in (far_ears, far_mouth, ears, mouth):
            os.close(one)
