//! `block`, `unblock`, `blocks`: clients and networks that are blocked or let pass, on all instances.

use core::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::rules::ChangeArguments;
use super::target::duration;
use super::text::field;
use super::{Call, TargetArguments};
use crate::failure::{Ended, Found};
use crate::output::{self, Table};

#[derive(Args, Debug)]
pub(crate) struct BlockArguments {
    /// An address, a network such as 203.0.113.0/24, or else what a limit counts by: an API key.
    who: String,
    /// The time until it ends.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Duration,
    /// The scope of a key, such as `header x-api-key`, where limits count by several.
    #[arg(long)]
    scope: Option<String>,
    /// The reason, which is listed with it.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Lets the client pass uncounted, instead of blocking it.
    #[arg(long)]
    allow: bool,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct UnblockArguments {
    /// The id of a block, or its address, network or key.
    who: String,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct BlocksArguments {
    /// Shows keys, where services store them.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn block(arguments: &BlockArguments, is_json: bool) -> Ended {
    let mut body = json!({
        "target": arguments.who,
        "kind": if arguments.allow { "allow" } else { "block" },
        "seconds": arguments.length.as_secs(),
        "reason": arguments.reason,
    });
    if let Some(scope) = &arguments.scope {
        body["scope"] = scope.as_str().into();
    }
    let block = arguments
        .target
        .connect()?
        .send(&Call::new(Call::PUT, &["blocks"]).json(&body))?
        .json()?;
    output::print(is_json, &block, |block| {
        let kind = if arguments.allow {
            "allowed"
        } else {
            "blocked"
        };
        format!(
            "{} is {kind} until {} (id {})\n",
            target(block),
            field(block, "until"),
            field(block, "id")
        )
    })?;
    Ok(Found::Nothing)
}

pub(crate) fn unblock(arguments: &UnblockArguments, is_json: bool) -> Ended {
    let call = Call::new(Call::DELETE, &["blocks", &arguments.who])
        .query("comment", arguments.change.comment.as_deref());
    arguments.target.connect()?.send(&call)?;
    output::print(is_json, &json!({ "removed": true }), |_| "removed\n".into())?;
    Ok(Found::Nothing)
}

pub(crate) fn blocks(arguments: &BlocksArguments, is_json: bool) -> Ended {
    let call =
        Call::new(Call::GET, &["blocks"]).query("show_keys", arguments.show_keys.then_some("true"));
    let blocks = arguments.target.connect()?.send(&call)?.json()?;
    output::print(is_json, &blocks["blocks"], |blocks| {
        let mut columns = Table::new(&["id", "kind", "client", "until", "author", "reason"]);
        for block in blocks.as_array().into_iter().flatten() {
            let text = |name| field(block, name);
            columns.row([
                text("id"),
                text("kind"),
                target(block),
                text("until"),
                text("author"),
                text("reason"),
            ]);
        }
        columns.text()
    })?;
    Ok(Found::Nothing)
}

/// Returns the clients of a block as text.
fn target(block: &Value) -> String {
    let target = &block["target"];
    match target["network"].as_str() {
        Some(network) => network.to_owned(),
        None => {
            let key = &target["key"];
            format!(
                "{} {}",
                field(key, "scope"),
                key["text"]
                    .as_str()
                    .or(key["hash"].as_str())
                    .unwrap_or_default()
            )
        }
    }
}
