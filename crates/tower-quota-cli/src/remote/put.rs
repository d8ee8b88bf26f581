//! `put`: new rules for running services, in place of those that the author of the change has seen.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use http::Request;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use tower_quota_rules::Rules;

use super::api::{json, problems, tag, version};
use super::record::Record;
use super::versions::version_text;
use super::{Api, ChangeArguments};
use crate::failure::{Ended, Failure};
use crate::output::{Output, visible};
use crate::rules::diff;
use crate::rules::load::RulesText;

#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// The file of rules, or `-` for standard input.
    file: PathBuf,
    /// The version that the change is made from: its number, `any`, or `none` for the first rules. The default is the
    /// version that `show --output FILE` has recorded. Without a record, the command shows what changes and asks, or
    /// refuses if there is no terminal.
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    /// Ends the roll-out under way. Its version is the one to expect.
    #[arg(long)]
    replace_rollout: bool,
    /// Runs the rules beside those in force for this percentage of clients.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: Option<u8>,
    /// Runs the rules beside those in force, and only counts what they would change.
    #[arg(long, conflicts_with = "percent")]
    dry_run: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn put(arguments: &PutArguments, api: &Api) -> Ended {
    let rules = api.load.read(&arguments.file)?;
    let current = api.get_if_any("/v1/rules")?;
    let rollout = api.get_if_any("/v1/rules/rollout")?;
    if let Some(rollout) = &rollout
        && !arguments.replace_rollout
    {
        return Err(Failure::Problem(format!(
            "version {} is being rolled out: promote or abandon it, or end it with --replace-rollout",
            version(rollout).unwrap_or_default()
        )));
    }
    let newest = rollout.as_ref().or(current.as_ref());
    let newest = newest.and_then(tag).map(str::to_owned);
    let record = Record::of(&arguments.file);
    let recorded = record.read(api);
    let expected = match (arguments.expect.as_deref(), &recorded) {
        (Some("any"), _) => newest,
        (Some("none"), _) => None,
        (Some(number), _) => Some(format!("\"{number}\"")),
        (None, Some(tag)) => Some(tag.clone()),
        (None, None) => {
            if let Some(tag) = &newest {
                confirm(&rules, tag.trim_matches('"'), api)?;
            }
            newest
        }
    };
    let is_rollout = arguments.dry_run || arguments.percent.is_some();
    let (mut path, kind) = if is_rollout {
        (
            "/v1/rules/rollout".to_owned(),
            "is rolled out beside the rules in force",
        )
    } else {
        ("/v1/rules".to_owned(), "is in force")
    };
    if let Some(percent) = arguments.percent {
        path += &format!("?percent={percent}");
    }
    let request = Request::put(path).header(CONTENT_TYPE, rules.format.media_type());
    let request = match expected {
        Some(tag) => request.header(IF_MATCH, tag),
        None => request.header(IF_NONE_MATCH, "*"),
    };
    let answer = api.send(arguments.change.on(request), &rules.text)?;
    if recorded.is_some() {
        record.write(tag(&answer).unwrap_or_default(), api)?;
    }
    let put = json(&answer)?;
    let warnings = problems(&put["warnings"]);
    let text = format!("{warnings}\nversion {} {kind}\n", put["number"]);
    Output::new(&put, text.trim_start())
}

/// Returns the rules that a service has in force.
pub(super) fn rules_in_force(api: &Api) -> Result<Rules, Failure> {
    api.load.checked(&version_text(api, None)?)
}

/// Shows what new rules change, and asks whether to put them. Fails unless a person says yes.
fn confirm(rules: &RulesText, number: &str, api: &Api) -> Result<(), Failure> {
    let compared = rules_in_force(api).and_then(|old| {
        let differences = diff::between(&old, &api.load.checked(rules)?);
        Ok(diff::text(&differences))
    });
    let changes = compared.unwrap_or_else(|failure| format!("{failure}\n"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::Problem(format!(
            "not put: version {number} is the newest, and these rules may be made from another one. If you have seen the \
             changes, add --expect {number}\n{changes}"
        )));
    }
    eprint!(
        "In place of version {number}:\n{}Put these rules? [y/N] ",
        visible(&changes, true)
    );
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(Failure::usage)?;
    match answer.trim() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Problem("not put".into())),
    }
}
