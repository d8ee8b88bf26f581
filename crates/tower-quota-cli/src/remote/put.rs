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
    let newest = show_changes(&rules, api);
    let request = Request::put("/v1/rules").header(CONTENT_TYPE, "application/yaml");
    let request = match (&arguments.expect, &recorded) {
        (None, Some(tag)) => request.header(IF_MATCH, tag),
        (expect, _) => expecting(request, expect.as_deref(), newest, api)?,
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

/// The newest rules, if there are any.
type Newest = Result<Option<ApiAnswer>, Failure>;

/// Shows the differences from the newest rules, and returns the newest rules. Shows a failure too, which is no reason to stop.
pub(super) fn show_changes(rules: &RulesText, api: &Api) -> Newest {
    let newest = api.get_if_any("/v1/rules?newest=true");
    let changes = match &newest {
        Ok(None) => return newest,
        Ok(Some(newest)) => changes(newest, rules, api),
        Err(failure) => Err(failure.clone()),
    };
    let text = changes.unwrap_or_else(|failure| {
        let failure = failure.to_string();
        // The second line is the first problem of a document.
        let reason: Vec<&str> = failure.lines().take(2).collect();
        format!("note: the differences are unknown: {}\n", reason.join(": "))
    });
    eprint!("{}", visible(&text, true));
    newest
}

fn changes(newest: &ApiAnswer, rules: &RulesText, api: &Api) -> Result<String, Failure> {
    let old = api.load.checked(&newest.rules())?;
    let changes = diff::between(&old, &api.load.checked(rules)?);
    Ok(format!(
        "in place of version {}:\n{changes}",
        newest.version()
    ))
}

/// Adds the expected version to a request. Without `expect`, asks the user.
pub(super) fn expecting(
    request: Builder,
    expect: Option<&str>,
    newest: Newest,
    api: &Api,
) -> Result<Builder, Failure> {
    let expected = match expect {
        Some("any") => newest?,
        Some("none") => None,
        Some(number) => Some(api.send(Request::get(format!("/v1/rules/{number}")), "")?),
        None => {
            let newest = newest?;
            newest.as_ref().map_or(Ok(()), confirm)?;
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

/// Asks whether to replace the newest rules. Fails unless the user agrees.
fn confirm(newest: &ApiAnswer) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let number = newest.version();
        return Err(Failure::Problem(format!(
            "not put: version {number} is the newest, and these rules may be made from another one. If you have seen the \
             changes, add --expect {number}"
        )));
    }
    eprint!("Put these rules? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(Failure::usage)?;
    match answer.trim() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Problem("not put".into())),
    }
}
