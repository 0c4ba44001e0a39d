"""A headless Chromium, driven through the pipe of its DevTools protocol, for the tests."""

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = "--headless=new --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe".split()


class Chromium:
    """One page of a browser.

    Parameters
    ----------
    folder : Path, for the browser's own files and for downloads
    width, height : int, size of the window in pixels
    *flags : more flags of the command

    Attributes
    ----------
    errors : list of str, what the console of the page says about errors
    """

    def __init__(self, folder: Path, width: int, height: int, *flags: str):
        self.folder, self.errors, self.replies, self.unread, self.session = folder, [], {}, b"", None
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        command = [BROWSER, *FLAGS, *flags, f"--window-size={width},{height}", f"--user-data-dir={folder}/user"]
        # The browser reads from descriptor 3 and writes to descriptor 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        pages = self("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self("Emulation.setDeviceMetricsOverride", **metrics)
        self("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait()
        os.close(self.write)
        os.close(self.read)

    def __call__(self, method: str, **parameters) -> dict:
        """Call a method of the protocol, and return its result.  TimeoutError after a minute."""
        number = len(self.replies) + 1
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while number not in self.replies:
            self._receive(deadline - time.monotonic())
        reply = self.replies[number]
        assert "error" not in reply, (method, reply["error"])
        return reply["result"]

    def _receive(self, seconds: float) -> None:
        """Handle the messages that arrive within some seconds."""
        if not select.select([self.read], [], [], max(seconds, 0))[0]:
            raise TimeoutError("The browser does not answer.")
        *messages, self.unread = (self.unread + os.read(self.read, 1 << 20)).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.replies[message["id"]] = message
            elif message["method"] == "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            elif message["method"] == "Runtime.consoleAPICalled" and message["params"]["type"] == "error":
                self.errors.append(str(message["params"]["args"]))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(message["params"]["entry"]["text"])

    def open(self, address: str) -> None:
        """Load a page, and wait until it is loaded."""
        self("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str):
        """The value of an expression in the page; promises are waited for.  AssertionError if it throws."""
        reply = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Wait until a condition holds in the page.  TimeoutError if it does not in some seconds."""
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition} does not hold after {seconds} s; errors: {self.errors}.")
            time.sleep(0.05)
