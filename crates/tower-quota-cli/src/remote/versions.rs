//! `show`, `history`, `audit`, `rollback`, `shadow`, `promote`, `abandon`: versions of rules, and changes.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use http::Request;
use http::header::IF_MATCH;
use http::request::Builder;
use serde_json::json;

use super::api::{tag, version};
use super::document::{document, version_text};
use super::put::expecting;
use super::record::Record;
use super::{Api, ChangeArguments};
use crate::failure::Failure;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
pub(crate) struct RollbackArguments {
    /// The number of the version to return to. It is put again, as a new version.
    version: u64,
    /// The version that the change is made from: its number, or `any`. By default the command shows what changes and
    /// asks, or refuses if there is no terminal.
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArguments {
    /// The most to list, the newest first.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// The number of a version. The default is the one in force.
    version: Option<u64>,
    /// Writes the rules to this file, and their version to FILE.version. Then `put FILE` is refused if another change
    /// came first.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn rollback(arguments: &RollbackArguments, api: &Api) -> Ended {
    let rules = version_text(api, Some(arguments.version))?;
    let request = arguments.change.on(Request::post("/v1/rules/rollback"));
    let request = expecting(request, arguments.expect.as_deref(), None, &rules, api)?;
    let put = api.send_json(request, &json!({ "version": arguments.version }))?;
    let text = format!(
        "version {} is in force: the text of version {}\n",
        put["number"], arguments.version
    );
    Output::new(&put, &text)
}

pub(crate) fn history(arguments: &HistoryArguments, api: &Api) -> Ended {
    let path = format!("/v1/rules/history?count={}", arguments.count);
    Output::answer(api.get(&path)?["versions"].take())
}

pub(crate) fn audit(arguments: &HistoryArguments, api: &Api) -> Ended {
    let path = format!("/v1/audit?count={}", arguments.count);
    Output::answer(api.get(&path)?["records"].take())
}

pub(crate) fn show(arguments: &ShowArguments, api: &Api) -> Ended {
    let answer = document(api, arguments.version)?;
    let shown = json!({ "version": version(&answer), "text": answer.body() });
    let Some(path) = &arguments.output else {
        return Output::document(&shown, answer.into_body());
    };
    fs::write(path, answer.body()).map_err(Failure::at(path.display()))?;
    Record::of(path).write(tag(&answer).unwrap_or_default(), api)?;
    let text = format!(
        "{}: version {}\n",
        path.display(),
        version(&answer).unwrap_or_default()
    );
    Output::new(&shown, &text)
}

/// Shows the shadow document, with the counts of all instances.
pub(crate) fn shadow(api: &Api) -> Ended {
    Output::answer(api.get("/v1/rules/shadow")?)
}

pub(crate) fn promote(change: &ChangeArguments, api: &Api) -> Ended {
    let request = Request::post("/v1/rules/shadow/promote");
    end_shadow(change, api, request, "is in force")
}

pub(crate) fn abandon(change: &ChangeArguments, api: &Api) -> Ended {
    let request = Request::delete("/v1/rules/shadow");
    end_shadow(change, api, request, "is abandoned")
}

fn end_shadow(change: &ChangeArguments, api: &Api, request: Builder, done: &str) -> Ended {
    let shadow = api.send(Request::get("/v1/rules/shadow"), "")?;
    let number = version(&shadow);
    let request = request.header(IF_MATCH, tag(&shadow).unwrap_or_default());
    api.send(change.on(request), "")?;
    let text = format!("version {} {done}\n", number.unwrap_or_default());
    Output::new(&json!({ "version": number }), &text)
}
