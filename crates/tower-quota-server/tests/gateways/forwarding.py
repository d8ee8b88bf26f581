"""Sends requests through a real nginx, Caddy or HAProxy that asks the server by HTTP, under load, with the server and Redis up, away
and back.

    forwarding.py SERVER nginx|caddy|haproxy
"""
import json
import socket
import sys

from trial import HERE, Service, Trial, block_of, equal, free_ports, start_service, until, with_ports

SERVER, GATEWAY = sys.argv[1:]
FRONT, SERVICE, LIMITS, REDIS, PROXY = free_ports(5)
GUIDE = "server_with_nginx.md" if GATEWAY == "nginx" else "server_with_caddy.md"


def start_server(trial, rules, *flags):
    listen = ["--drain-delay", "0s", "--grpc", "127.0.0.1:0", "--http", f"127.0.0.1:{LIMITS}", "--admin", "127.0.0.1:0"]
    return trial.start(LIMITS, SERVER, "--rules", rules, "--deadline", "1s", *listen, *flags)


def start_nginx(trial):
    """Includes the configuration of the guide in an nginx without rights."""
    folders = "".join(f"    {kind}_temp_path {kind};\n" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    trial.write("limits.conf", with_ports(block_of(GUIDE, "nginx"), {8000: FRONT, 8080: LIMITS, 3000: SERVICE}))
    trial.write("nginx.conf", f"""
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 512; }}
http {{
    access_log off;
{folders}    include limits.conf;
}}
""")
    return trial.start(FRONT, "nginx", "-p", trial.folder, "-c", "nginx.conf", "-e", "stderr")


def start_caddy(trial):
    text = with_ports(block_of(GUIDE, "caddy"), {8000: FRONT, 8080: LIMITS, 3000: SERVICE})
    trial.write("Caddyfile", "{\n\tadmin off\n}\n" + text)
    return trial.start(FRONT, "caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile")


def start_haproxy(trial):
    trial.write("limits.lua", with_ports(block_of(GUIDE, "lua"), {8079: PROXY}))
    text = with_ports(block_of(GUIDE, "haproxy"), {8000: FRONT, 8079: PROXY, 8080: LIMITS, 3000: SERVICE})
    return trial.start(FRONT, "haproxy", "-db", "-f", trial.write("haproxy.cfg", text))


def is_counted(answer):
    return "ratelimit" in answer[1]


def check_unreadable(trial):
    """A request that the server cannot read is refused, as it would pass uncounted otherwise."""
    for count in [*range(80, 110), 200]:
        fields = {f"x-{number}": "a" for number in range(count)}
        answer = trial.ask("/", f"{count} fields", **fields)
        assert answer[0] in (400, 431) or is_counted(answer), (count, answer)
    for target in [b"/\xff", b"/\xc3\xa9", b"/a|b{}", b"/a\"b", b"//", b"/%00", b"/..;/", b"/?" + b"a" * 7000, b"http://other/"]:
        status, counted = ask_raw(trial, target)
        assert status == 400 or counted, (target, status)


def ask_raw(trial, target):
    """Returns the status, and whether the limits have counted the request."""
    with socket.create_connection(("127.0.0.1", trial.front), timeout=10) as connection:
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        with connection.makefile("rb") as answer:
            head = answer.read().partition(b"\r\n\r\n")[0].lower()
    return int(head.split()[1]), b"\r\nratelimit:" in head


def check_limits(trial, run):
    user = f"{run}-user"
    answers = [trial.ask("/", user) for _ in range(4)]
    equal([answer[0] for answer in answers], [200, 200, 200, 429], "three requests")
    admitted, refused = answers[0], answers[3]
    assert '"user";r=2;' in admitted[1]["ratelimit"] and '"user";q=3' in admitted[1]["ratelimit-policy"], admitted
    assert '"user";r=0;' in refused[1]["ratelimit"] and int(refused[1]["retry-after"]) >= 1, refused
    equal(refused[1]["content-type"], "application/problem+json", "the type of a refusal")
    details = json.loads(refused[2])
    equal((details["status"], "type" in details), (429, True), "the body of a refusal")
    equal(trial.at_once("/", f"{run}-other", 200), {200: 3, 429: 197}, "200 requests at the same time")
    # A limit by the method and the path of the request, with a body for the service.
    written = trial.ask("/orders/7?a=b", user, "POST", "an order " * 1000)
    equal(written[0], 200, "a request with a body")
    received = json.loads(written[2])
    equal((received["method"], received["target"], len(received["body"])), ("POST", "/orders/7?a=b", 9000), "the service receives")
    equal(trial.status("/orders/7", user, method="POST", body="an order"), 429, "the next request with this method and path")
    # A forged field of a client changes neither its address nor its method.
    forged = [trial.status("/by-address", user, x_forwarded_for=f"192.0.2.{i}", x_forwarded_uri="/", x_forwarded_method="PUT") for i in range(3)]
    equal(forged, [200, 200, 429], "a client with forged fields")
    equal(trial.status("/hidden", user), 403, "a blocked path")
    equal(trial.status("/keyed", user), 400, "a request without its key")
    answer = trial.ask("/private", user)
    equal((answer[0], answer[1]["www-authenticate"]), (401, "Bearer"), "a request without credentials")
    check_unreadable(trial)
    equal(trial.status("/broken", user), 500, "an error of the service")
    before = Service.cut
    equal((trial.status("/cut", user, method="POST", body="an order"), Service.cut - before), (502, 1), "a service that breaks gets a request once")


with Trial(FRONT) as trial:
    print(f"{GATEWAY}, as the guide shows")
    start_service(SERVICE)
    rules = trial.write("rules/rules.yaml", block_of(GUIDE, "yaml"))
    server = start_server(trial, rules)
    {"nginx": start_nginx, "caddy": start_caddy, "haproxy": start_haproxy}[GATEWAY](trial)
    equal(trial.statuses("/", "ann", 4), [200, 200, 200, 429], "three requests a minute")
    trial.stop(server)

    print(f"{GATEWAY}, with the server in memory")
    text = (HERE / "rules.yaml").read_text()
    trial.write("rules/rules.yaml", text)
    server = start_server(trial, rules)
    check_limits(trial, "memory")
    trial.write("rules/rules.yaml", text.replace("3/day", "4/day"))
    until("the server follows the file", lambda: '"user";q=4' in trial.ask("/", "follows")[1].get("ratelimit-policy", ""))
    trial.write("rules/rules.yaml", text.replace("3/day", "3/dya"))
    until("the server names the problem", lambda: "dya" in trial.log())
    assert '"user";q=4' in trial.ask("/", "after a mistake")[1]["ratelimit-policy"]
    trial.write("rules/rules.yaml", text)
    with trial.load("/", [200], "under load, the server is killed and starts again"):
        assert is_counted(trial.ask("/", "before"))
        trial.stop(server)
        answer = trial.ask("/", "later")
        equal((answer[0], is_counted(answer)), (200, False), "without the server, a request passes uncounted")
        server = start_server(trial, rules)
        until("requests are counted again", lambda: is_counted(trial.ask("/", "again")))
    trial.stop(server)

    print(f"{GATEWAY}, with the server over Redis")
    redis = trial.start_redis(REDIS)
    server = start_server(trial, rules, "--redis", f"redis://127.0.0.1:{REDIS}")
    until("requests are counted", lambda: is_counted(trial.ask("/", "first")))
    check_limits(trial, "redis")
    with trial.load("/", [200], "under load, Redis is killed and starts again"):
        trial.stop(redis)
        answer = trial.ask("/", "new")
        equal((answer[0], is_counted(answer)), (200, False), "without Redis, a limit allows")
        answer = trial.ask("/strict", "new")
        equal((answer[0], answer[1]["retry-after"]), (503, "1"), "without Redis, a strict limit refuses")
        trial.start_redis(REDIS)
        until("the strict limit admits again", lambda: trial.status("/strict", "new") == 200)
        equal(trial.statuses("/", "fresh", 4), [200, 200, 200, 429], "with Redis back")
    server.terminate()
    equal(server.wait(timeout=15), 0, "exit after SIGTERM")
