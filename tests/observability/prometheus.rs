//! A real Prometheus on a free port.

use std::ffi::OsString;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::recorder::file;

/// The deadline of every condition.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A Prometheus server that scrapes a service. Dropping the value kills the server.
pub(crate) struct Prometheus {
    process: Child,
    pub(crate) address: SocketAddr,
    folder: PathBuf,
}

impl Prometheus {
    /// Starts a server that scrapes an address twice a second, with the alert rules of `ops/`.
    pub(crate) fn start(scraped: SocketAddr) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tower-quota-prometheus-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let rules = file("ops/prometheus/alerts.yml").canonicalize().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 500ms, evaluation_interval: 500ms }}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{ job_name: tower-quota, static_configs: [{{ targets: ['{scraped}'] }}] }}]\n",
            rules.display()
        );
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let process = Command::new(program("prometheus"))
            .current_dir(&folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}; scripts/install prometheus"));
        Self {
            process,
            address,
            folder,
        }
    }

    /// Calls the API until an answer is accepted. Fails after the deadline.
    pub(crate) async fn until<T>(
        &self,
        path: &str,
        what: &str,
        mut accept: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let mut last = Value::Null;
        let wait = async {
            let mut turns = tokio::time::interval(Duration::from_millis(100));
            loop {
                turns.tick().await;
                let Some(body) = body(self.address, path).await else {
                    continue;
                };
                last = serde_json::from_str(&body).unwrap_or(Value::String(body));
                if let Some(accepted) = accept(&last["data"]) {
                    return accepted;
                }
            }
        };
        let waited = tokio::time::timeout(DEADLINE, wait).await;
        waited.unwrap_or_else(|_| {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            panic!("{what}: {last}\n{log}")
        })
    }

    /// Waits until a query has values, and returns the values.
    pub(crate) async fn values(&self, query: &str) -> Vec<f64> {
        self.until(&query_path(query), query, |data| {
            let samples = data["result"].as_array()?.iter();
            let values =
                samples.filter_map(|sample| sample["value"][1].as_str()?.parse::<f64>().ok());
            let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
            (!values.is_empty()).then_some(values)
        })
        .await
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the path of an instant query.
pub(crate) fn query_path(query: &str) -> String {
    format!("/api/v1/query?query={}", percent_encoded(query))
}

/// Returns a program of the package `prometheus`. A variable such as `PROMTOOL` replaces the program.
pub(crate) fn program(name: &str) -> OsString {
    std::env::var_os(name.to_uppercase()).unwrap_or_else(|| name.into())
}

/// Returns the body of the answer to a GET request, or `None` without an answer.
pub(crate) async fn body(address: SocketAddr, path_and_fields: &str) -> Option<String> {
    let (path, fields) = path_and_fields
        .split_once('\n')
        .unwrap_or((path_and_fields, ""));
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
