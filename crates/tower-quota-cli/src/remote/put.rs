//! Runs `put`, which gives running services new rules, and protects against concurrent changes.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use http::Request;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::request::Builder;
use tower_quota_rules::Rules;

use super::api::{ApiAnswer, problems};
use super::record::Record;
use super::{Api, ChangeArguments};
use crate::failure::Failure;
use crate::output::{Ended, Output};
use crate::rules::diff;
use crate::rules::load::RulesText;
use crate::visible::visible;

#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// The file of rules, or `-` for standard input.
    file: PathBuf,
    /// The version you have edited, by its number, or `any`, or `none` for the first rules.
    /// Defaults to the version recorded by `show --output FILE`. Without a record, the command
    /// shows the changes and asks you, or refuses if there is no terminal.
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn put(arguments: &PutArguments, api: &Api) -> Ended {
    let rules = api.load.read(&arguments.file)?;
    let record = Record::of(&arguments.file);
    let recorded = record.read(api);
    let request = Request::put("/v1/rules").header(CONTENT_TYPE, "application/yaml");
    let request = match (&arguments.expect, &recorded) {
        (None, Some(tag)) => request.header(IF_MATCH, tag),
        (expect, _) => expecting(request, expect.as_deref(), &rules, api)?,
    };
    let answer = api.send(arguments.change.on(request), &rules.text)?;
    if recorded.is_some() {
        record.write(&answer.tag, api)?;
    }
    let put = answer.json()?;
    let text = format!(
        "{}\nversion {} is in force\n",
        problems(&put["warnings"]),
        put["number"]
    );
    Output::new(&put, text.trim_start())
}

/// Adds the expected version to a request. Without `expect`, shows the changes and asks the user.
pub(super) fn expecting(
    request: Builder,
    expect: Option<&str>,
    rules: &RulesText,
    api: &Api,
) -> Result<Builder, Failure> {
    let newest = api.get_if_any("/v1/rules?newest=true")?;
    let expected = match expect {
        Some("any") => newest,
        Some("none") => None,
        Some(number) => Some(api.send(Request::get(format!("/v1/rules/{number}")), "")?),
        None => {
            if let Some(newest) = &newest {
                confirm(rules, newest, api)?;
            }
            newest
        }
    };
    Ok(match expected {
        Some(version) => request.header(IF_MATCH, version.tag),
        None => request.header(IF_NONE_MATCH, "*"),
    })
}

pub(super) fn rules_in_force(api: &Api) -> Result<Rules, Failure> {
    api.load.checked(&api.version(None)?.rules())
}

/// Shows the changes and asks whether to put the rules. Fails unless the user agrees.
fn confirm(rules: &RulesText, newest: &ApiAnswer, api: &Api) -> Result<(), Failure> {
    let number = newest.version();
    let old = api.load.checked(&newest.rules());
    let compared = old.and_then(|old| Ok(diff::between(&old, &api.load.checked(rules)?)));
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
