"""Sends requests through a real Envoy, with the server up, away and back, and with Redis up, away and back.

    envoy.py SERVER ENVOY
"""
import http.client
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SERVER, ENVOY = sys.argv[1:]
HERE = pathlib.Path(__file__).parent
WORK = pathlib.Path(tempfile.mkdtemp())
FRONT, SERVICE, LIMITS, REDIS = range(4)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


PORTS = free_ports(4)
PROCESSES = []


def start(*command):
    log = open(WORK / "log", "a")
    process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, cwd=WORK)
    PROCESSES.append(process)
    return process


def start_server(*flags):
    server = start(SERVER, "--envoy", WORK / "limits", "--grpc", f"127.0.0.1:{PORTS[LIMITS]}", "--deadline", "1s", *flags)
    until("the server listens", lambda: connects(PORTS[LIMITS]))
    return server


def start_redis():
    redis = start("redis-server", "--port", PORTS[REDIS], "--save", "", "--appendonly", "no")
    until("Redis listens", lambda: connects(PORTS[REDIS]))
    return redis


def stop(process):
    process.kill()
    process.wait()


def connects(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def until(what, holds):
    """Waits for at most 30 seconds."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)


def ask(path, user):
    connection = http.client.HTTPConnection("127.0.0.1", PORTS[FRONT], timeout=10)
    connection.request("GET", path, headers={"x-user": user})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, dict((name.lower(), value) for name, value in response.getheaders())


def status(path, user):
    return ask(path, user)[0]


def equal(found, expected, what):
    assert found == expected, f"{what}: {found}, not {expected}"
    print(f"  {what}: {found}")


def check_limits(run):
    """Users have the name of the run, so that each run has counters of its own."""
    user = f"{run}-user"
    answers = [ask("/", user) for _ in range(4)]
    equal([answer[0] for answer in answers], [200, 200, 200, 429], "three requests a year")
    fields = answers[3][1]
    equal(fields["x-ratelimit-limit"], '3, 3;w=31536000;name="per-user"', "limit")
    equal(fields["x-ratelimit-remaining"], "0", "remaining")
    assert 1 <= int(fields["retry-after"]) <= 31_536_000, fields
    # Each request reports 60 of 100 tokens when it ends. The reports may arrive late.
    answers = [status("/tokens", user)]
    until("the budget is in debt", lambda: answers.append(status("/tokens", user)) or answers[-1] == 429)
    equal(answers[:2], [200, 200], "a budget of tokens before its debt")
    equal(status("/tokens", user), 429, "a budget in debt")
    # A refused request has taken no place. An admitted one gives its place back.
    equal(status("/slots", user), 200, "a place")
    for _ in range(3):
        until("the place is free again", lambda: status("/slots", user) == 200)


envoy_config = (HERE / "envoy.yaml").read_text()
for name, port in zip(["FRONT", "SERVICE", "LIMITS"], PORTS):
    envoy_config = envoy_config.replace(f"port_value: {name}", f"port_value: {port}")
(WORK / "envoy.yaml").write_text(envoy_config)
limits = (HERE / "limits.yaml").read_text()
limits_file = WORK / "limits" / "shop.yaml"
limits_file.parent.mkdir()
limits_file.write_text(limits)

try:
    print("in memory")
    server = start_server()
    start(ENVOY, "-c", "envoy.yaml", "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id")
    until("Envoy listens", lambda: connects(PORTS[FRONT]))
    check_limits("memory")
    equal([status("/", "bucket") for _ in range(3)], [200, 200, 429], "a token bucket")
    limits_file.write_text(limits.replace("requests_per_unit: 3,", "requests_per_unit: 4,"))
    until("the server follows the file", lambda: status("/", "memory-user") == 200)
    limits_file.write_text("domain: shop\nlimits: []\n")
    until("the server names the problem", lambda: 'the key "limits" is unknown' in (WORK / "log").read_text())
    equal(status("/", "memory-user"), 429, "an unusable file changes nothing")
    limits_file.write_text(limits)
    stop(server)
    equal(status("/", "later"), 500, "without the server, Envoy decides")
    server = start_server()
    until("Envoy finds the server again", lambda: status("/", "again") == 200)

    print("over Redis")
    stop(server)
    redis = start_redis()
    server = start_server("--redis", f"redis://127.0.0.1:{PORTS[REDIS]}")
    until("Envoy finds the server again", lambda: status("/", "first") == 200)
    check_limits("redis")
    stop(redis)
    equal(status("/", "new"), 200, "without Redis, a limit allows")
    equal(status("/strict", "new"), 429, "without Redis, a strict limit refuses")
    equal(status("/", "redis-user"), 429, "without Redis, a known refusal stays")
    redis = start_redis()
    until("the strict limit admits again", lambda: status("/strict", "new") == 200)
    equal([status("/", "fresh") for _ in range(4)], [200, 200, 200, 429], "with Redis back")
    server.terminate()
    equal(server.wait(timeout=15), 0, "exit after SIGTERM")
except BaseException:
    print((WORK / "log").read_text(), file=sys.stderr)
    raise
finally:
    for process in PROCESSES:
        stop(process)
    shutil.rmtree(WORK)
