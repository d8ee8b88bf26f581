"""Incidents with rules in a file, as a config map mounts it."""
import os
from pathlib import Path

from processes import Server
from setting import seconds

SHIPPED = Path("ops/limits/rules.yaml").read_text()
# The user of the server, who must have no permission to read a file.
NOBODY = 65534 if os.getuid() == 0 else None


def in_file(folder):
    """Puts the shipped rules into a folder as Kubernetes does, with a link that a change replaces."""
    swap(folder, "1", SHIPPED)
    Path(folder, "rules.yaml").symlink_to("..data/rules.yaml")
    return str(Path(folder, "rules.yaml"))


def swap(folder, version, text):
    data = Path(folder, f"..{version}")
    data.mkdir()
    (data / "rules.yaml").write_text(text)
    Path(folder, "..new").symlink_to(data.name)
    Path(folder, "..new").rename(Path(folder, "..data"))


def broken_files(start):
    """Each mistake in the file of rules is named, and the old limits hold."""
    site = start(in_file, user=NOBODY)
    lines = SHIPPED.splitlines(keepends=True)
    path = Path(site.folder, "..data", "rules.yaml")
    mistakes = {
        "a typo": SHIPPED.replace("second burst", "secnod burst"),
        "a cut inside a line": SHIPPED[:SHIPPED.index("burst 20")],
        "an empty file": "",
        "a field twice": SHIPPED + "limits: []\n",
        "comments only": lines[0],
        "a deleted file": None,
        "no permission": "",
    }
    noticed, fixed, fired = [], [], {}
    for number, (mistake, text) in enumerate(mistakes.items(), start=2):
        site.begin_fault()
        if mistake == "a deleted file":
            path.resolve().unlink()
        elif mistake == "no permission":
            path.resolve().touch()
            path.resolve().chmod(0)
        else:
            swap(site.folder, str(number), text)
        noticed.append(site.everywhere(f"{mistake}: the mistake is named", Server.mistake))
        site.everywhere("the old limit holds", lambda server: server.shows('"second";q=20'))
        site.say(f"    {site.servers[0].mistake()}")
        if mistake in ("a typo", "a deleted file"):
            alert = {"a typo": "TowerQuotaRulesRejected", "a deleted file": "TowerQuotaRulesUnreachable"}[mistake]
            fired[mistake] = site.fires(alert)
        swap(site.folder, f"{number}-fixed", SHIPPED)
        fixed.append(site.everywhere(f"{mistake}: in force again", lambda server: not server.mistake()))
    site.steps = []
    site.row(
        f"a broken file: {', '.join(mistakes)}",
        f"`health` and the log name it after {seconds(min(noticed))} to {seconds(max(noticed))}; `RulesRejected` after {seconds(fired['a typo'])}, "
        f"for the deleted file `RulesUnreachable` after {seconds(fired['a deleted file'])}",
        f"the old limits hold; `health` is right {seconds(min(fixed))} to {seconds(max(fixed))} after the file",
    )


def cut_file(start):
    """A copy that ends between two lines is a valid, looser document without `end: true`."""
    site = start(in_file)
    cut = SHIPPED[:SHIPPED.index("  - { name: address")]
    assert "everyone" in cut and "second burst" not in cut
    site.begin_fault()
    swap(site.folder, "cut", cut)
    noticed = site.everywhere("the mistake is named", Server.mistake)
    site.say(f"    {site.servers[0].mistake()}")
    alert = site.fires("TowerQuotaRulesRejected")
    site.everywhere("the limit `second` holds", lambda server: server.shows('"second"'))
    swap(site.folder, "whole", SHIPPED)
    took = site.everywhere("in force again", lambda server: not server.mistake())
    site.row(
        "a file cut at the end of a line", f"`health` and the log name it after {seconds(noticed)}, `RulesRejected` after {seconds(alert)}",
        f"the old limits hold; `health` is right {seconds(took)} after the whole file",
    )


def config_map(start):
    site = start(in_file)
    site.begin_fault()
    swap(site.folder, "2", SHIPPED.replace("10/second burst 20", "10/second burst 25"))
    took = site.everywhere("the new limit is in force", lambda server: server.shows('"second";q=25'))
    site.steps = []
    assert "file" in site.tool("audit", "--count", "1")
    site.row("a swap of the config map", "an audit record", f"in force on both after {seconds(took)}")
