//! Runs the commands on versions of rules: `show`, `history`, `audit` and `rollback`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use http::Request;
use serde_json::json;

use super::put::{expecting, show_changes};
use super::record::Record;
use super::{Api, ChangeArguments};
use crate::failure::Failure;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
pub(crate) struct RollbackArguments {
    /// The number of the version to restore. The restored rules become a new version.
    version: u64,
    /// The version you have seen in force, by its number, or `any`. By default the command shows
    /// the changes and asks you, or refuses if there is no terminal.
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArguments {
    /// The most entries to list, the newest first.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// The number of a version. Defaults to the version in force.
    version: Option<u64>,
    /// Writes the rules to this file, and their version to FILE.version. Later, `put FILE` refuses
    /// to overwrite another change.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn rollback(arguments: &RollbackArguments, api: &Api) -> Ended {
    let rules = api.version(Some(arguments.version))?.rules();
    let newest = show_changes(&rules, api);
    if let Ok(Some(newest)) = &newest
        && newest.text == rules.text
    {
        let number = newest.version();
        let text = format!(
            "no change: version {number} has the text of version {}\n",
            arguments.version
        );
        return Output::new(&json!({ "number": number }), &text);
    }
    let request = arguments.change.on(Request::post("/v1/rules/rollback"));
    let request = expecting(request, arguments.expect.as_deref(), newest, api)?;
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
    let answer = api.version(arguments.version)?;
    let number = answer.version();
    let shown = json!({ "version": number, "text": answer.text });
    let Some(path) = &arguments.output else {
        return Output::document(&shown, answer.text);
    };
    fs::write(path, &answer.text).map_err(Failure::at(path.display()))?;
    Record::of(path).write(&answer.tag, api)?;
    Output::new(&shown, &format!("{}: version {number}\n", path.display()))
}
