//! `peek`, `reset`, `grant`: single clients.

use clap::Args;
use http::Request;
use serde_json::{Value, json};

use super::api::{encoded, json as read};
use super::{Api, ChangeArguments};
use crate::failure::Ended;
use crate::output::{Output, describe};

#[derive(Args, Debug)]
pub(crate) struct PeekArguments {
    /// The name of a limit.
    limit: String,
    /// The key that the limit counts by: an address, an API key.
    key: String,
}

#[derive(Args, Debug)]
pub(crate) struct ResetArguments {
    #[command(flatten)]
    client: PeekArguments,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Args, Debug)]
pub(crate) struct GrantArguments {
    #[command(flatten)]
    client: PeekArguments,
    /// The number of units. More than are used have no effect.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    units: u64,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Warns of a key that may be misspelled.
pub(super) const NEVER_SEEN: &str =
    "never seen: no limit has counted this key lately. Is it spelled right?\n";

pub(crate) fn peek(arguments: &PeekArguments, api: &Api) -> Ended {
    let status = api.get(&arguments.path())?;
    let seen = if is_unseen(&status) { NEVER_SEEN } else { "" };
    shown(&status, seen)
}

pub(crate) fn reset(arguments: &ResetArguments, api: &Api) -> Ended {
    let request = Request::delete(arguments.client.path());
    shown(&read(&api.send(arguments.change.on(request), "")?)?, "")
}

pub(crate) fn grant(arguments: &GrantArguments, api: &Api) -> Ended {
    let request = Request::post(arguments.client.path() + "/grant");
    let body = json!({ "units": arguments.units });
    shown(&api.send_json(arguments.change.on(request), &body)?, "")
}

impl PeekArguments {
    fn path(&self) -> String {
        path(&self.limit, &self.key)
    }
}

/// Returns the path of a client.
pub(super) fn path(limit: &str, key: &str) -> String {
    format!("/v1/clients/{}/{}", encoded(limit), encoded(key))
}

/// Returns whether a limit has no units to give back to a client. It has not counted the client, or long ago.
pub(super) fn is_unseen(status: &Value) -> bool {
    status["full_after_ms"] == 0
}

/// Shows the client's status. A limited client is something found.
fn shown(status: &Value, note: &str) -> Ended {
    let is_limited = matches!(status["outcome"].as_str(), Some("limited" | "never"));
    let output = Output::new(status, &(describe(status) + note))?;
    Ok(output.found(is_limited))
}
