"""Processes, requests and load of the trials with real gateways."""
import collections
import contextlib
import http.client
import json
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).parent
GUIDES = HERE.parents[3] / "docs" / "guide"
# The slowest answer that a client may see, on a busy machine.
SLOWEST = 5.0


def free_ports(count):
    """Returns ports below those of outgoing connections, so that no connection takes the port of a server that is away."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        if port not in ports and not connects(port):
            ports.append(port)
    return ports


def connects(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def until(what, holds):
    """Waits for at most 30 seconds."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)


def equal(found, expected, what):
    assert found == expected, f"{what}: {found}, not {expected}"
    print(f"  {what}: {found}")


def block_of(guide, language, number=0):
    """Returns a code block of a guide, so that the trials run what the guide shows."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (GUIDES / guide).read_text(), re.M | re.S)
    return blocks[number]


def with_ports(text, ports):
    """Replaces the ports of a guide's configuration by free ones."""
    for shown, port in ports.items():
        assert str(shown) in text, f"the configuration has no port {shown}"
        text = re.sub(rf"\b{shown}\b", str(port), text)
    return text


class Service(BaseHTTPRequestHandler):
    """The service behind a gateway, which answers with the request that it has received."""

    protocol_version = "HTTP/1.1"
    # Buffers an answer, so that the head and the body are one write.
    wbufsize = -1

    # The requests that the service has cut.
    cut = 0

    def answer(self):
        if self.path == "/cut":
            Service.cut += 1
            self.close_connection = True
            return
        length = int(self.headers.get("content-length") or 0)
        body = json.dumps({
            "method": self.command,
            "target": self.path,
            "body": self.rfile.read(length).decode(),
            "fields": {name.lower(): value for name, value in self.headers.items()},
        }).encode()
        self.send_response(500 if self.path == "/broken" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer

    def handle(self):
        # HAProxy resets connections that it no longer needs.
        with contextlib.suppress(ConnectionResetError):
            super().handle()

    def log_message(self, *_):
        pass


def start_service(port):
    service = ThreadingHTTPServer(("127.0.0.1", port), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()


class Trial:
    """The processes of a trial, with a folder and a log of their own."""

    def __init__(self, front):
        self.front = front
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.folder.chmod(0o755)
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.log(), file=sys.stderr)
        for process in self.processes:
            self.stop(process)
        shutil.rmtree(self.folder)

    def log(self):
        return (self.folder / "log").read_text()

    def write(self, name, text):
        """Replaces a file by a rename."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)
        return path

    def start(self, port, *command):
        """Starts a command, and waits until it listens on a port."""
        log = open(self.folder / "log", "a")
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        until(f"{command[0]} listens", lambda: connects(port) or process.poll() is not None)
        assert process.poll() is None, f"{command[0]} has ended"
        return process

    def start_redis(self, port):
        return self.start(port, "redis-server", "--port", port, "--save", "", "--appendonly", "no")

    def stop(self, process):
        process.kill()
        process.wait()

    def ask(self, path, user, method="GET", body=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.front, timeout=10)
        headers = {"x-user": user} | {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text

    def status(self, path, user, **more):
        return self.ask(path, user, **more)[0]

    def statuses(self, path, user, count, **more):
        return [self.status(path, user, **more) for _ in range(count)]

    def at_once(self, path, user, count):
        """Sends requests at the same time, and returns the number of each status."""
        with ThreadPoolExecutor(16) as pool:
            return dict(collections.Counter(pool.map(lambda _: self.status(path, user), range(count))))

    @contextlib.contextmanager
    def load(self, path, expected, what):
        """Sends requests of new users before, during and after the block. Fails on an unexpected status or a slow answer."""
        ended = threading.Event()
        found, slowest = collections.Counter(), [0.0]

        def send(number):
            sent = 0
            connection = http.client.HTTPConnection("127.0.0.1", self.front, timeout=10)
            while not ended.wait(0.002):
                began = time.monotonic()
                try:
                    connection.request("GET", path, headers={"x-user": f"load-{number}-{sent}-{began}"})
                    response = connection.getresponse()
                    response.read()
                    found[response.status] += 1
                except (OSError, http.client.HTTPException) as error:
                    found[type(error).__name__] += 1
                    connection.close()
                slowest[0] = max(slowest[0], time.monotonic() - began)
                sent += 1

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            until("requests run", lambda: found.total() > 500)
            yield
            enough = found.total() + 500
            until("requests run", lambda: found.total() > enough)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert set(found) <= set(expected), f"{what}: {dict(found)}, and only {expected} are expected"
        assert slowest[0] < SLOWEST, f"{what}: an answer took {slowest[0]:.1f} s"
        print(f"  {what}: {dict(found)}, the slowest after {slowest[0] * 1000:.0f} ms")
