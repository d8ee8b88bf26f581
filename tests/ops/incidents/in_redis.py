"""Incidents in which Redis fails, or loses data."""
import subprocess
from pathlib import Path

from in_files import in_file
from processes import Server, until
from setting import document, seconds


def away(start):
    site = start(in_file)
    site.load("steady", 20)
    site.everywhere("healthy before", Server.is_healthy)
    site.begin_fault()
    site.redis.kill()
    unhealthy = site.everywhere("unhealthy", lambda server: not server.is_healthy())
    alert = site.fires("TowerQuotaFailOpen")
    site.steps = []
    said = site.tool("block", "a stolen key", "--for", "1h", "--reason", "a stolen key")
    assert "instance" in said, said
    assert [server.status("a stolen key") for server in site.servers] == [403, 204]
    site.redis.start()
    counted = site.everywhere("requests are counted", Server.counts)
    shared = site.everywhere("the block holds on both", lambda server: server.status("a stolen key") == 403)
    site.row(
        "Redis is away, and a client attacks", f"unhealthy after {seconds(unhealthy)}, `FailOpen` after {seconds(alert)}",
        f"the block holds on one server at once, and on both {seconds(counted + shared)} after Redis is back; requests are counted after "
        f"{seconds(counted)}",
    )


def slow(start):
    """Redis stops for 200 ms, again and again, so most answers are late."""
    site = start(in_file)
    site.load("steady", 20)
    site.everywhere("healthy before", Server.is_healthy)
    site.begin_fault()
    stops = subprocess.Popen(["redis-cli", "-p", str(site.redis.port), "-r", "-1", "DEBUG", "SLEEP", "0.2"], stdout=subprocess.DEVNULL)
    try:
        unhealthy = site.everywhere("unhealthy", lambda server: not server.is_healthy())
        alert = site.fires("TowerQuotaFailOpen")
    finally:
        stops.kill()
    site.steps = []
    counted = site.everywhere("requests are counted", Server.counts)
    healthy = site.everywhere("healthy again", Server.is_healthy)
    site.row(
        "Redis is slow", f"unhealthy after {seconds(unhealthy)}, `FailOpen` after {seconds(alert)}",
        f"counted {seconds(counted)} after the last stop, healthy after {seconds(counted + healthy)}",
    )


def refuses(start, incident, breaking, repairing):
    site = start(in_file)
    site.load("steady", 20)
    site.everywhere("healthy before", Server.is_healthy)
    site.begin_fault()
    site.redis.call(*breaking)
    unhealthy = site.everywhere("unhealthy", lambda server: not server.is_healthy())
    site.say(f"    {site.servers[0].health()['problems']}")
    admitted = site.fires("TowerQuotaFailOpen")
    said = site.fires("TowerQuotaRedisRefuses")
    site.steps = []
    site.redis.call(*repairing)
    counted = site.everywhere("requests are counted", Server.counts)
    healthy = site.everywhere("healthy again", Server.is_healthy)
    site.row(
        incident, f"unhealthy after {seconds(unhealthy)}, `FailOpen` after {seconds(admitted)}, `RedisRefuses` after {seconds(said)}",
        f"counted {seconds(counted)} after Redis is right, healthy after {seconds(counted + healthy)}",
    )


def read_only(start):
    refuses(start, "Redis is read-only", ("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"))


def out_of_memory(start):
    refuses(start, "Redis has no memory left", ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"))


def lost(start, incident, lose):
    """Redis loses everything. Rules and blocks come back from the servers."""
    site = start()
    site.put(document(), "none")
    site.tool("block", "a stolen key", "--for", "1h", "--reason", "a stolen key")
    site.everywhere("the block holds", lambda server: server.status("a stolen key") == 403)
    site.load("a stolen key", 20)
    site.begin_fault()
    lose(site)
    key = f"quota:rules:{{{site.name}}}"
    healed = until("rules and blocks are stored again", lambda: site.redis.call("HLEN", f"{key}:blocks") == "1" and site.redis.call("EXISTS", f"{key}:texts") == "1")
    site.say(f"rules and blocks are stored again after {healed:.2f} s")
    healthy = site.everywhere("healthy", Server.is_healthy)
    assert all(server.status("a stolen key") == 403 for server in site.servers)
    alert = site.fires("TowerQuotaRulesRestored")
    site.row(incident, f"`RulesRestored` after {seconds(alert)}", f"rules and blocks are stored again after {seconds(healed)}, healthy after {seconds(healed + healthy)}")


def flushed(start):
    lost(start, "Redis is flushed", lambda site: site.redis.call("FLUSHALL"))


def empty_replica(start):
    def fail_over(site):
        site.redis.kill()
        Path(site.folder, "dump.rdb").unlink(missing_ok=True)
        site.redis.start()

    lost(start, "a failover to an empty replica", fail_over)


def lagging_replica(start):
    """The replica lacks the newest rules and the end of a block."""
    site = start()
    site.put(document(), "none")
    site.put(document("10/hour burst 20"), "1")
    site.tool("block", "a customer", "--for", "1h")
    site.everywhere("the block holds", lambda server: server.status("a customer") == 403)
    site.redis.call("SAVE")
    replica = Path(site.folder, "dump.rdb").read_bytes()
    site.put(document("12/second burst 20"), "2")
    site.tool("unblock", "a customer")
    site.everywhere("the block has ended", lambda server: server.status("a customer") == 204)
    site.begin_fault()
    site.redis.kill()
    Path(site.folder, "dump.rdb").write_bytes(replica)
    site.redis.start()
    key = f"quota:rules:{{{site.name}}}"
    healed = until("the lost changes are stored again", lambda: "12/second" in site.redis.call("HGETALL", f"{key}:texts") and site.redis.call("HLEN", f"{key}:blocks") == "0")
    site.say(f"the lost changes are stored again after {healed:.2f} s")
    healthy = site.everywhere("healthy", Server.is_healthy)
    for server in site.servers:
        assert server.status("a customer") == 204
    assert site.is_logged("the store went back from version 3 to version 2")
    alert = site.fires("TowerQuotaRulesRestored")
    site.row(
        "a failover to a replica that lagged behind", f"`RulesRestored` after {seconds(alert)}",
        f"the newest rules and the end of the block are stored again after {seconds(healed)}, healthy after {seconds(healed + healthy)}",
    )
