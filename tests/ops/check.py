"""Checks that the files of ops/ fit the repository, the program and each other; `scripts/ops` checks them against their schemas.

    check.py SERVER [TARGETS RULES URL]   the program, and the targets, the rules and the URL of a running Prometheus
"""
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from dockerfile_parse import DockerfileParser


def documents(path):
    return list(yaml.safe_load_all(Path(path).read_text()))


# The image runs the program that the build makes, without a shell and without rights.
dockerfile = DockerfileParser(path="ops/Dockerfile", cache_content=True)
steps = {step["instruction"]: step["value"] for step in dockerfile.structure}
assert dockerfile.baseimage == "scratch" and steps["COPY"] == "--from=build /image /", steps
assert "ops/image target/release/tower-quota-server /image" in steps["RUN"], steps["RUN"]
assert steps["USER"] == "10001:10001", "the server runs as root"
assert json.loads(steps["ENTRYPOINT"]) == ["/usr/bin/tower-quota-server"], steps["ENTRYPOINT"]
assert "HEALTHCHECK" not in steps, "the image has no program that could check"

# The program reads all variables that the files set. A variable that another variable contains is not for the program.
known = set(re.findall(r"\[env: (\w+)", subprocess.run([sys.argv[1], "--help"], check=True, capture_output=True, text=True).stdout))


def are_read(variables, where):
    assert set(variables) <= known, f"{where}: the server does not read {set(variables) - known}"


are_read((line.split("=")[0] for line in [steps["ENV"]]), "ops/Dockerfile")

# The repository has all folders and files that compose mounts, and every service has a different port of the host.
bases = documents("ops/compose.yml")[0]["services"]
gateways = {name: documents(f"ops/compose.{name}.yml")[0]["services"] for name in ("envoy", "nginx")}
assert not set(bases) & {name for services in gateways.values() for name in services}
for name, services in gateways.items():
    services = bases | services
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])]
    for mount in mounts:
        assert Path("ops", mount).exists(), f"compose mounts {mount}"
    ports = [port.rsplit(":", 1)[0] for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports)), f"a port is taken twice: {ports}"
    assert set(services[name]["depends_on"]) <= set(services)
targets = documents("ops/prometheus/prometheus.yml")[0]["scrape_configs"][0]["static_configs"][0]["targets"]
assert targets == ["limits:8082"] and "limits" in bases, targets

# Compose gives the server a name in Redis, and a file of tokens that the user of the image reads.
server = bases["limits"]
are_read(server["environment"], "ops/compose.yml")
assert server["environment"]["CACHE_KEY_PREFIX"] not in ("", "limits"), "two deployments would share counters and rules"
assert server["environment"]["TOWER_QUOTA_ADMIN_TOKENS"] == f"/run/secrets/{server['secrets'][0]}", server["secrets"]
assert server["secrets"][0] in documents("ops/compose.yml")[0]["secrets"]
assert server["read_only"]

# The gateways of compose have the configurations of the guides, with the names of the services in place of the addresses.
names = {
    "address: 127.0.0.1, port_value: 8000": "address: 0.0.0.0, port_value: 8000",
    "address: 127.0.0.1, port_value: 3000": "address: service, port_value: 3000",
    "address: 127.0.0.1, port_value: 8081": "address: limits, port_value: 8081",
    "127.0.0.1:8080": "limits:8080",
    "127.0.0.1:3000": "service:3000",
}


def guided(guide, language, start):
    """Returns the code block of a guide that begins with a text, with names in place of addresses."""
    text = Path("docs/guide", guide).read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    block = next(block for block in blocks if block.startswith(start))
    for address, name in names.items():
        block = block.replace(address, name)
    return block


for path, guide, language, start in [
    ("ops/envoy/envoy.yaml", "server_with_envoy.md", "yaml", "# envoy.yaml"),
    ("ops/limits/ratelimit/shop.yaml", "server_with_envoy.md", "yaml", "# ratelimit/shop.yaml"),
    ("ops/nginx/limits.conf", "server_with_nginx.md", "nginx", "upstream"),
]:
    assert Path(path).read_text() == guided(guide, language, start), f"{path} differs from docs/guide/{guide}"

# The manifests select the pods of the deployment, and contain the tested rules.
manifests = [document for path in Path("ops/kubernetes").iterdir() for document in documents(path)]
found = {document["kind"]: document for document in manifests}
deployment = found["Deployment"]["spec"]["template"]
labels, pod = deployment["metadata"]["labels"], deployment["spec"]
container = pod["containers"][0]
assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
assert found["Service"]["spec"]["selector"] == labels
assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
assert found["ServiceMonitor"]["spec"]["selector"]["matchLabels"] == found["Service"]["metadata"]["labels"]
ports = {port["name"] for port in container["ports"]}
used = [port["targetPort"] for port in found["Service"]["spec"]["ports"]]
used += [probe["port"] for kind in ("readinessProbe", "livenessProbe") for probe in container[kind].values() if isinstance(probe, dict)]
assert set(used) <= ports, f"{used} are not all in {ports}"
assert pod["enableServiceLinks"] is False, "a service named grpc would set GRPC_PORT, and the server would not start"
assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
data = {name: text for document in manifests for name, text in document.get("data", {}).items()}
rules = data["rules.yaml"]
assert rules == Path("ops/limits/rules.yaml").read_text()
assert data["shop.yaml"] == Path("ops/limits/ratelimit/shop.yaml").read_text()
maps = {document["metadata"]["name"] for document in manifests if document["kind"] == "ConfigMap"}
assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} == maps, maps
assert rules.splitlines()[-1] == "end: true", "a cut file would be valid"

# The alerts and the dashboard of the server name metrics that its page lists, and each alert has a test.
page = Path("docs/reference/server.md").read_text()
listed = set(re.findall(r"`((?:ratelimit|tower_quota)_\w+)`", page)) | {f"ratelimit_service_rate_limit{name}" for name in re.findall(r"`(_\w+)`", page)}
alerts, tests = (Path("ops/prometheus", f"server_alerts{part}.yml").read_text() for part in ("", "_test"))
dashboard = json.loads(Path("ops/grafana/tower-quota-server.json").read_text())
queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
used = {name.removesuffix("_bucket") for name in re.findall(r"\b(?:ratelimit_service|tower_quota_server)_\w+", alerts + " ".join(queries))}
assert used and used <= listed, f"docs/reference/server.md lacks {used - listed}"
assert all(f"alertname: {name}" in tests for name in re.findall(r"- alert: (\w+)", alerts))

# Copies of the deployment have names of their own in Redis. The variables that a name contains are defined before it.
env = {variable["name"]: variable for variable in container["env"]}
before = list(env)[:list(env).index("CACHE_KEY_PREFIX")]
parts = re.findall(r"\$\((\w+)\)", env["CACHE_KEY_PREFIX"]["value"])
are_read(set(env) - set(parts), "ops/kubernetes/server.yaml")
fields = {env[part]["valueFrom"]["fieldRef"]["fieldPath"] for part in parts}
assert set(parts) <= set(before) and fields == {"metadata.namespace", "metadata.labels['app.kubernetes.io/name']"}, fields

# The secret has all keys that the server reads, and its tokens are in a folder, because a `subPath` would stay the old file.
folder, _, file = env["TOWER_QUOTA_ADMIN_TOKENS"]["value"].rpartition("/")
mount = next(mount for mount in container["volumeMounts"] if mount["mountPath"] == folder)
assert mount["readOnly"] and "subPath" not in mount, mount
mounted = next(volume["secret"] for volume in pod["volumes"] if volume["name"] == mount["name"])
assert mounted["secretName"] == found["Secret"]["metadata"]["name"]
assert mounted["items"] == [{"key": file, "path": file}] and mounted["defaultMode"] == 0o440, mounted
keys = {variable["valueFrom"]["secretKeyRef"]["key"] for variable in env.values() if "secretKeyRef" in variable.get("valueFrom", {})}
assert keys | {file} == set(found["Secret"]["stringData"]), keys

# Gateways reach the doors, and Prometheus the admin port. Other pods reach no port.
policy = found["NetworkPolicy"]["spec"]
assert policy["podSelector"]["matchLabels"] == labels and policy["policyTypes"] == ["Ingress"], policy
peers = {port["port"]: rule.get("from") for rule in policy["ingress"] for port in rule["ports"]}
assert peers.keys() == {"http", "grpc", "admin"} == ports, peers
assert peers["http"] == peers["grpc"] == [{"podSelector": {}}], peers
assert peers["admin"] and all(peer.get("namespaceSelector") for peer in peers["admin"]), peers

# The memory limit has a quarter more than the measured peak, which the manifest names.
manifest = Path("ops/kubernetes/server.yaml").read_text()
peak = int(re.search(r"# Peak with two documents of 16 MB under way: (\d+) MiB", manifest)[1])
limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
assert limit >= peak * 5 / 4, f"{limit} MiB for a peak of {peak} MiB"

# Given the targets and rules of a running Prometheus, checks that Prometheus scrapes the server.
if len(sys.argv) > 2:
    targets, rules = (json.loads(Path(path).read_text())["data"] for path in sys.argv[2:4])
    assert [target["health"] for target in targets["activeTargets"]] == ["up"], targets
    loaded = [rule["health"] for group in rules["groups"] for rule in group["rules"]]
    assert len(loaded) == sum(path.read_text().count("- alert:") for path in Path("ops/prometheus").glob("*alerts.yml")), loaded
    for query in queries:
        query = query.replace("$__rate_interval", "10s").replace("$job", ".*").replace("$instance", ".*")
        # An error in a query is an error of the request.
        urllib.request.urlopen(f"{sys.argv[4]}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10).close()
print("the files of ops/ fit each other")
