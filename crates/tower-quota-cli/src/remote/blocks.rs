use core::time::Duration;

use clap::Args;
use http::Request;
use serde_json::json;

use super::target::duration;
use super::{Api, ChangeArguments, clients};
use crate::failure::Failure;
use crate::output::{Ended, Output, describe};

#[derive(Args, Debug)]
pub(crate) struct BlockArguments {
    /// An address, a network such as 203.0.113.0/24, or a key of a limit, such as an API key.
    who: String,
    /// The time until the block ends.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Duration,
    /// The scope of a key, such as `header x-api-key`, if limits count by several keys.
    #[arg(long)]
    scope: Option<String>,
    /// The reason, for the list of blocks.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Blocks even a very large network, your own address, an address of your network, or most of the traffic.
    #[arg(long)]
    force: bool,
    /// Exempts the client from all limits, instead of blocking it.
    #[arg(long)]
    allow: bool,
}

#[derive(Args, Debug)]
pub(crate) struct UnblockArguments {
    /// The id of a block, or its address, network or key.
    who: String,
    /// The scope of a key, such as `header x-api-key`, to remove one of several blocks.
    #[arg(long)]
    scope: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Args, Debug)]
pub(crate) struct OverrideArguments {
    /// The key of a client, or with `--remove` the id of an override.
    who: String,
    /// The name of a limit.
    #[arg(long, required_unless_present = "remove")]
    limit: Option<String>,
    /// The quota, such as 60000/minute or unlimited.
    #[arg(long, required_unless_present = "remove")]
    quota: Option<String>,
    /// The time until the end, such as 2h.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    length: Option<String>,
    /// The end, such as 2026-05-01T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The reason, for the list of overrides.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Ends an override early.
    #[arg(long, conflicts_with_all = ["limit", "quota", "length", "until"])]
    remove: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    /// Shows keys, if services store them.
    #[arg(long)]
    show_keys: bool,
}

pub(crate) fn block(arguments: &BlockArguments, api: &Api) -> Ended {
    let body = json!({
        "target": arguments.who,
        "scope": arguments.scope,
        "kind": if arguments.allow { "allow" } else { "block" },
        "seconds": arguments.length.as_secs(),
        "force": arguments.force,
        "reason": arguments.reason,
    });
    announce_reach(api, "/v1/blocks?count=1");
    let block = api.send_json(Request::put("/v1/blocks"), &body)?;
    let mut text = describe(&block);
    let key = &block["target"]["key"];
    if !key.is_null() && is_unseen(api, &arguments.who) {
        text += clients::FULL;
    }
    Output::new(&block, &text)
}

/// Says before a change if it holds on one instance only.
fn announce_reach(api: &Api, path: &str) {
    let list = api.get(path).unwrap_or_default();
    if let Some(reach) = list["reach"].as_str()
        && reach != "all instances"
    {
        eprintln!("note: the change holds on {reach}");
    }
}

pub(crate) fn unblock(arguments: &UnblockArguments, api: &Api) -> Ended {
    announce_reach(api, "/v1/blocks?count=1");
    let request = arguments.change.on(Request::post("/v1/blocks/remove"));
    let body = json!({ "target": arguments.who, "scope": arguments.scope });
    Output::answer(api.send_json(request, &body)?)
}

pub(crate) fn change_override(arguments: &OverrideArguments, api: &Api) -> Ended {
    announce_reach(api, "/v1/overrides?count=1");
    let (request, body) = if arguments.remove {
        let body = json!({ "id": arguments.who });
        (Request::post("/v1/overrides/remove"), body)
    } else {
        let body = json!({
            "limit": arguments.limit,
            "key": arguments.who,
            "quota": arguments.quota,
            "for": arguments.length,
            "until": arguments.until,
        });
        (Request::put("/v1/overrides"), body)
    };
    let request = request.header("x-comment", arguments.reason.as_bytes());
    Output::answer(api.send_json(request, &body)?)
}

pub(crate) fn list(what: &str, arguments: &ListArguments, api: &Api) -> Ended {
    let path = format!("/v1/{what}?show_keys={}", arguments.show_keys);
    let blocks = &api.get(&path)?[what];
    let mut shown = blocks.clone();
    for block in shown.as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut() {
            block.retain(|name, _| {
                !matches!((name.as_str(), what), ("since", _) | ("limit", "blocks"))
            });
        }
    }
    Output::new(blocks, &describe(&shown))
}

const LIMITS: usize = 20;

/// Returns whether no limit seems to know a client. Failures tell nothing, since the block is in force.
fn is_unseen(api: &Api, who: &str) -> bool {
    let Ok(rules) = super::put::rules_in_force(api) else {
        return false;
    };
    let mut is_counted = false;
    for limit in rules.document().all_limits().take(LIMITS) {
        let client = clients::PeekArguments {
            limit: limit.name.to_string(),
            key: who.to_owned(),
        };
        match client.status(api) {
            Ok(status) if status["refused_at"].is_null() && status["full_after_ms"] == 0 => {
                is_counted = true;
            }
            // Try the next limit, because this limit counts by another form of keys.
            Err(Failure::Problem(_)) => {}
            Ok(_) | Err(_) => return false,
        }
    }
    is_counted
}
