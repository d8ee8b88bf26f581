//! `explain`: which limits a request meets, by a file of rules or by a running service.

use core::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use tower_quota::RequestHead;
use tower_quota_rules::SampleRequest;

use super::clients;
use super::text::field;
use super::{Call, TargetArguments};
use crate::failure::{Ended, Failure, Found};
use crate::output::{self, Table};

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// A file of rules, instead of a running service.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["admin", "redis"])]
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
    /// The address of the peer. The default is 192.0.2.1.
    #[arg(long)]
    address: Option<IpAddr>,
    /// Shows keys, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    target: TargetArguments,
}

/// Explains a request. A blocked one is something found.
pub(crate) fn explain(arguments: &ExplainArguments, is_json: bool) -> Ended {
    let sample = arguments.sample();
    let explanation = match &arguments.rules {
        Some(path) => arguments.by_file(path, sample)?,
        None => {
            let call = Call::new(Call::POST, &["explain"])
                .query("show_keys", arguments.show_keys.then_some("true"))
                .json(&sample);
            arguments.target.connect()?.send(&call)?.json()?
        }
    };
    output::print(is_json, &explanation, text)?;
    Ok(if explanation["outcome"] == "blocked" {
        Found::Something
    } else {
        Found::Nothing
    })
}

impl ExplainArguments {
    fn sample(&self) -> Value {
        let mut headers = Map::new();
        for (name, value) in &self.headers {
            let values = headers.entry(name.clone()).or_insert_with(|| json!([]));
            if let Some(values) = values.as_array_mut() {
                values.push(value.as_str().into());
            }
        }
        let mut sample = json!({ "method": self.method, "path": self.path });
        if !headers.is_empty() {
            sample["headers"] = headers.into();
        }
        if let Some(host) = &self.host {
            sample["host"] = host.as_str().into();
        }
        if let Some(address) = self.address {
            sample["address"] = address.to_string().into();
        }
        sample
    }

    fn by_file(&self, path: &std::path::Path, sample: Value) -> Result<Value, Failure> {
        let rules = self.target.store.load.load(path)?;
        let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
        let sample: SampleRequest =
            serde_json::from_value(sample).map_err(|error| usage(&error))?;
        let request = sample.to_request().map_err(|error| usage(&error))?;
        let head = RequestHead::of(&request);
        let explanation = if self.show_keys {
            rules.explain_with_keys(&head)
        } else {
            rules.explain(&head)
        };
        serde_json::to_value(explanation).map_err(|error| usage(&error))
    }
}

fn text(explanation: &Value) -> String {
    let tier = explanation["tier"]
        .as_str()
        .map_or(String::new(), |tier| format!(", tier {tier}"));
    let missing = explanation["missing_key"]
        .as_str()
        .map_or(String::new(), |key| format!(", without the key {key}"));
    let mut out = format!("{}{tier}{missing}\n", field(explanation, "outcome"));
    let limits = explanation["limits"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if !limits.is_empty() {
        let mut columns = Table::new(&["limit", "quota", "counted by", "key", "cost"]);
        for limit in limits {
            let shadow = if limit["shadow"] == true {
                " (shadow)"
            } else {
                ""
            };
            let text = |name| field(limit, name);
            columns.row([
                text("name") + shadow,
                text("quota"),
                text("scope"),
                text("key"),
                text("cost"),
            ]);
        }
        out.push_str(&columns.text());
    }
    for left in explanation["left"].as_array().into_iter().flatten() {
        out.push_str(&clients::text(left));
        out.push('\n');
    }
    out
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("write NAME: VALUE, such as \"x-api-key: sk_1\"")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}
