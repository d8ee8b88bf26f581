"""Checks that the files of ops/ fit the repository and each other; `scripts/ops` checks them against their schemas."""
import json
import re
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

# Compose gives the gateway a name in Redis, and a file of tokens that the user of the image reads.
gateway = services["gateway"]
assert gateway["environment"]["NAME"] not in ("", "gateway"), "two deployments would share counters and rules"
assert "ADMIN_TOKEN" not in gateway["environment"], "one token for everybody"
assert gateway["environment"]["ADMIN_TOKENS"] == f"/run/secrets/{gateway['secrets'][0]}", gateway["secrets"]
assert gateway["secrets"][0] in documents("ops/compose.yml")[0]["secrets"]

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
assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
rules = found["ConfigMap"]["data"]["rules.yaml"]
assert rules == Path("examples/gateway/rules.yaml").read_text()
assert rules.splitlines()[-1] == "end: true", "a cut file would be valid"

# Copies of the deployment have names of their own in Redis. The variables that a name contains are defined before it.
env = {variable["name"]: variable for variable in container["env"]}
before = list(env)[:list(env).index("NAME")]
parts = re.findall(r"\$\((\w+)\)", env["NAME"]["value"])
fields = {env[part]["valueFrom"]["fieldRef"]["fieldPath"] for part in parts}
assert set(parts) <= set(before) and fields == {"metadata.namespace", "metadata.labels['app.kubernetes.io/name']"}, fields

# The secret has all keys that the gateway reads, and its tokens are in a folder, because a `subPath` would stay the old file.
assert "ADMIN_TOKEN" not in env, "one token for everybody, without a role"
folder, _, file = env["ADMIN_TOKENS"]["value"].rpartition("/")
mount = next(mount for mount in container["volumeMounts"] if mount["mountPath"] == folder)
assert mount["readOnly"] and "subPath" not in mount, mount
mounted = next(volume["secret"] for volume in pod["volumes"] if volume["name"] == mount["name"])
assert mounted["secretName"] == found["Secret"]["metadata"]["name"]
assert mounted["items"] == [{"key": file, "path": file}] and mounted["defaultMode"] == 0o440, mounted
keys = {variable["valueFrom"]["secretKeyRef"]["key"] for variable in env.values() if "secretKeyRef" in variable.get("valueFrom", {})}
assert keys | {file} == set(found["Secret"]["stringData"]), keys

# Everybody reaches the service. The admin port, which has no TLS, is for named peers only.
policy = found["NetworkPolicy"]["spec"]
assert policy["podSelector"]["matchLabels"] == labels and policy["policyTypes"] == ["Ingress"], policy
peers = {port["port"]: rule.get("from") for rule in policy["ingress"] for port in rule["ports"]}
assert peers.keys() == {"http", "admin"} and peers["http"] is None, peers
assert peers["admin"] and all(peer.get("namespaceSelector") or peer.get("podSelector") for peer in peers["admin"]), peers

# The memory limit has a quarter more than the measured peak, which the manifest names.
manifest = Path("ops/kubernetes/gateway.yaml").read_text()
peak = int(re.search(r"# Peak with two documents of 16 MB under way: (\d+) MiB", manifest)[1])
limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
assert limit >= peak * 5 / 4, f"{limit} MiB for a peak of {peak} MiB"

# Given the targets and rules of a running Prometheus, checks that Prometheus scrapes the gateway.
if len(sys.argv) > 1:
    targets, rules = (json.loads(Path(path).read_text())["data"] for path in sys.argv[1:])
    assert [target["health"] for target in targets["activeTargets"]] == ["up"], targets
    loaded = [rule["health"] for group in rules["groups"] for rule in group["rules"]]
    assert len(loaded) == Path("ops/prometheus/alerts.yml").read_text().count("- alert:"), loaded
print("the files of ops/ fit each other")
