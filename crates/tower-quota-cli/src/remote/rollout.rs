//! `rollout`: what the rules that are rolled out change.

use clap::Args;
use serde_json::Value;

use super::{Call, TargetArguments};
use crate::failure::{Ended, Found};
use crate::output::{self, Table, grouped};

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    target: TargetArguments,
}

/// Shows the roll-out under way, with the counts of all instances.
pub(crate) fn run(arguments: &ReportArguments, is_json: bool) -> Ended {
    let rollout = arguments
        .target
        .connect()?
        .send(&Call::new(Call::GET, &["rules", "rollout"]))?
        .json()?;
    output::print(is_json, &rollout, text)?;
    Ok(Found::Nothing)
}

fn text(rollout: &Value) -> String {
    let mut shown = format!(
        "version {} {}\n",
        rollout["number"],
        kind(&rollout["rollout"])
    );
    let total = &rollout["all_instances"];
    if total.is_null() {
        return shown + "the store does not answer: its counts are not known\n";
    }
    shown += &format!("counted on {} instances\n", total["instances"]);
    let mut columns = Table::new(&["", "requests", "refused", "refused by this one only"]);
    let number = |name: &str| grouped(total[name].as_u64().unwrap_or(0));
    columns.row([
        "rules in force".into(),
        number("current_requests"),
        number("current_refused"),
        number("only_current_refuses"),
    ]);
    columns.row([
        "rolled out".into(),
        number("candidate_requests"),
        number("candidate_refused"),
        number("only_candidate_refuses"),
    ]);
    shown += &columns.text();
    let limits = total["limits"].as_object();
    if limits.is_some_and(|limits| !limits.is_empty()) {
        let mut columns = Table::new(&["limit", "refused in force", "refused rolled out"]);
        for (name, counts) in limits.into_iter().flatten() {
            let number = |field: &str| grouped(counts[field].as_u64().unwrap_or(0));
            columns.row([
                name.clone(),
                number("current_refused"),
                number("candidate_refused"),
            ]);
        }
        shown += &columns.text();
    }
    shown
}

fn kind(rollout: &Value) -> String {
    match rollout["percent"].as_u64() {
        Some(percent) => format!("decides for {percent} % of the clients"),
        None => "is a dry run".to_owned(),
    }
}
