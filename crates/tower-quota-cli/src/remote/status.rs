//! `health` and `top`: the state of one instance.

use core::time::Duration;
use std::io::{self, IsTerminal};
use std::sync::mpsc;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::http::HttpApi;
use super::text::{field, millis};
use super::{Call, TargetArguments};
use crate::failure::{Ended, Failure, Found};
use crate::output::{self, Table, grouped};

/// The time between two lists of `top --watch`.
const EVERY: Duration = Duration::from_secs(2);

/// Clears a terminal, and moves its cursor to the first line.
const CLEAR_SCREEN: &str = "\x1b[2J\x1b[H";

#[derive(Args, Debug)]
pub(crate) struct HealthArguments {
    #[command(flatten)]
    target: TargetArguments,
}

/// The clients to list.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopArguments {
    /// The requests to rank clients by.
    #[arg(long, value_enum, default_value_t = RankBy::Limited)]
    by: RankBy,
    /// The time that is counted: 1m, 10m or 1h.
    #[arg(long, default_value = "10m", value_parser = ["1m", "10m", "1h"])]
    window: String,
    /// The most clients to list.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=256))]
    limit: u16,
    /// Shows keys, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    /// Prints the list again every two seconds, until you interrupt it.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RankBy {
    /// Refused requests.
    Limited,
    /// All requests.
    Busy,
}

/// Shows the health of an instance. An unhealthy one is something found.
pub(crate) fn health(arguments: &HealthArguments, is_json: bool) -> Ended {
    let health = arguments
        .target
        .connect()?
        .send(&Call::new(Call::GET, &["health"]))?
        .json()?;
    output::print(is_json, &health, text)?;
    Ok(if health["healthy"] == true {
        Found::Nothing
    } else {
        Found::Something
    })
}

/// Lists the clients with most requests, once or again and again.
pub(crate) fn top(arguments: &TopArguments, is_json: bool) -> Ended {
    let api = arguments.target.instance("top clients")?;
    print_top(&api, arguments, is_json)?;
    if !arguments.watch {
        return Ok(Found::Nothing);
    }
    // Nothing is ever sent. The channel is a clock.
    let (_sender, pause) = mpsc::channel::<()>();
    loop {
        let _ = pause.recv_timeout(EVERY);
        if !is_json && io::stdout().is_terminal() {
            output::write(CLEAR_SCREEN)?;
        }
        match print_top(&api, arguments, is_json) {
            // The service restarts, or the network has failed for a moment.
            Err(Failure::Unreachable(reason)) => eprintln!("error: {reason}"),
            printed => printed?,
        }
    }
}

fn print_top(api: &HttpApi, arguments: &TopArguments, is_json: bool) -> Result<(), Failure> {
    let by = match arguments.by {
        RankBy::Limited => "limited",
        RankBy::Busy => "busy",
    };
    let call = Call::new(Call::GET, &["top"])
        .query("by", Some(by))
        .query("window", Some(&arguments.window))
        .query("limit", Some(arguments.limit.to_string()))
        .query("show_keys", arguments.show_keys.then_some("true"));
    let answer = api.send(&call)?.json()?;
    let of_all = instances(&answer);
    output::print(is_json, &answer["clients"], |clients| {
        let mut columns = Table::new(&["client", "scope", "limit", "requests", "limited for"]);
        for client in clients.as_array().into_iter().flatten() {
            let retry = client["retry_after_ms"].as_u64().unwrap_or(0);
            columns.row([
                name(client),
                field(client, "scope"),
                field(client, "limit"),
                count(client),
                millis(retry),
            ]);
        }
        columns.text() + &of_all.map_or(String::new(), |of_all| of_all + "\n")
    })
}

/// Returns whose figures a list has and how old they are, unless they are those of one instance.
fn instances(list: &Value) -> Option<String> {
    let number = list["instances"].as_u64()?;
    let age = list["age_ms"].as_u64().unwrap_or(0);
    Some(format!(
        "of {} instances, {} s old",
        grouped(number),
        age.div_ceil(1_000)
    ))
}

/// Returns the key of a listed client, or its hash.
fn name(client: &Value) -> String {
    client["key"]
        .as_str()
        .map_or_else(|| field(client, "hash"), str::to_owned)
}

/// Returns the number of requests of a listed client.
fn count(client: &Value) -> String {
    let (least, most) = (
        client["at_least"].as_u64().unwrap_or(0),
        client["at_most"].as_u64().unwrap_or(0),
    );
    if least == most {
        grouped(least)
    } else {
        format!("{} to {}", grouped(least), grouped(most))
    }
}

fn text(health: &Value) -> String {
    let rules = &health["rules"];
    let state = if health["healthy"] == true {
        "healthy"
    } else {
        "not healthy"
    };
    let mut lines = vec![format!("{state}, {} requests wait", health["waiting"])];
    match rules["in_force"]["number"].as_u64() {
        Some(number) => lines.push(format!(
            "rules: version {number} since {}",
            field(&rules["in_force"], "since")
        )),
        None => lines.push("rules: none yet".into()),
    }
    let reached = if rules["is_reachable"] == true {
        "reachable"
    } else {
        "not reachable"
    };
    lines.push(format!(
        "source: {}, {reached} since {}",
        field(rules, "store"),
        field(rules, "reachable_since")
    ));
    if let Some(error) = rules["last_error"].as_str() {
        lines.push(format!(
            "error since {}: {error}",
            field(rules, "failing_since")
        ));
    }
    for store in health["stores"].as_array().into_iter().flatten() {
        let answers = if store["available"] == true {
            "available"
        } else {
            "not available"
        };
        lines.push(format!("store {}: {answers}", field(store, "name")));
    }
    for mistake in health["mistakes"].as_array().into_iter().flatten() {
        lines.push(format!("mistake: {}", field(mistake, "message")));
    }
    lines.join("\n") + "\n"
}
