# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over its pipe: what a test needs to click, to type and to read.

The browser has a directory of its own, which is removed with it. `complaints` collects the page's
errors and its requests to any host but its own.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions
    --disable-default-apps --disable-dev-shm-usage --hide-scrollbars --no-proxy-server
    --remote-debugging-pipe""".split()
PATIENCE = 60  # seconds


class Browser:
    def __init__(self, program):
        self.place = tempfile.mkdtemp(prefix="mortise-browser-", dir="/tmp")  # for its sockets
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def arrange():  # the pipe is 3 and 4 there
            high = [os.dup(fd) for fd in (to_read, to_write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
        # The browser's open processes end with this one.
        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.place}", "about:blank"],
            env={**os.environ, "TMPDIR": self.place},
            preexec_fn=arrange, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.session = 0, b"", None
        self.complaints, self.host = [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    # ------------------------------------------------------------- the protocol

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(what["exceptionDetails"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.complaints.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            host = urllib.parse.urlsplit(what["request"]["url"]).netloc
            if self.host and host != self.host:
                self.complaints.append("asks " + what["request"]["url"])

    def call(self, method, **arguments):
        self.number += 1
        message = {"id": self.number, "method": method, "params": arguments}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                break
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    # ----------------------------------------------------------------- the page

    def open(self, url, width=1280, height=900, dark=False):
        self.host = urllib.parse.urlsplit(url).netloc
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {json.dumps(result['exceptionDetails'])[:400]}")
        return result["result"].get("value")

    def until(self, script):
        """Waits for it to be true; its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.evaluate(script)
            if value:
                return value
            time.sleep(0.05)
        text = self.evaluate("document.body.innerText")
        raise AssertionError(f"never became true: {script}\n{text}\n{self.complaints}")

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def click(self, selector):
        """Where a hand would: in its middle, whatever lies on top there."""
        spot = self.until(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            if (!element) return null;
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return box.width ? [box.x + box.width / 2, box.y + box.height / 2] : null; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], button="left",
                      clickCount=1)

    def press(self, key):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        arguments = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        if key not in codes:
            arguments["text"] = key
        elif key == "Enter":
            arguments["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **arguments)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        height = int(self.evaluate("document.documentElement.scrollHeight"))
        width = int(self.evaluate("innerWidth"))
        data = self.call("Page.captureScreenshot", format=path.rsplit(".", 1)[1],
                         captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))
