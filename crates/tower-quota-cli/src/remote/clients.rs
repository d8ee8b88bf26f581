use clap::Args;
use http::Request;
use serde_json::{Value, json};

use super::{Api, ChangeArguments};
use crate::failure::Failure;
use crate::output::Ended;
use crate::output::{Output, describe};

#[derive(Args, Debug)]
pub(crate) struct PeekArguments {
    /// The name of a limit.
    pub(super) limit: String,
    /// The key of a client, such as an address or an API key.
    pub(super) key: String,
}

#[derive(Args, Debug)]
pub(crate) struct FindArguments {
    /// The key of a client, such as an address or an API key.
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
    /// The number of units. Units beyond the used ones have no effect.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    units: u64,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(super) const FULL: &str =
    "full now; an unknown client looks the same: is the key spelled right?\n";

pub(crate) fn peek(arguments: &PeekArguments, api: &Api) -> Ended {
    let status = arguments.status(api)?;
    let note = if is_unseen(&status) { FULL } else { "" };
    shown(&status, note)
}

/// Shows the clients with a key. The exit code tells whether a limit can count such a client.
pub(crate) fn find(arguments: &FindArguments, api: &Api) -> Ended {
    let body = json!({ "key": arguments.key });
    let found = api.send_json(Request::post("/v1/clients/find"), &body)?;
    let is_none = found["clients"].as_array().is_none_or(Vec::is_empty);
    Ok(Output::answer(found)?.found(is_none))
}

pub(crate) fn reset(arguments: &ResetArguments, api: &Api) -> Ended {
    let request = arguments.change.on(Request::post("/v1/clients/reset"));
    shown(&api.send_json(request, &arguments.client.body())?, "")
}

pub(crate) fn grant(arguments: &GrantArguments, api: &Api) -> Ended {
    let request = arguments.change.on(Request::post("/v1/clients/grant"));
    let mut body = arguments.client.body();
    body["units"] = arguments.units.into();
    shown(&api.send_json(request, &body)?, "")
}

impl PeekArguments {
    fn body(&self) -> Value {
        json!({ "limit": self.limit, "key": self.key })
    }

    pub(super) fn status(&self, api: &Api) -> Result<Value, Failure> {
        api.send_json(Request::post("/v1/clients/peek"), &self.body())
    }
}

/// Returns whether the client's counter is full, and the instance remembers no refusal of the client.
pub(super) fn is_unseen(status: &Value) -> bool {
    status["full_after_ms"] == 0 && status["refused_at"].is_null() && status["listed"].is_null()
}

/// Shows the client's status. The exit code tells whether the client is limited.
fn shown(status: &Value, note: &str) -> Ended {
    let admits = status["shadow"] == true || status["over"] == "flag";
    let is_limited = match status["outcome"].as_str() {
        Some("limited" | "never") => !admits,
        outcome => outcome == Some("blocked"),
    };
    let output = Output::new(status, &(describe(status) + note))?;
    Ok(output.found(is_limited))
}
