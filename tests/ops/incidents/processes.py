"""A Redis and a server, each a process of its own."""
import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

TOKEN = "the-token-of-the-incidents"
AGAIN = 0.02
# The request of a client, as a gateway describes it.
FORWARDED = {"x-forwarded-method": "GET", "x-forwarded-uri": "/", "x-forwarded-host": "localhost", "x-forwarded-for": "192.0.2.1"}


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


class Server:
    """A process of the server, with a copy of the rules of its own."""

    def __init__(self, program, folder, number, variables, user):
        self.log = Path(folder, f"server-{number}.log")
        copy = Path(folder, f"copy-{number}", "rules")
        copy.parent.mkdir(mode=0o777)
        if user:
            os.chown(copy.parent, user, -1)
        own = {f"TOWER_QUOTA_{port}": "127.0.0.1:0" for port in ("GRPC", "HTTP", "ADMIN")} | {"TOWER_QUOTA_RULES_COPY": str(copy)}
        with self.log.open("w") as log:
            environment = {"PATH": os.environ["PATH"], **own, **variables}
            self.process = subprocess.Popen([program], env=environment, stdout=log, stderr=log, text=True, user=user)
        until("the server serves", lambda: self.process.poll() is not None or self.addresses())
        assert self.process.poll() is None, self.log.read_text()
        _, self.address, self.admin = self.addresses()

    def addresses(self):
        """Returns the addresses for gRPC, HTTP and operators, which the first line of the server names."""
        line = re.search(r"serves gRPC on .*\n", self.log.read_text())
        return line and re.findall(r"127\.0\.0\.1:\d+", line[0])[:3]

    def ask(self, key, headers=None):
        """Asks for a request of a client, as a gateway does. Returns the status and the header fields."""
        return get(self.address, "/v1/auth", {"x-api-key": key, **FORWARDED, **(headers or {})})

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
