"""Checks the chart in ops/chart, which Helm's library lints and renders without a cluster.

    chart.py SERVER   the program
"""
import difflib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import helm_python
import kubernetes_validate
import yaml

CHART = "ops/chart"
NAME = "tower-quota-server"
ENVOY = {"shop.yaml": Path("ops/limits/ratelimit/shop.yaml").read_text()}
chart = helm_python.Chart.load(CHART)


def render(values, name=NAME):
    """Returns the objects of a release by kind and name, after a check by the schemas of Kubernetes."""
    report = helm_python.lint(CHART, values, strict=True)
    assert not report["errors"], report
    files = chart.render(values, name=name, namespace="default").values()
    objects = [item for text in files for item in yaml.safe_load_all(text) if item]
    for item in objects:
        if item["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(item, kubernetes_validate.latest_version(), strict=True)
    return {(item["kind"], item["metadata"]["name"]): item for item in objects}


def container_of(objects, name=NAME):
    """Returns the only container of the deployment."""
    return objects["Deployment", name]["spec"]["template"]["spec"]["containers"][0]


def variables_of(objects, name=NAME):
    """Returns the variables of the server, with an empty text for a variable from elsewhere."""
    return {variable["name"]: variable.get("value", "") for variable in container_of(objects, name)["env"]}


# The chart makes the objects of ops/kubernetes, except for these differences.
def unlabelled(item):
    """Returns a part of an object without the labels that the chart adds."""
    added = {"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
    if isinstance(item, list):
        return [unlabelled(each) for each in item]
    return {key: unlabelled(each) for key, each in item.items() if key not in added} if isinstance(item, dict) else item


manifests = [item for path in Path("ops/kubernetes").iterdir() for item in yaml.safe_load_all(path.read_text())]
expected = {(item["kind"], item["metadata"]["name"]): item for item in manifests}
# 1. The cluster stores the values of a release, so the chart takes no secrets.
del expected["Secret", NAME]
# 2. Every object has labels, by which Helm's users look for the objects of a release.
for item in expected.values():
    item["metadata"]["labels"] = {"app.kubernetes.io/name": NAME}
# 3. The chart knows the namespace and the release, so the prefix needs no fields of the pod.
container = container_of(expected)
assert variables_of(expected)["CACHE_KEY_PREFIX"] == "$(NAMESPACE)-$(APP)"
container["env"] = [variable for variable in container["env"] if variable["name"] not in ("NAMESPACE", "APP", "CACHE_KEY_PREFIX")]
container["env"].append({"name": "CACHE_KEY_PREFIX", "value": f"default-{NAME}"})
# 4. Without Envoy and the Prometheus operator, a cluster has no use for their objects, so they are off by default.
complete = render({"envoy": ENVOY, "serviceMonitor": {"enabled": True}})
for key in complete.keys() | expected.keys():
    sides = [json.dumps(objects.get(key), indent=1, sort_keys=True).splitlines() for objects in (expected, unlabelled(complete))]
    difference = "\n".join(difflib.unified_diff(*sides, "ops/kubernetes", CHART, lineterm=""))
    assert not difference, f"{key}\n{difference}"
defaults = render({})
assert complete.keys() - defaults.keys() == {("ConfigMap", f"{NAME}-envoy"), ("ServiceMonitor", NAME)}
assert set(variables_of(complete)) - set(variables_of(defaults)) == {"TOWER_QUOTA_ENVOY"}

# Every value reaches the objects.
options = {
    "image": {"repository": "example.com/limits", "tag": "1.2.3"},
    "replicas": 37,
    "rules": "limits: [{ name: reached, quota: 1/second }]\n",
    "envoy": {"reached.yaml": "domain: reached\n"},
    "trustedProxies": ["192.0.2.0/25", "192.0.2.128/25"],
    "redis": {"secret": "managed-redis", "key": "url-of-redis", "prefix": "orders"},
    "adminTokens": {"secret": "people", "key": "tokens-of-people"},
    "resources": {"requests": {"cpu": "123m"}, "limits": {"memory": "192Mi"}},
    "networkPolicy": {
        "enabled": True,
        "gateways": [{"ipBlock": {"cidr": "198.51.100.0/24"}}],
        "prometheus": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "kube-prometheus"}},
    "extraArgs": ["--log-format=json", "--lease=200ms"],
    "extraEnv": [{"name": "TOWER_QUOTA_DEADLINE", "value": "10ms"}],
    "extraVolumes": [{"name": "certificates", "secret": {"secretName": "of-redis"}}],
    "extraVolumeMounts": [{"name": "certificates", "mountPath": "/etc/certificates"}],
    "podAnnotations": {"example.com/team": "checkout"},
    "podSpec": {"priorityClassName": "high", "imagePullSecrets": [{"name": "registry"}]},
}
assert options.keys() == chart.values.keys(), options.keys() ^ chart.values.keys()
for name, default in chart.values.items():
    assert not isinstance(default, dict) or default.keys() <= options[name].keys(), name


def leaves(item):
    """Returns the texts and numbers in a value."""
    if isinstance(item, (dict, list)):
        return [leaf for each in (item.values() if isinstance(item, dict) else item) for leaf in leaves(each)]
    return [item]


everything = render(options)
rendered = [str(leaf) for leaf in leaves(list(everything.values()))]
missing = [leaf for leaf in leaves(options) if leaf is not True and not any(str(leaf) in text for text in rendered)]
assert not missing, missing
assert everything.keys() == complete.keys()

# Each selector finds the pods of its release alone. Releases share neither objects nor keys in Redis.
other = render({}, "other")
assert not other.keys() & defaults.keys() and variables_of(other, "other")["CACHE_KEY_PREFIX"] == "default-other"
labels = other["Deployment", "other"]["spec"]["template"]["metadata"]["labels"]
assert labels["app.kubernetes.io/instance"] == "other"
for kind, path in [
    ("Deployment", ("selector", "matchLabels")),
    ("Service", ("selector",)),
    ("PodDisruptionBudget", ("selector", "matchLabels")),
    ("NetworkPolicy", ("podSelector", "matchLabels")),
]:
    selector = other[kind, "other"]["spec"]
    for part in path:
        selector = selector[part]
    assert selector == labels, (kind, selector)
monitor = everything["ServiceMonitor", NAME]["spec"]["selector"]["matchLabels"].items()
assert monitor <= everything["Service", NAME]["metadata"]["labels"].items()

# A value that is off leaves out all of its parts.
assert ("PodDisruptionBudget", NAME) not in render({"replicas": 1}), "a node with the only server could not drain"
assert ("NetworkPolicy", NAME) not in render({"networkPolicy": {"enabled": False}})
policy = render({"networkPolicy": {"prometheus": []}})["NetworkPolicy", NAME]["spec"]
assert [rule["ports"] for rule in policy["ingress"]] == [[{"port": "http"}, {"port": "grpc"}]], "a rule without peers admits all"
least = render({"rules": "", "redis": {"secret": ""}, "adminTokens": {"secret": ""}, "envoy": ENVOY})
assert [mount["name"] for mount in container_of(least)["volumeMounts"]] == ["envoy", "copy"]
assert not {"REDIS_URL", "CACHE_KEY_PREFIX", "TOWER_QUOTA_ADMIN_TOKENS"} & set(variables_of(least))

# The server accepts the variables and flags, with the files of the repository in place of the mounted ones.
for objects in (least, complete):
    variables = variables_of(objects) | {"TOWER_QUOTA_ENVOY": "ops/limits/ratelimit", "REDIS_URL": "redis://127.0.0.1"}
    variables["TOWER_QUOTA_RULES"] = variables["TOWER_QUOTA_RULES"].replace("/etc", "ops")
    variables.pop("TOWER_QUOTA_ADMIN_TOKENS", None)
    subprocess.run([sys.argv[1], *options["extraArgs"], "check"], env=variables, check=True, stdout=subprocess.PIPE)

# Helm refuses what would be ignored or would break the security of the pod.
for values, problem in [
    ({"replica": 3}, "'replica' not allowed"),
    ({"redis": {"url": "redis://redis"}}, "'url' not allowed"),
    ({"envoy": {"shop": "domain: shop"}}, "'shop'"),
    ({"podSpec": {"securityContext": {}}}, "'securityContext'"),
]:
    try:
        chart.render(values)
    except helm_python.HelmError as error:
        assert problem in str(error), error
    else:
        raise AssertionError(f"Helm accepts {values}")

version = tomllib.loads(Path("Cargo.toml").read_text())["workspace"]["package"]["version"]
assert chart.version == chart.metadata["appVersion"] == version, chart.metadata
print("the chart makes the objects of ops/kubernetes, and its values fit")
