//! `watch`: changes of rules, blocks and health, and the clients that are limited, as they happen.

use core::time::Duration;
use std::collections::HashSet;
use std::sync::mpsc;

use clap::Args;
use serde_json::{Value, json};

use super::status::name;
use super::target::duration;
use super::text::{field, millis};
use super::{Call, Connection, TargetArguments};
use crate::failure::{Ended, Failure, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct WatchArguments {
    /// The time between two looks.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,
    /// Ends after this many looks.
    #[arg(long, value_name = "LOOKS")]
    looks: Option<u64>,
    #[command(flatten)]
    target: TargetArguments,
}

/// The state that was seen last.
#[derive(Default)]
struct Seen {
    version: Option<Value>,
    candidate: Option<Value>,
    error: Option<Value>,
    healthy: Option<Value>,
    blocks: Option<HashSet<String>>,
    limited: HashSet<(String, String)>,
}

/// Prints a line for each event, until it is interrupted.
pub(crate) fn watch(arguments: &WatchArguments, is_json: bool) -> Ended {
    let connection = arguments.target.connect()?;
    let mut seen = Seen::default();
    // Nothing is sent: it is a clock that an interrupt of the process ends.
    let (_sender, pause) = mpsc::channel::<()>();
    let mut looks = 0;
    loop {
        for event in seen.look(&connection)? {
            output::print(is_json, &event, text)?;
        }
        looks += 1;
        if arguments.looks.is_some_and(|most| looks >= most) {
            return Ok(Found::Nothing);
        }
        let _ = pause.recv_timeout(arguments.every);
    }
}

impl Seen {
    fn look(&mut self, connection: &Connection) -> Result<Vec<Value>, Failure> {
        let get = |parts: &[&str]| connection.send(&Call::new(Call::GET, parts))?.json();
        let health = get(&["health"])?;
        let mut events = Vec::new();
        let rules = &health["rules"];
        let mut changed = |last: &mut Option<Value>, now: &Value, event: &str| {
            if last.as_ref() != Some(now) && !(last.is_none() && now.is_null()) {
                events.push(json!({ "event": event, "now": now }));
            }
            *last = Some(now.clone());
        };
        changed(&mut self.version, &rules["in_force"], "rules");
        changed(&mut self.candidate, &rules["candidate"], "rollout");
        changed(&mut self.error, &rules["last_error"], "error");
        changed(&mut self.healthy, &health["healthy"], "healthy");
        self.blocks(&get(&["blocks"])?["blocks"], &mut events);
        let call = Call::new(Call::GET, &["top"])
            .query("window", Some("1m"))
            .query("limit", Some("256"));
        self.limited(&connection.send(&call)?.json()?["clients"], &mut events);
        Ok(events)
    }

    fn blocks(&mut self, blocks: &Value, events: &mut Vec<Value>) {
        let list = || blocks.as_array().into_iter().flatten();
        let ids: HashSet<String> = list().map(|block| field(block, "id")).collect();
        if let Some(last) = &self.blocks {
            for block in list().filter(|block| !last.contains(&field(block, "id"))) {
                events.push(json!({ "event": "block", "now": block }));
            }
            for id in last.difference(&ids) {
                events.push(json!({ "event": "unblock", "now": { "id": id } }));
            }
        }
        self.blocks = Some(ids);
    }

    fn limited(&mut self, clients: &Value, events: &mut Vec<Value>) {
        let list = || clients.as_array().into_iter().flatten();
        let id = |client: &Value| (field(client, "limit"), field(client, "hash"));
        for client in list().filter(|client| !self.limited.contains(&id(client))) {
            events.push(json!({ "event": "limited", "now": client }));
        }
        self.limited = list().map(id).collect();
    }
}

fn text(event: &Value) -> String {
    let now = &event["now"];
    let line = match event["event"].as_str().unwrap_or_default() {
        "rules" => format!(
            "rules: version {} by {}, in force since {} {}",
            now["number"],
            field(now, "author"),
            field(now, "since"),
            field(now, "comment")
        ),
        "rollout" if now.is_null() => "rollout: ended".into(),
        "rollout" => format!("rollout: version {} {}", now["number"], now["rollout"]),
        "error" if now.is_null() => "error: none any more".into(),
        "error" => format!("error: {}", now.as_str().unwrap_or_default()),
        "healthy" if *now == true => "healthy".into(),
        "healthy" => "not healthy".into(),
        "block" => format!(
            "block: {} until {} {}",
            field(now, "id"),
            field(now, "until"),
            field(now, "reason")
        ),
        "unblock" => format!("unblock: {}", field(now, "id")),
        _ => format!(
            "limited: {} by {}, for {}",
            name(now),
            field(now, "limit"),
            millis(now["retry_after_ms"].as_u64().unwrap_or(0))
        ),
    };
    line.trim_end().to_owned() + "\n"
}
