"""Incidents with rules that operators put."""
import time
from pathlib import Path

from processes import Server, until
from setting import document, seconds


def wrong_unit(start):
    site = start()
    site.put(document(), "none")
    for client in range(5):
        site.load(f"client {client}", 4)
    time.sleep(5)
    site.begin_fault()
    site.put(document("10/minute burst 20"))
    alert = site.fires("TowerQuotaRefusalsHigh")
    site.steps = []
    site.tool("history")
    site.tool("diff", "1", "2", code=1)
    site.tool("rollback", "1", "--expect", "2", "--comment", "a minute was meant to be a second")
    # Seldom enough that the client stays within the quota.
    took = site.everywhere("clients are admitted", lambda server: server.status("client 1") == 204, again=0.5)
    site.row("a wrong unit in a quota", f"`RefusalsHigh` after {seconds(alert)}", f"admitted again after {seconds(took)}")


def lost_limit(start):
    site = start()
    site.put(document(), "none")
    without = "limits:\n  - { name: everyone, quota: 50000/second, key: none }\n"
    site.begin_fault()
    said = site.tool("put", site.write("rules.yaml", without), code=1)
    assert "second" in said, said
    site.put(without, "1")
    site.everywhere("the log names the limit", lambda server: "second" in server.log.read_text())
    site.steps = []
    site.tool("history")
    site.tool("diff", "1", "2", code=1)
    site.tool("rollback", "1", "--expect", "2", "--comment", "the limit is missed")
    took = site.everywhere("the limit holds again", lambda server: server.shows('"second"'))
    site.row("a removed limit", "`put` names the limit before the change, the log after it", f"the limit holds again after {seconds(took)}")


def two_operators(start):
    site = start()
    site.put(document(), "none")
    site.begin_fault()
    site.tool("show", "--output", "ann.yaml")
    site.tool("show", "--output", "bob.yaml", on=1)
    for name, old, new in (("ann.yaml", "burst 20", "burst 30"), ("bob.yaml", "50000", "60000")):
        path = Path(site.folder, name)
        path.write_text(path.read_text().replace(old, new))
    site.tool("put", "ann.yaml")
    site.steps = []
    site.tool("put", "bob.yaml", code=1, on=1)
    site.everywhere("version 2 is in force", lambda server: server.version() == 2)
    site.tool("show", "--output", "bob.yaml", on=1)
    path = Path(site.folder, "bob.yaml")
    path.write_text(path.read_text().replace("50000", "60000"))
    site.tool("put", "bob.yaml", on=1)
    shown = site.tool("show", on=1)
    site.steps.pop()
    assert "burst 30" in shown and "60000" in shown, shown
    site.row("two operators change one version", "the second `put` fails", "both changes are in force")


def rollback_twice(start):
    site = start()
    site.put(document(), "none")
    site.put(document("11/second burst 20"), "1")
    site.begin_fault()
    site.tool("rollback", "1", "--expect", "2")
    site.tool("rollback", "1", "--expect", "2", on=1)
    newest = site.servers[0].version()
    assert newest == 3, newest
    site.row("two operators roll back at once", "the second command says that nothing changes", "one new version")


def invalid_rollback(start):
    """Changes the text of an old version in Redis, as if an older program had written it."""
    site = start()
    site.put(document(), "none")
    site.put(document("11/second burst 20"), "1")
    site.redis.call("HSET", f"quota:rules:{{{site.name}}}:texts", "1", document("11/fortnight"))
    site.begin_fault()
    said = site.tool("rollback", "1", "--expect", "2", code=1)
    assert "fortnight" in said, said
    assert all(server.version() == 2 for server in site.servers)
    site.row("a rollback to a version that is no longer valid", "the command fails, with the place and the fix", "version 2 stays in force")


def many_rules(start):
    site = start()
    site.put(document(), "none")
    routes = "".join(
        f"  - {{ match: {{ path: /service-{number}/items }}, limits: [{{ name: route-{number}, quota: 900/minute, key: header x-api-key }}] }}\n"
        for number in range(10_000)
    )
    site.begin_fault()
    took = site.put(document(more=f"routes:\n{routes}"), "1")
    put = site.steps[-1][1]
    site.steps = []
    site.tool("rollback", "1", "--expect", "2")
    back = site.everywhere("version 3 is in force", lambda server: server.version() == 3)
    site.row("10,000 rules", f"`put` takes {seconds(put)}, and the other server follows after {seconds(took)}", f"rolled back on both after {seconds(back)}")


def without_rules(start):
    site = start()
    site.begin_fault()
    assert all(server.ready() == 503 for server in site.servers)
    alert = site.fires("TowerQuotaNoRules")
    site.steps = []
    took = site.put(document(), "none")
    healthy = site.everywhere("healthy", Server.is_healthy)
    site.row(
        "an instance without rules", f"`/v1/ready` says 503 at once, `NoRules` after {seconds(alert)}",
        f"in force on both after {seconds(took)}, healthy after {seconds(took + healthy)}",
    )


def shadow(start):
    site = start()
    site.put(document(), "none")
    tried = "  - { name: tried, quota: 50/hour burst 50, key: header x-api-key, shadow: true }\n"
    site.begin_fault()
    took = site.put(document(more=tried), "1")
    uncounted = 0
    for number in range(300):
        # Below ten requests a second of each client.
        status, fields = site.servers[number % 2].ask(f"client {number % 3}")
        assert status == 204, status
        uncounted += fields.get("x-ratelimit-policy") == "degraded"
        time.sleep(0.05)
    query = f'sum(tower_quota_decisions_total{{job="{site.name}",limit="tried",outcome="shadowed"}})'
    until("Prometheus has the figure", lambda: site.prometheus.sum(query) > 0)
    time.sleep(6)
    shadowed = site.prometheus.sum(query)
    site.put(document(), "2")
    site.row(
        "a limit is tried as a shadow on both", "nothing to notice",
        f"in force on both after {seconds(took)}; it would refuse {shadowed:.0f} of 300 requests, of 150 that are due and {uncounted} that Redis "
        "did not count in time",
    )
