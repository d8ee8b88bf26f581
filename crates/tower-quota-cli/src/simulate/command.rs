//! The arguments of `simulate`, and what it does with them.

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use tower_quota_rules::Rules;

use super::report::{Report, html, text};
use super::run::{Source, run as replay};
use super::share::Share;
use super::suggest::suggest;
use super::tally::KeyNames;
use crate::failure::{Ended, Failure, Found};
use crate::log::{HeaderSource, header_source};
use crate::output;
use crate::rules::load::LoadArguments;

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// The rules to try.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The rules to compare them with, such as those in force.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// The access log: common, combined or JSON lines, compressed by gzip or not. `-` is standard input.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Takes a header from the log: from a JSON field, or from the quoted field of this number after the sizes (the
    /// referer is 1, the user agent 2). JSON fields `http_NAME` and `headers` are found without it.
    #[arg(long = "header", value_name = "HEADER=FIELD", value_parser = header_source)]
    headers: Vec<(String, HeaderSource)>,
    /// Writes a report with charts to this file, one page without outside resources.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Suggests the lowest quota of this limit that refuses few enough clients. The log is read a few times more.
    #[arg(long, value_name = "LIMIT")]
    suggest: Option<String>,
    /// The share of clients that the suggested quota may refuse at least once.
    #[arg(long, value_name = "SHARE", default_value = "0.1%")]
    hit: Share,
    /// The number of clients that are listed.
    #[arg(long, value_name = "CLIENTS", default_value_t = 20)]
    top: usize,
    /// Shows the keys of clients, which may be addresses or secrets. Otherwise they are hashed with a seed of this run.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &SimulateArguments, is_json: bool) -> Ended {
    let new = arguments.load.load(&arguments.rules)?;
    let old = arguments
        .old
        .as_ref()
        .map(|old| arguments.load.load(old))
        .transpose()?;
    if arguments.suggest.is_some() && arguments.log.as_os_str() == "-" {
        return Err(Failure::Usage(
            "--suggest reads the log several times: give a file instead of -".into(),
        ));
    }
    let shows_progress = !is_json && std::io::stderr().is_terminal();
    let source = Source {
        path: &arguments.log,
        headers: &arguments.headers,
        shows_progress,
    };
    let documents: Vec<&Rules> = core::iter::once(&new).chain(&old).collect();
    let seed = core::array::from_fn(|_| fastrand::u8(..));
    let keys = KeyNames {
        seed,
        show: arguments.show_keys,
    };
    let in_log = |error| Failure::Usage(format!("{}: {error}", arguments.log.display()));
    let simulation = replay(source, &documents, keys).map_err(in_log)?;
    if simulation.lines.requests == 0 {
        let unreadable: u64 = simulation.lines.unreadable.iter().sum();
        return Err(Failure::Problem(format!(
            "{} has no request: {unreadable} lines have none of the known forms (common, combined, JSON lines)",
            arguments.log.display()
        )));
    }
    let suggestion = match &arguments.suggest {
        Some(limit) => Some(suggest(new.document(), limit, arguments.hit, source)?),
        None => None,
    };
    let report = Report::of(&simulation, arguments.top, suggestion);
    if let Some(path) = &arguments.html {
        let page = html::page(&report, &simulation);
        fs::write(path, page)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    }
    output::print(is_json, &report, text::text)?;
    Ok(Found::Nothing)
}
