//! Runs `explain`, which shows the limits of a request by a file of rules or by a running service.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use http::Request;
use serde_json::{Value, json};
use tower_quota::RequestHead;
use tower_quota_rules::SampleRequest;

use super::TargetArguments;
use crate::failure::Failure;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// A file of rules, instead of a running service.
    #[arg(long, value_name = "FILE", conflicts_with = "admin")]
    rules: Option<PathBuf>,
    /// The method.
    #[arg(long, default_value = "GET")]
    method: String,
    /// The path with its query.
    #[arg(long, default_value = "/")]
    path: String,
    /// The host.
    #[arg(long)]
    host: Option<String>,
    /// A header, as `name: value`.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The route matched by axum. Defaults to the matching route of the rules.
    #[arg(long)]
    route: Option<String>,
    /// A key from your code, as `code tenant: acme`.
    #[arg(long = "key", value_name = "NAME: VALUE", value_parser = pair)]
    keys: Vec<(String, String)>,
    /// The address of the peer. Defaults to 192.0.2.1.
    #[arg(long)]
    address: Option<IpAddr>,
    /// Shows keys, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &ExplainArguments) -> Ended {
    let sample = arguments.sample();
    let explanation = match &arguments.rules {
        Some(path) => arguments.by_file(path, sample)?,
        None => {
            let path = format!("/v1/explain?show_keys={}", arguments.show_keys);
            let api = arguments.target.connect()?;
            api.send_json(Request::post(path), &sample)?
        }
    };
    let is_blocked = explanation["outcome"] == "blocked";
    Ok(Output::answer(explanation)?.found(is_blocked))
}

impl ExplainArguments {
    fn sample(&self) -> Value {
        let mut headers = BTreeMap::<&str, Vec<&str>>::new();
        for (name, value) in &self.headers {
            headers.entry(name).or_default().push(value);
        }
        json!({
            "method": self.method,
            "path": self.path,
            "headers": headers,
            "host": self.host,
            "address": self.address,
            "route": self.route,
            "keys": self.keys.iter().cloned().collect::<BTreeMap<_, _>>(),
        })
    }

    fn by_file(&self, path: &std::path::Path, sample: Value) -> Result<Value, Failure> {
        let rules = self.target.load.load(path)?;
        let sample: SampleRequest = serde_json::from_value(sample).map_err(Failure::usage)?;
        let request = rules.request(&sample).map_err(Failure::usage)?;
        let head = RequestHead::of(&request);
        let explanation = if self.show_keys {
            rules.explain_with_keys(&head)
        } else {
            rules.explain(&head)
        };
        serde_json::to_value(explanation).map_err(Failure::usage)
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = pair(text)?;
    Ok((name.to_ascii_lowercase(), value))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write NAME: VALUE, such as \"x-api-key: sk_1\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
