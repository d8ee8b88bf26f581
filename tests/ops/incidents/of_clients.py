"""Incidents of single clients."""
import datetime
import json
import time

from in_files import in_file
from processes import until
from setting import document, seconds


def flood(start):
    site = start(in_file)
    for client in range(5):
        site.load(f"calm {client}", 2)
    site.begin_fault()
    site.load("a stolen key", 200)
    alert = site.fires("TowerQuotaRefusalsHigh")
    site.steps = []
    client = json.loads(site.tool("top", "--json"))[0]["hash"]
    # The command asks for `--force`, because most requests are of this client.
    site.tool("block", f"hash:{client}", "--for", "1h", "--reason", "a stolen key", code=1)
    site.tool("block", f"hash:{client}", "--for", "1h", "--reason", "a stolen key", "--force")
    took = site.everywhere("the client gets 403", lambda server: server.status("a stolen key") == 403)
    assert all(server.status("calm 1") == 204 for server in site.servers)
    site.row("one client floods", f"`RefusalsHigh` after {seconds(alert)}", f"403 on both after {seconds(took)}, others are admitted")


def complaint(start):
    site = start()
    site.put(document("10/hour burst 20"), "none")
    other = site.servers[1]
    until("the customer is refused", lambda: other.ask("a customer", {"x-request-id": "4711"})[0] == 429)
    now = datetime.datetime.now(datetime.timezone.utc)
    site.begin_fault()
    said = site.tool("refusals", "a customer", "--at", f"{now:%H:%M}", "--also", f"http://{other.admin}")
    assert "4711" in said and "second" in said, said
    said = site.tool("peek", "second", "a customer", code=1)
    assert "unknown client" not in said, said
    site.tool("reset", "second", "a customer", "--comment", "ticket 42")
    took = site.everywhere("the customer is admitted", lambda server: server.status("a customer") == 204)
    site.row('"Why was I refused at 02:13?"', "`refusals` has the time, limit, hash, wait, version and request id", f"released on both after {seconds(took)}")


def override(start):
    site = start()
    site.put(document(), "none")
    site.begin_fault()
    site.tool("override", "a customer", "--limit", "second", "--quota", "500/second", "--for", "10s", "--reason", "launch day")
    ends = time.monotonic() + 10
    is_raised = lambda server: server.shows('"second";q=500', "a customer")
    took = site.everywhere("the override holds", is_raised)
    site.everywhere("the override has ended", lambda server: not is_raised(server))
    late = abs(time.monotonic() - ends)
    site.row("another quota for one client, until an end", "nothing to notice", f"holds on both after {seconds(took)}, ends {seconds(late)} from its time")
