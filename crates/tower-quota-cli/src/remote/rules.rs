//! `put`, `show`, `history`, `audit`, `rollback`, `promote`, `abandon`: the rules of running services, and their changes.

use core::str::FromStr;
use std::path::PathBuf;

use clap::Args;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use serde_json::json;
use tower_quota_rules::Format;

use super::text::{field, problem};
use super::{Answer, Call, Connection, TargetArguments};
use crate::failure::{Ended, Failure, Found};
use crate::output::{self, Table, grouped};
use crate::rules::load::RulesText;

#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// The file of rules, or `-` for standard input.
    file: PathBuf,
    /// The version that the change is made from: its number, `any`, or `none` for the first rules. The default is that
    /// of the roll-out under way, or else the one in force.
    #[arg(long, value_name = "VERSION")]
    expect: Option<ExpectedVersion>,
    /// Runs the rules beside those in force for this percentage of clients.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: Option<u8>,
    /// Runs the rules beside those in force, and only counts what they would change.
    #[arg(long, conflicts_with = "percent")]
    dry_run: bool,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

/// The version that a change is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedVersion {
    Any,
    None,
    Number(u64),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ChangeArguments {
    /// The reason, for the history and the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RollbackArguments {
    /// The number of the version to return to. It is put again, as a new version.
    version: u64,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArguments {
    /// The most to list, the newest first.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// The number of a version. The default is the one in force.
    version: Option<u64>,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RolloutArguments {
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn put(arguments: &PutArguments, is_json: bool) -> Ended {
    let rules = RulesText::read(&arguments.file, arguments.target.store.load.format)?;
    let connection = arguments.target.connect()?;
    let mut parts = vec!["rules"];
    let is_rollout = arguments.dry_run || arguments.percent.is_some();
    if is_rollout {
        parts.push("rollout");
    }
    let percent = arguments.percent.map(|percent| percent.to_string());
    let call = Call::new(Call::PUT, &parts)
        .query("percent", percent)
        .query("comment", arguments.change.comment.as_deref())
        .body(rules.format.media_type(), rules.text);
    let answer = connection.send(&expecting(call, arguments.expect, &connection)?)?;
    let kind = if is_rollout {
        "is rolled out beside the rules in force"
    } else {
        "is in force"
    };
    output::print(is_json, &answer.json()?, |version| {
        let warnings = version["warnings"]["problems"]
            .as_array()
            .into_iter()
            .flatten();
        let warnings: String = warnings.map(|warning| problem(warning) + "\n").collect();
        format!("{warnings}version {} {kind}\n", version["number"])
    })?;
    Ok(Found::Nothing)
}

pub(crate) fn rollback(arguments: &RollbackArguments, is_json: bool) -> Ended {
    let call = Call::new(Call::POST, &["rules", "rollback"])
        .query("comment", arguments.change.comment.as_deref())
        .json(&json!({ "version": arguments.version }));
    let answer = arguments.target.connect()?.send(&call)?.json()?;
    output::print(is_json, &answer, |version| {
        format!(
            "version {} is in force: the text of version {}\n",
            version["number"], arguments.version
        )
    })?;
    Ok(Found::Nothing)
}

pub(crate) fn history(arguments: &HistoryArguments, is_json: bool) -> Ended {
    let call = Call::new(Call::GET, &["rules", "history"])
        .query("limit", Some(arguments.limit.to_string()));
    let answer = arguments.target.connect()?.send(&call)?.json()?;
    output::print(is_json, &answer["versions"], |versions| {
        let mut columns = Table::new(&["version", "time", "author", "bytes", "comment"]);
        for version in versions.as_array().into_iter().flatten() {
            let bytes = version["bytes"].as_u64().map_or(String::new(), grouped);
            let text = |name| field(version, name);
            columns.row([
                text("number"),
                text("time"),
                text("author"),
                bytes,
                text("comment"),
            ]);
        }
        columns.text()
    })?;
    Ok(Found::Nothing)
}

pub(crate) fn audit(arguments: &HistoryArguments, is_json: bool) -> Ended {
    let call = Call::new(Call::GET, &["audit"]).query("limit", Some(arguments.limit.to_string()));
    let answer = arguments.target.connect()?.send(&call)?.json()?;
    output::print(is_json, &answer["records"], |records| {
        const FIELDS: [&str; 7] = [
            "time", "who", "what", "target", "before", "after", "comment",
        ];
        let mut columns = Table::new(&FIELDS);
        for record in records.as_array().into_iter().flatten() {
            columns.row(FIELDS.map(|name| field(record, name)));
        }
        columns.text()
    })?;
    Ok(Found::Nothing)
}

pub(crate) fn show(arguments: &ShowArguments, is_json: bool) -> Ended {
    let version = arguments.version.map(|number| number.to_string());
    let parts: Vec<&str> = core::iter::once("rules")
        .chain(version.as_deref())
        .collect();
    let answer = arguments
        .target
        .connect()?
        .send(&Call::new(Call::GET, &parts))?;
    let shown = json!({ "version": number(&answer), "text": answer.body });
    output::print(is_json, &shown, |_| answer.body.clone())?;
    Ok(Found::Nothing)
}

/// Returns the text of a version that a service has.
pub(crate) fn version_text(connection: &Connection, number: u64) -> Result<RulesText, Failure> {
    let answer = connection.send(&Call::new(Call::GET, &["rules", &number.to_string()]))?;
    let format = answer
        .content_type
        .as_deref()
        .and_then(Format::of_content_type)
        .unwrap_or(Format::Yaml);
    Ok(RulesText {
        path: format!("version {number}").into(),
        format,
        text: answer.body,
    })
}

pub(crate) fn promote(arguments: &RolloutArguments, is_json: bool) -> Ended {
    end_rollout(
        arguments,
        is_json,
        Call::new(Call::POST, &["rules", "rollout", "promote"]),
        "is in force for all clients",
    )
}

pub(crate) fn abandon(arguments: &RolloutArguments, is_json: bool) -> Ended {
    end_rollout(
        arguments,
        is_json,
        Call::new(Call::DELETE, &["rules", "rollout"]),
        "is not rolled out any more",
    )
}

fn end_rollout(arguments: &RolloutArguments, is_json: bool, call: Call, done: &str) -> Ended {
    let connection = arguments.target.connect()?;
    let rollout = connection.send(&Call::new(Call::GET, &["rules", "rollout"]))?;
    let version = number(&rollout);
    let call = call
        .query("comment", arguments.change.comment.as_deref())
        .header(IF_MATCH, rollout.etag.unwrap_or_default());
    connection.send(&call)?;
    output::print(is_json, &json!({ "version": version }), |_| {
        format!("version {} {done}\n", version.unwrap_or(0))
    })?;
    Ok(Found::Nothing)
}

/// Adds the version that a change is made from.
fn expecting(
    call: Call,
    expected: Option<ExpectedVersion>,
    connection: &Connection,
) -> Result<Call, Failure> {
    Ok(match expected {
        Some(ExpectedVersion::Any) => call.header(IF_MATCH, "*"),
        Some(ExpectedVersion::None) => call.header(IF_NONE_MATCH, "*"),
        Some(ExpectedVersion::Number(number)) => call.header(IF_MATCH, format!("\"{number}\"")),
        None => {
            let tag = match tag(connection, &["rules", "rollout"])? {
                None => tag(connection, &["rules"])?,
                candidate => candidate,
            };
            match tag {
                Some(tag) => call.header(IF_MATCH, tag),
                None => call.header(IF_NONE_MATCH, "*"),
            }
        }
    })
}

/// Returns the entity tag of what a service has, if there is any.
fn tag(connection: &Connection, parts: &[&str]) -> Result<Option<String>, Failure> {
    match connection.send(&Call::new(Call::GET, parts)) {
        Ok(answer) => Ok(answer.etag),
        // There is none. What else is refused here, the change is refused for too.
        Err(Failure::Problem(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the version of an answer, by its entity tag.
fn number(answer: &Answer) -> Option<u64> {
    answer.etag.as_deref()?.trim_matches('"').parse().ok()
}

impl FromStr for ExpectedVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" => Ok(Self::Any),
            "none" => Ok(Self::None),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "give the number of a version, any, or none".into()),
        }
    }
}
