"""Runs the steps of ops/pull_request/rules.yml in a new repository, with the command that the first argument names."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

command = Path(sys.argv[1]).resolve()
job = yaml.safe_load(Path("ops/pull_request/rules.yml").read_text())["jobs"]["rules"]
steps = [(step["name"], step["run"]) for step in job["steps"] if "name" in step]
rules = "version: 1\nlimits:\n  - { name: minute, quota: 100/minute, key: header x-api-key }\n"
line = '203.0.113.7 - - [29/Nov/2026:02:13:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" "sk_prod_1"\n'


def results(changed):
    """Returns the exit code and the output of each step for a pull request with this document."""
    with tempfile.TemporaryDirectory() as folder:
        def git(*arguments):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=folder, check=True, capture_output=True)

        git("init")
        Path(folder, "rules.yaml").write_text(rules)
        git("add", ".")
        git("commit", "--message", "rules")
        git("update-ref", "refs/remotes/origin/main", "HEAD")
        Path(folder, "rules.yaml").write_text(changed)
        Path(folder, "access.log").write_text(line * 50)
        variables = job["env"] | {"LOG": "access.log", "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": "summary"}
        variables |= {"PATH": f"{command.parent}:{os.environ['PATH']}"}
        found = {}
        for name, script in steps:
            # As GitHub runs a step.
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
                cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=60,
            )
            found[name] = (done.returncode, done.stdout + done.stderr)
        return found


good = results(rules.replace("100/minute", "10/minute"))
assert all(code == 0 for code, _ in good.values()), good
assert "10/minute" in good["Show the differences"][1], good
assert "minute" in good["Show who would have been refused"][1], good
wrong = results(rules.replace("100/minute", "100/fortnight"))
assert wrong["Find errors and warnings"][0] == 1 and "fortnight" in wrong["Find errors and warnings"][1], wrong
print("the steps of ops/pull_request/rules.yml find a wrong document, and accept a right one")
