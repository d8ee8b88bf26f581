"""A Redis and a gateway, each a process of its own."""
import json
import os
import socket
import subprocess
import time
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

TOKEN = "the-token-of-the-incidents"
AGAIN = 0.02


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, check, deadline=60, again=AGAIN):
    """Waits until a check holds. Returns the seconds of the wait."""
    began = time.monotonic()
    while not check():
        if time.monotonic() - began > deadline:
            raise AssertionError(f"not within {deadline} s: {what}")
        time.sleep(again)
    return time.monotonic() - began


def get(address, path, headers):
    """Returns the status and the header fields of an answer."""
    connection = HTTPConnection(address, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.headers


class Redis:
    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        options = ["--port", str(self.port), "--save", "", "--dir", self.folder, "--enable-debug-command", "local"]
        self.process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        until("Redis answers", lambda: self.call("PING") == "PONG")

    def call(self, *words):
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Gateway:
    """A process of the example, with a copy of the rules of its own."""

    def __init__(self, program, folder, number, variables, user):
        self.log = Path(folder, f"gateway-{number}.log")
        own = {"HOST": "127.0.0.1", "PORT": "0", "ADMIN_PORT": "0", "LOCAL_COPY": str(Path(folder, f"copy-{number}", "rules"))}
        Path(own["LOCAL_COPY"]).parent.mkdir(mode=0o777)
        if user:
            os.chown(Path(own["LOCAL_COPY"]).parent, user, -1)
        with self.log.open("w") as log:
            environment = {"PATH": os.environ["PATH"], **own, **variables}
            self.process = subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, stderr=log, text=True, user=user)
        lines = (self.process.stdout.readline() for _ in range(2))
        self.address, self.admin = (line.strip().rpartition("http://")[2] for line in lines)
        assert self.admin, self.log.read_text()

    def ask(self, key, headers=None):
        """Sends a request of a client. Returns the status and the header fields."""
        return get(self.address, "/", {"x-api-key": key, **(headers or {})})

    def ready(self):
        return get(self.admin, "/v1/ready", {})[0]

    def status(self, key):
        return self.ask(key)[0]

    def shows(self, text, key="probe"):
        """Returns whether the store counts a request of this client, by a policy with this text."""
        return text in self.ask(key)[1].get("ratelimit-policy", "")

    def counts(self):
        return self.shows("q=")

    def api(self, path):
        request = urllib.request.Request(f"http://{self.admin}{path}", headers={"authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)

    def health(self):
        return self.api("/v1/health")

    def is_healthy(self):
        return self.health()["healthy"]

    def mistake(self):
        """Returns what is wrong with the newest rules, or None."""
        return self.health()["rules"]["last_error"]

    def version(self):
        in_force = self.health()["rules"].get("in_force")
        return in_force["number"] if in_force else None
