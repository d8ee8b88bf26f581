"""Sends requests through a real Envoy, under load, with the server and Redis up, away and back.

    envoy.py SERVER ENVOY
"""
import sys

from trial import HERE, Trial, block_of, equal, free_ports, start_service, until, with_ports

SERVER, ENVOY = sys.argv[1:]
FRONT, SERVICE, LIMITS, REDIS = PORTS = free_ports(4)
GUIDE = "server_with_envoy.md"


def start_server(trial, *flags):
    listen = ["--drain-delay", "0s", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", f"127.0.0.1:{LIMITS}"]
    return trial.start(LIMITS, SERVER, "--envoy", trial.folder / "limits", "--deadline", "1s", *listen, *flags)


def start_envoy(trial, config):
    trial.write("envoy.yaml", config)
    return trial.start(FRONT, ENVOY, "-c", "envoy.yaml", "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id")


def check_limits(trial, run):
    """Users have the name of the run, so that each run has counters of its own."""
    user = f"{run}-user"
    answers = [trial.ask("/", user) for _ in range(4)]
    equal([answer[0] for answer in answers], [200, 200, 200, 429], "three requests a year")
    fields = answers[3][1]
    equal(fields["x-ratelimit-limit"], '3, 3;w=31536000;name="per-user"', "limit")
    equal(fields["x-ratelimit-remaining"], "0", "remaining")
    assert 1 <= int(fields["retry-after"]) <= 31_536_000, fields
    equal(trial.at_once("/", f"{run}-other", 200), {200: 3, 429: 197}, "200 requests at the same time")
    equal(trial.statuses("/partner", user, 3), [200, 200, 429], "a route with a domain of its own")
    equal(trial.statuses("/override", user, 3), [200, 200, 429], "a route that sends its own limit")
    # Each request reports 60 of 100 tokens when it ends. The reports may arrive late.
    answers = [trial.status("/tokens", user)]
    until("the budget is in debt", lambda: answers.append(trial.status("/tokens", user)) or answers[-1] == 429)
    equal(answers[:2], [200, 200], "a budget of tokens before its debt")
    equal(trial.status("/tokens", user), 429, "a budget in debt")
    # A refused request has taken no place. An admitted one gives its place back.
    equal(trial.status("/slots", user), 200, "a place")
    for _ in range(3):
        until("the place is free again", lambda: trial.status("/slots", user) == 200)


with Trial(FRONT) as trial:
    print("Envoy, as the guide shows")
    start_service(SERVICE)
    trial.write("limits/shop.yaml", block_of(GUIDE, "yaml", 0))
    server = start_server(trial)
    envoy = start_envoy(trial, with_ports(block_of(GUIDE, "yaml", 1), {8000: FRONT, 3000: SERVICE, 8081: LIMITS}))
    answers = [trial.ask("/", "ann") for _ in range(4)]
    equal([answer[0] for answer in answers], [200, 200, 200, 429], "three requests a minute")
    assert {"retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} <= set(answers[3][1]), answers[3]
    trial.stop(server)
    equal(trial.status("/", "ann"), 200, "without the server, Envoy lets requests pass")
    trial.stop(envoy)

    print("Envoy, with the server in memory")
    config = (HERE / "envoy.yaml").read_text()
    for name, port in zip(["FRONT", "SERVICE", "LIMITS"], PORTS):
        config = config.replace(f"port_value: {name}", f"port_value: {port}")
    limits = (HERE / "limits.yaml").read_text()
    (trial.folder / "limits" / "shop.yaml").unlink()
    trial.write("limits/all.yaml", limits.split("---\n")[0])
    trial.write("limits/partners.yaml", limits.split("---\n")[1])
    server = start_server(trial)
    start_envoy(trial, config)
    check_limits(trial, "memory")
    equal(trial.statuses("/", "bucket", 3), [200, 200, 429], "a token bucket")
    limits = limits.split("---\n")[0]
    trial.write("limits/all.yaml", limits.replace("requests_per_unit: 3,", "requests_per_unit: 4,"))
    until("the server follows the file", lambda: trial.status("/", "memory-user") == 200)
    trial.write("limits/all.yaml", "domain: shop\nlimits: []\n")
    until("the server names the problem", lambda: 'the key "limits" is unknown' in trial.log())
    equal(trial.status("/", "memory-user"), 429, "an unusable file changes nothing")
    trial.write("limits/all.yaml", limits)
    with trial.load("/", [200, 500], "under load, the server is killed and starts again"):
        until("requests are counted", lambda: trial.status("/", "before") == 429)
        trial.stop(server)
        equal(trial.status("/", "later"), 500, "without the server, Envoy refuses as configured")
        server = start_server(trial)
        until("Envoy finds the server again", lambda: trial.status("/", "again") == 200)
    with trial.load("/", [200], "under load, with the server back"):
        equal(trial.statuses("/", "memory-back", 4), [200, 200, 200, 429], "three requests a year")
    trial.stop(server)

    print("Envoy, with the server over Redis")
    redis = trial.start_redis(REDIS)
    server = start_server(trial, "--redis", f"redis://127.0.0.1:{REDIS}")
    until("Envoy finds the server again", lambda: trial.status("/", "first") == 200)
    check_limits(trial, "redis")
    with trial.load("/", [200], "under load, Redis is killed and starts again"):
        trial.stop(redis)
        equal(trial.status("/", "new"), 200, "without Redis, a limit allows")
        equal(trial.status("/strict", "new"), 429, "without Redis, a strict limit refuses")
        equal(trial.status("/", "redis-user"), 429, "without Redis, a known refusal stays")
        trial.start_redis(REDIS)
        until("the strict limit admits again", lambda: trial.status("/strict", "new") == 200)
        equal(trial.statuses("/", "fresh", 4), [200, 200, 200, 429], "with Redis back")
    server.terminate()
    equal(server.wait(timeout=15), 0, "exit after SIGTERM")
