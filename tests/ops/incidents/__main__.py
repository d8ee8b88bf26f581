"""Plays incidents on two servers with a real Redis and Prometheus, and prints a table: `scripts/ops --incidents` runs it.

    python3 tests/ops/incidents GATEWAY TOOL [--page FILE] [NAME ...]

Each function is an incident. A step is a command of `tower-quota` that a person types. Seconds are measured, and a deadline that
passes is a failure.
"""
import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from in_files import broken_files, config_map, cut_file
from in_redis import away, empty_replica, flushed, lagging_replica, out_of_memory, read_only, slow
from in_rules import invalid_rollback, lost_limit, many_rules, rollback_twice, shadow, two_operators, without_rules, wrong_unit
from of_clients import complaint, flood, override
from prometheus import Prometheus
from setting import Site

INCIDENTS = [
    flood, complaint, override, broken_files, cut_file, config_map, wrong_unit, lost_limit, two_operators, rollback_twice,
    invalid_rollback, many_rules, without_rules, shadow, away, slow, read_only, out_of_memory, flushed, empty_replica, lagging_replica,
]


def play(incident, programs, prometheus):
    """Returns the row of the table, or the failure."""
    sites = []

    def start(rules=None, user=None):
        sites.append(Site(incident.__name__.replace("_", "-"), programs, prometheus, rules, user))
        return sites[0]

    try:
        incident(start)
        return sites[0].written, None
    except Exception as error:
        return None, f"{incident.__name__}: {type(error).__name__}: {error}"
    finally:
        for site in sites:
            site.stop()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("server", type=lambda path: str(Path(path).resolve()))
    arguments.add_argument("tool", type=lambda path: str(Path(path).resolve()))
    arguments.add_argument("--page", type=Path)
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    chosen = [incident for incident in INCIDENTS if not given.names or incident.__name__ in given.names]
    prometheus = Prometheus("ops/prometheus/alerts.yml")
    try:
        # Incidents mostly wait for alerts, so several run at once.
        with ThreadPoolExecutor(7) as pool:
            programs = (given.server, given.tool)
            played = list(pool.map(lambda incident: play(incident, programs, prometheus), chosen))
    finally:
        prometheus.stop()
    rows = [row for row, _ in played if row]
    table = "\n".join(["| incident | you notice | the fix | afterwards |", "|---|---|---|---|", *rows])
    print(table)
    failures = [failure for _, failure in played if failure]
    if failures:
        raise SystemExit("\n".join(failures))
    if given.page:
        opening, closing = "<!-- played: incidents -->", "<!-- /played: incidents -->"
        before, rest = given.page.read_text().split(opening)
        given.page.write_text(f"{before}{opening}\n\n{table}\n\n{closing}{rest.split(closing)[1]}")


main()
