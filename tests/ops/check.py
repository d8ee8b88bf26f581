"""Checks that the files of ops/ fit the repository and each other; `scripts/ops` checks them against their schemas."""
import json
import sys
from pathlib import Path

import yaml
from dockerfile_parse import DockerfileParser


def documents(path):
    return list(yaml.safe_load_all(Path(path).read_text()))


# The repository has all files that the image copies, and the gateway listens on the port of the health check.
dockerfile = DockerfileParser(path="ops/Dockerfile", cache_content=True)
copied = [step["value"].split()[:-1] for step in dockerfile.structure if step["instruction"] == "COPY"]
for path in (path for paths in copied if not paths[0].startswith("--from") for path in paths):
    assert Path(path).exists(), f"ops/Dockerfile copies {path}"
steps = {step["instruction"]: step["value"] for step in dockerfile.structure}
assert steps["USER"] not in ("root", "0"), "the gateway runs as root"
assert "127.0.0.1:3001/v1/ready" in steps["HEALTHCHECK"], steps["HEALTHCHECK"]

# The repository has all folders and files that compose mounts, and every service has a different port of the host.
services = documents("ops/compose.yml")[0]["services"]
mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])]
for mount in mounts:
    assert Path("ops", mount).exists(), f"ops/compose.yml mounts {mount}"
ports = [port.rsplit(":", 1)[0] for service in services.values() for port in service.get("ports", [])]
assert len(ports) == len(set(ports)), f"a port is taken twice: {ports}"
targets = documents("ops/prometheus/prometheus.yml")[0]["scrape_configs"][0]["static_configs"][0]["targets"]
assert targets == ["gateway:3001"] and "gateway" in services, targets

# The manifests select the pods of the deployment, and contain the tested rules.
found = {document["kind"]: document for path in Path("ops/kubernetes").iterdir() for document in documents(path)}
deployment = found["Deployment"]["spec"]["template"]
labels, pod = deployment["metadata"]["labels"], deployment["spec"]
container = pod["containers"][0]
assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
assert found["Service"]["spec"]["selector"] == labels
assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
assert found["ServiceMonitor"]["spec"]["selector"]["matchLabels"] == found["Service"]["metadata"]["labels"]
names = {port["name"] for port in container["ports"]}
used = [port["targetPort"] for port in found["Service"]["spec"]["ports"]]
used += [probe["port"] for kind in ("readinessProbe", "livenessProbe") for probe in container[kind].values() if isinstance(probe, dict)]
assert set(used) <= names, f"{used} are not all in {names}"
secret = {variable["valueFrom"]["secretKeyRef"]["key"] for variable in container["env"] if "valueFrom" in variable}
assert secret == set(found["Secret"]["stringData"]), secret
assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
assert found["ConfigMap"]["data"]["rules.yaml"] == Path("examples/gateway/rules.yaml").read_text()

# Given the targets and rules of a running Prometheus, checks that Prometheus scrapes the gateway.
if len(sys.argv) > 1:
    targets, rules = (json.loads(Path(path).read_text())["data"] for path in sys.argv[1:])
    assert [target["health"] for target in targets["activeTargets"]] == ["up"], targets
    loaded = [rule["health"] for group in rules["groups"] for rule in group["rules"]]
    assert len(loaded) == Path("ops/prometheus/alerts.yml").read_text().count("- alert:"), loaded
print("the files of ops/ fit each other")
