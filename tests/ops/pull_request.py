"""Runs the steps of ops/pull_request/rules.yml in a new repository, with the command that the first argument names."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

command = Path(sys.argv[1]).resolve()
workflow = yaml.safe_load(Path("ops/pull_request/rules.yml").read_text())
job = workflow["jobs"]["rules"]
steps = [(step["name"], step["run"]) for step in job["steps"] if "name" in step]
CHECK, DIFFERENCES, REFUSED = [name for name, _ in steps if name.startswith(("Find", "Show"))]

MINUTE = "  - { name: minute, quota: 100/minute, key: header x-api-key }\n"
HOUR = "  - { name: hour, quota: 900/hour, key: header x-api-key }\n"
RULES = f"version: 1\nlimits:\n{MINUTE}{HOUR}end: true\n"
WITH_INCLUDE = f"version: 1\ninclude: rules/org.yaml\nlimits:\n{MINUTE}"
ORG = f"version: 1\nlimits:\n{HOUR}"
LINE = '203.0.113.7 - - [29/Nov/2026:02:13:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" "sk_prod_1"\n'


def results(before, after, code=""):
    """Returns the exit code and the output of each step for a pull request that changes these files, each a path and a text. `code` declares
    parts of the program."""
    with tempfile.TemporaryDirectory() as folder:
        def git(*arguments):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=folder, check=True, capture_output=True)

        def write(files):
            for path, text in files.items():
                Path(folder, path).parent.mkdir(exist_ok=True)
                Path(folder, path).write_text(text)

        git("init")
        write(before | {"README.md": "rules\n"})
        git("add", ".")
        git("commit", "--message", "rules")
        git("update-ref", "refs/remotes/origin/main", "HEAD")
        write(after | {"access.log": LINE * 50})
        variables = job["env"] | {"CODE": code, "LOG": "access.log", "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": "summary"}
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


def accepted(before, after, code=""):
    found = results(before, after, code)
    assert all(code == 0 for code, _ in found.values()), found
    return found


def refused(before, after, reason):
    code, printed = results(before, after)[CHECK]
    assert code == 1 and reason in printed, (code, printed)


old = {"rules.yaml": RULES}
found = accepted(old, {"rules.yaml": RULES.replace("100/minute", "10/minute")})
assert "10/minute" in found[DIFFERENCES][1] and "minute" in found[REFUSED][1], found
refused(old, {"rules.yaml": RULES.replace("100/minute", "100/fortnight")}, "fortnight")
refused(old, {"rules.yaml": RULES.replace(HOUR, "")}, '"hour" of the old rules is gone')
refused(old, {"rules.yaml": RULES.replace("end: true\n", "")}, "it is probably cut")
failing = "tests: [{ request: {}, expect: { outcome: blocked } }]\n"
refused(old, {"rules.yaml": RULES.replace("end:", f"{failing}end:")}, "failed tests: 1")

found = accepted({}, old)
assert found[DIFFERENCES][1] == found[REFUSED][1] == "", found

old = {"rules.yaml": WITH_INCLUDE, "rules/org.yaml": ORG}
found = accepted(old, {"rules/org.yaml": ORG.replace("900/hour", "800/hour")})
assert "900/hour -> 800/hour" in found[DIFFERENCES][1], found
refused(old, {"rules/org.yaml": ORG.replace("hour,", "day,")}, '"hour" of the old rules is gone')
by_code = {"rules.yaml": RULES.replace("header x-api-key", "[code tenant, code account]")}
refused(by_code, by_code, "code tenant")
accepted(by_code, by_code, "--code key=tenant --code key=account")
# PyYAML reads the key `on` as true.
assert "rules/**" in workflow[True]["pull_request"]["paths"], workflow
print("the steps of ops/pull_request/rules.yml find wrong, cut and lost rules, and accept right and new ones")
