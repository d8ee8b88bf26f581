//! `peek`, `reset`, `grant`: single clients.

use clap::Args;
use serde_json::{Value, json};

use super::rules::ChangeArguments;
use super::text::{field, millis};
use super::{Call, TargetArguments};
use crate::failure::{Ended, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct ClientArguments {
    /// The name of a limit.
    limit: String,
    /// The key that the limit counts by: an address, an API key.
    key: String,
}

#[derive(Args, Debug)]
pub(crate) struct PeekArguments {
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ResetArguments {
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct GrantArguments {
    #[command(flatten)]
    client: ClientArguments,
    /// The number of units. More than are used have no effect.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    units: u64,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn peek(arguments: &PeekArguments, is_json: bool) -> Ended {
    send(
        &arguments.target,
        &arguments.client.call(Call::GET, &[]),
        is_json,
    )
}

pub(crate) fn reset(arguments: &ResetArguments, is_json: bool) -> Ended {
    let call = arguments
        .client
        .call(Call::DELETE, &[])
        .query("comment", arguments.change.comment.as_deref());
    send(&arguments.target, &call, is_json)
}

pub(crate) fn grant(arguments: &GrantArguments, is_json: bool) -> Ended {
    let call = arguments
        .client
        .call(Call::POST, &["grant"])
        .query("comment", arguments.change.comment.as_deref());
    send(
        &arguments.target,
        &call.json(&json!({ "units": arguments.units })),
        is_json,
    )
}

impl ClientArguments {
    fn call(&self, method: http::Method, rest: &[&str]) -> Call {
        let parts: Vec<&str> = ["clients", &self.limit, &self.key]
            .into_iter()
            .chain(rest.iter().copied())
            .collect();
        Call::new(method, &parts)
    }
}

/// Sends a call, and shows the client's status. A limited client is something found.
fn send(target: &TargetArguments, call: &Call, is_json: bool) -> Ended {
    let status = target.connect()?.send(call)?.json()?;
    output::print(is_json, &status, |status| text(status) + "\n")?;
    let is_limited = matches!(status["outcome"].as_str(), Some("limited" | "never"));
    Ok(if is_limited {
        Found::Something
    } else {
        Found::Nothing
    })
}

/// Returns the status of a client on one line.
pub(super) fn text(status: &Value) -> String {
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    let left = format!(
        "{}: {} of {} units left",
        field(status, "limit"),
        number("remaining"),
        number("capacity")
    );
    let outcome = match (
        status["outcome"].as_str(),
        status["retry_after_ms"].as_u64(),
    ) {
        (Some("limited"), Some(retry)) => format!(", limited for {}", millis(retry)),
        (Some("queued"), Some(wait)) => format!(", queued for {}", millis(wait)),
        (Some("never"), _) => ", never admitted".into(),
        _ => String::new(),
    };
    let full = number("full_after_ms");
    let full = if full > 0 {
        format!(", full in {}", millis(full))
    } else {
        String::new()
    };
    let shadow = if status["shadow"] == true {
        " (shadow)"
    } else {
        ""
    };
    format!("{left}{outcome}{full}{shadow}")
}
