//! Runs `health` and `top`, which show the state of an instance.

use core::time::Duration;
use std::sync::mpsc;

use clap::Args;
use serde_json::Value;

use super::Api;
use crate::failure::Failure;
use crate::output::{Ended, Output, describe};

#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Ranks clients by refused requests, or by all requests.
    #[arg(long, default_value = "limited", value_parser = ["limited", "busy"])]
    by: String,
    /// The period to count: 1m, 10m or 1h.
    #[arg(long, default_value = "10m", value_parser = ["1m", "10m", "1h"])]
    window: String,
    /// Lists the clients of this limit only, each with its status.
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// Lists the clients only whose keys begin with this text, and shows their keys.
    #[arg(long, value_name = "TEXT")]
    key_prefix: Option<String>,
    /// The most clients to list.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=256))]
    count: u16,
    /// Shows keys, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    /// Prints the list again every two seconds, until you interrupt it.
    #[arg(long)]
    watch: bool,
}

const EVERY: Duration = Duration::from_secs(2);

fn encoded(value: &str) -> String {
    let bytes = value.bytes();
    bytes.map(|byte| format!("%{byte:02x}")).collect()
}

/// Shows the health of an instance. The exit code tells whether the instance is unhealthy.
pub(crate) fn health(api: &Api) -> Ended {
    let health = api.get("/v1/health")?;
    let is_healthy = health["healthy"] == true;
    let mut shown = health.clone();
    // Programs read the figures. People see them on the page.
    for (part, hidden) in [
        ("", &["shows_keys", "refusal_cache"][..]),
        ("/rules", &["reloads"]),
        ("/rules/in_force", &["bytes", "hash"]),
    ] {
        hide(shown.pointer_mut(part), hidden);
    }
    for store in shown["stores"].as_array_mut().into_iter().flatten() {
        hide(Some(store), &["figures"]);
    }
    Ok(Output::new(&health, &describe(&shown))?.found(!is_healthy))
}

fn hide(part: Option<&mut Value>, names: &[&str]) {
    if let Some(fields) = part.and_then(Value::as_object_mut) {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

pub(crate) fn top(arguments: &TopArguments, api: &Api, is_json: bool) -> Ended {
    let show_keys = arguments.show_keys || arguments.key_prefix.is_some();
    let mut path = format!(
        "/v1/top?by={}&window={}&count={}&show_keys={show_keys}",
        arguments.by, arguments.window, arguments.count
    );
    let (limit, prefix) = (&arguments.limit, &arguments.key_prefix);
    for (name, value) in [("limit", limit), ("prefix", prefix)] {
        if let Some(value) = value {
            path += &format!("&{name}={}", encoded(value));
        }
    }
    let list = || {
        let top = api.get(&path)?;
        // Separate repeated lists by an empty line.
        let end = if arguments.watch { "\n" } else { "" };
        // Give programs the list only. People also see the number of instances and the age.
        Output::new(&top["clients"], &(describe(&top) + end))
    };
    if !arguments.watch {
        return list();
    }
    list()?.print(is_json)?;
    // The channel only serves as a timer.
    let (_sender, pause) = mpsc::channel::<()>();
    loop {
        let _ = pause.recv_timeout(EVERY);
        match list() {
            // Go on, because the service may restart, or the network may have failed for a moment.
            Err(Failure::Unreachable(reason)) => eprintln!("error: {reason}"),
            next => _ = next?.print(is_json)?,
        }
    }
}
