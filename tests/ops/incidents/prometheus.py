"""A Prometheus with the alerts of ops/ for all incidents."""
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

from processes import free_port


class Prometheus:
    """Scrapes all servers every five seconds. Each incident is a job."""

    def __init__(self, alerts):
        self.folder = tempfile.mkdtemp(prefix="prometheus-")
        self.jobs, self.lock, self.cached = {}, threading.Lock(), (0.0, {})
        self.write()
        settings = {
            "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
            "rule_files": [str(Path(alerts).resolve())],
            "scrape_configs": [{"job_name": "server", "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}]}],
        }
        Path(self.folder, "prometheus.yml").write_text(json.dumps(settings))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
        self.process = subprocess.Popen(["prometheus", *options], cwd=self.folder, stderr=subprocess.DEVNULL)

    def write(self):
        targets = [{"targets": addresses, "labels": {"job": job}} for job, addresses in self.jobs.items()]
        new = Path(self.folder, "targets.json.new")
        new.write_text(json.dumps(targets))
        new.rename(Path(self.folder, "targets.json"))

    def add(self, job, addresses):
        with self.lock:
            self.jobs[job] = addresses
            self.write()

    def firing(self, job):
        """Returns the alerts of a job that fire."""
        with self.lock:
            at, alerts = self.cached
            if time.monotonic() - at > 1:
                with urllib.request.urlopen(f"{self.url}/api/v1/alerts", timeout=10) as response:
                    alerts = json.load(response)["data"]["alerts"]
                self.cached = (time.monotonic(), alerts)
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing" and alert["labels"].get("job") == job}

    def sum(self, query):
        with urllib.request.urlopen(f"{self.url}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10) as response:
            result = json.load(response)["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
