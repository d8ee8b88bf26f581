"""Runs the service in Python that the guide shows, with the server up, away and back.

    python.py SERVER
"""
import importlib
import json
import sys
from urllib.error import HTTPError

from trial import Trial, block_of, equal, free_ports, until, with_ports

SERVER = sys.argv[1]
FRONT, LIMITS = free_ports(2)
GUIDE = "server_with_python.md"


def start_server(trial, *flags):
    listen = ["--drain-delay", "0s", "--grpc", "127.0.0.1:0", "--http", f"127.0.0.1:{LIMITS}", "--admin", "127.0.0.1:0"]
    return trial.start(LIMITS, SERVER, "--rules", "rules.yaml", "--deadline", "1s", *listen, *flags)


with Trial(FRONT) as trial:
    print("Python, as the guide shows")
    trial.write("rules.yaml", block_of(GUIDE, "yaml"))
    for number, name in enumerate(["limits.py", "service.py", "complete.py"]):
        ports = [{8080: LIMITS}, {8000: FRONT}, {}][number]
        trial.write(name, with_ports(block_of(GUIDE, "python", number), ports))
    server = start_server(trial)
    trial.start(FRONT, sys.executable, "-B", "service.py")
    answers = [trial.ask("/", "ann") for _ in range(4)]
    equal([answer[0] for answer in answers], [200, 200, 200, 429], "three requests a minute")
    assert '"user";r=2;' in answers[0][1]["ratelimit"], answers[0]
    refused = answers[3]
    assert int(refused[1]["retry-after"]) >= 1 and refused[1]["content-type"] == "application/problem+json", refused
    equal(json.loads(refused[2])["status"], 429, "the body of a refusal")

    sys.path.insert(0, str(trial.folder))
    sys.dont_write_bytecode = True
    complete = importlib.import_module("complete").complete
    # Each call reserves 600 of 1,000 tokens.
    during = []
    used = [complete("ann", tokens) for tokens in (lambda _: 100, lambda _: during.append(complete("ann", None)) or 200, lambda _: 300)]
    equal((used, during), ([100, 200, 300], [429]), "tokens, with a call during the second one")

    trial.stop(server)
    equal(trial.statuses("/", "ann", 2), [200, 200], "without the server, requests pass")
    server = start_server(trial)
    until("requests are counted again", lambda: "ratelimit" in trial.ask("/", "again")[1])

    # A call without the token is a mistake to see, and no outage.
    trial.stop(server)
    server = start_server(trial, "--token", "a-token-of-the-trial")
    call = {"method": "GET", "path": "/", "keys": {"user": "ann"}}
    try:
        importlib.import_module("limits").check(call)
        raise AssertionError("a call without the token has passed")
    except HTTPError as error:
        equal(error.code, 401, "a call without the token")
    trial.stop(server)
    equal(complete("ann", lambda _: 1), 1, "without the server, completions pass")
