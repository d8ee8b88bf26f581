//! `refusal`: the decision behind a refused request, by the reference that the client was given.

use clap::Args;
use serde_json::Value;

use super::clients;
use super::text::field;
use super::{Call, TargetArguments};
use crate::failure::{Ended, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct RefusalArguments {
    /// The reference: the field `X-RateLimit-Reference`, or the member `reference` of the problem details.
    reference: String,
    /// Shows the key, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    target: TargetArguments,
}

/// Shows a refusal.
pub(crate) fn refusal(arguments: &RefusalArguments, is_json: bool) -> Ended {
    let call = Call::new(Call::GET, &["refusals", &arguments.reference])
        .query("show_keys", arguments.show_keys.then_some("true"));
    let refusal = arguments.target.instance("refusals")?.send(&call)?.json()?;
    output::print(is_json, &refusal, text)?;
    Ok(Found::Nothing)
}

fn text(refusal: &Value) -> String {
    let degraded = if refusal["degraded"] == true {
        ", without the store"
    } else {
        ""
    };
    let mut out = format!(
        "{} at {} by {}{degraded}\n",
        field(refusal, "reason"),
        field(refusal, "at"),
        field(refusal, "instance")
    );
    if !refusal["status"].is_null() {
        out.push_str(&clients::text(&refusal["status"]));
        out.push('\n');
    }
    for (title, name) in [
        ("counted by", "scope"),
        ("hash", "hash"),
        ("key", "key"),
        ("rules version", "rules_version"),
    ] {
        if !refusal[name].is_null() {
            out.push_str(&format!("{title}: {}\n", field(refusal, name)));
        }
    }
    out
}
