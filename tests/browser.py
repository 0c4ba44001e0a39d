"""Chromium, driven through its pipe: open a page, run scripts in it, and click."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from io import BytesIO
from pathlib import Path

from PIL import Image

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --remote-debugging-pipe"
).split()


class Page:
    """An open page, controlled by messages of the Chrome DevTools Protocol."""

    def __init__(self, url: str, width: int = 1200, height: int = 900):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        command = [BROWSER, *FLAGS, f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}"]
        # The browser reads from descriptor 3, and writes to 4.
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser), os.close(from_browser)
        self.read, self.count, self.session = os.fdopen(self.into, "rb"), 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Page.navigate", url=url)
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.read.close()
        os.close(self.out)
        self.folder.cleanup()

    def _message(self) -> dict:
        text = b""
        while not text.endswith(b"\0"):
            byte = self.read.read1(1)
            if not byte:
                raise RuntimeError(f"{BROWSER} ended.")
            text += byte
        return json.loads(text[:-1])

    def send(self, method: str, **params) -> dict:
        """Send a command and return its result."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self.count:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def run(self, script: str):
        """The value of a script."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def click(self, selector: str, share: float = 0.5) -> None:
        """Click into an element, at a share of its width."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.run(f"(({{x, y, width, height}}) => [x, y, width, height])"
                       f"(document.querySelector({selector!r}).getBoundingClientRect())")  # fmt: skip
        place = {"x": box[0] + share * box[2], "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **place)

    def screenshot(self, path: str) -> None:
        """Save a screenshot as PNG with a palette."""
        seen = Image.open(BytesIO(b64decode(self.send("Page.captureScreenshot")["data"]))).convert("RGB")
        seen.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    if BROWSER is None:
        sys.exit("There is no Chromium to take the picture with; install it.")
    with Page(Path(sys.argv[1]).resolve().as_uri(), 1000, 1150) as shown:
        shown.screenshot(sys.argv[2])
