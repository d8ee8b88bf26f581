"""Two servers with a Redis of their own, and what happens in an incident."""
import os
import shutil
import subprocess
import tempfile
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from processes import FORWARDED, TOKEN, Redis, Server, until


def document(quota="10/second burst 20", more=""):
    return (
        "limits:\n"
        "  - { name: everyone, quota: 50000/second, key: none }\n"
        f"  - {{ name: second, quota: {quota}, key: header x-api-key }}\n{more}"
    )


def seconds(took):
    if took < 0.1:
        return "less than 0.1 s"
    return f"{took:.0f} s" if took >= 10 else f"{took:.1f} s"


class Site:
    """The setting of an incident, and what happened in it."""

    def __init__(self, name, programs, prometheus, rules=None, user=None):
        self.name, self.prometheus = name, prometheus
        self.program, self.tool_path = programs
        self.folder = tempfile.mkdtemp(prefix=f"{name}-")
        os.chmod(self.folder, 0o755)
        self.redis = Redis(self.folder)
        self.steps, self.stopped, self.written = [], threading.Event(), None
        tokens = Path(self.folder, "tokens")
        tokens.write_text(f"on-call:rules:{TOKEN}\n")
        variables = {"CACHE_KEY_PREFIX": name, "TOWER_QUOTA_ADMIN_TOKENS": str(tokens), "REDIS_URL": self.redis.url}
        variables["TOWER_QUOTA_RULES"] = rules(self.folder) if rules else "redis"
        self.servers = [Server(self.program, self.folder, number, variables, user) for number in (1, 2)]
        self.began = time.monotonic()
        prometheus.add(name, [server.admin for server in self.servers])
        # The first call of a store connects.
        if rules:
            self.everywhere("requests are counted", Server.counts)

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.2f}  {self.name}: {text}", flush=True)

    def tool(self, *words, code=0, on=0):
        """Runs the command as a person does, which is a step of the fix. Returns what it prints."""
        address = f"http://{self.servers[on].admin}"
        environment = {**os.environ, "TOWER_QUOTA_ADMIN": address, "TOWER_QUOTA_TOKEN": TOKEN}
        began = time.monotonic()
        ran = subprocess.run([self.tool_path, *words], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60)
        took = time.monotonic() - began
        self.steps.append((words, took))
        output = ran.stdout + ran.stderr
        self.say(f"$ tower-quota {' '.join(words)}  # {took:.2f} s, exit code {ran.returncode}")
        for line in output.splitlines()[:12]:
            self.say(f"    {line}")
        assert ran.returncode == code, output
        return output

    def write(self, name, text):
        """Replaces a file by a rename."""
        path, new = Path(self.folder, name), Path(self.folder, name + ".new")
        new.write_text(text)
        new.rename(path)
        return name

    def load(self, key, rate):
        """Sends requests of a client to both servers in turn, until the end of the incident."""
        threading.Thread(target=self._send, args=(key, rate), daemon=True).start()

    def _send(self, key, rate):
        connections = [HTTPConnection(server.address, timeout=10) for server in self.servers]
        began, sent = time.monotonic(), 0
        while not self.stopped.is_set():
            connection = connections[sent % 2]
            try:
                connection.request("GET", "/v1/auth", headers={"x-api-key": key, **FORWARDED})
                connection.getresponse().read()
            except (HTTPException, OSError):
                connection.close()
            sent += 1
            self.stopped.wait(max(0.0, began + sent / rate - time.monotonic()))

    def everywhere(self, what, check, **options):
        """Waits until a check holds on both servers. Returns the seconds of the wait."""
        took = until(what, lambda: all(check(server) for server in self.servers), **options)
        self.say(f"{what}, after {took:.2f} s")
        return took

    def put(self, text, expect="any", **options):
        """Puts rules, which is a step, and waits until both servers have them. Returns the wait."""
        self.tool("put", self.write("rules.yaml", text), "--expect", expect, **options)
        newest = self.servers[options.get("on", 0)].version()
        return self.everywhere(f"version {newest} is in force on both", lambda server: server.version() == newest)

    def fires(self, alert, deadline=400):
        """Waits for an alert. Returns the seconds since the begin of the fault."""
        until(f"{alert} fires", lambda: alert in self.prometheus.firing(self.name), deadline)
        took = time.monotonic() - self.fault
        self.say(f"{alert} fires after {took:.0f} s")
        return took

    def begin_fault(self):
        # An alert on an increase needs a figure from before.
        scraped = f'sum(up{{job="{self.name}"}})'
        until("Prometheus scrapes both", lambda: self.prometheus.sum(scraped) == len(self.servers))
        self.fault, self.steps = time.monotonic(), []

    def is_logged(self, text):
        return any(text in server.log.read_text() for server in self.servers)

    def row(self, incident, noticed, afterwards):
        """Writes the row of the incident, with the steps since the begin of the fault."""
        commands = ", ".join(f"`{words[0]}`" for words, _ in self.steps)
        fix = f"{commands}: {seconds(sum(took for _, took in self.steps))}" if commands else "none"
        self.written = f"| {incident} | {noticed} | {fix} | {afterwards} |"
        self.say(self.written)

    def stop(self):
        self.stopped.set()
        for server in self.servers:
            server.process.kill()
            server.process.wait()
        self.redis.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
