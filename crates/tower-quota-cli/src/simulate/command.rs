use std::env;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tower_quota_rules::Rules;

use super::headers::CountedHeaders;
use super::read::{LogSource, read};
use super::replay::Replay;
use super::report::{report, requests_in_progress};
use super::tally::Tally;
use crate::failure::Failure;
use crate::log::{HeaderSource, header_source};
use crate::output::{Ended, Output};
use crate::rules::load::LoadArguments;

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// The rules to try.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The rules to compare with, for example your rules in force.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// The access log in the common, combined or JSON lines format, plain or compressed by gzip.
    /// `-` is standard input.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Takes a header from a JSON field, or from a quoted field after the sizes by its number (the
    /// referer is 1, the user agent 2). JSON fields `http_NAME` and `headers` are read without this
    /// option.
    #[arg(long = "header", value_name = "HEADER=FIELD", value_parser = header_source)]
    headers: Vec<HeaderSource>,
    /// The number of clients to list.
    #[arg(long, value_name = "CLIENTS", default_value_t = 20)]
    top: usize,
    /// Shows the keys of clients, which may be addresses or secrets. By default keys are hashed
    /// with a random seed. Set the variable `TOWER_QUOTA_KEY_SEED` to the seed of your services,
    /// in hexadecimal digits, for the hashes of `tower-quota top`.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &SimulateArguments) -> Ended {
    let mut documents = vec![arguments.load.load(&arguments.rules)?];
    if let Some(old) = &arguments.old {
        documents.push(arguments.load.load(old)?);
    }
    Output::answer(replay(arguments, &documents)?)
}

/// Replays the log through `documents`. The first document is the new rules, the second the old
/// ones.
fn replay(arguments: &SimulateArguments, documents: &[Rules]) -> Result<Value, Failure> {
    let source = LogSource {
        path: &arguments.log,
        headers: &arguments.headers,
    };
    let seed = key_seed()?;
    let failure = Failure::at(source.path.display());
    let mut sides = Vec::new();
    for rules in documents {
        let tally = Tally::new(seed, arguments.show_keys);
        sides.push(Replay::new(rules, tally).map_err(&failure)?);
    }
    let [mut newly_refused, mut newly_admitted] = [0; 2];
    let document = documents[0].document();
    let mut headers = CountedHeaders::of(document);
    let lines = read(source, |micros, request| {
        headers.count(request.headers());
        let mut sides = sides.iter_mut();
        let mut is_admitted = || Some(sides.next()?.decide(micros, request.clone()));
        if let (Some(new), Some(old)) = (is_admitted(), is_admitted()) {
            newly_refused += u64::from(old && !new);
            newly_admitted += u64::from(new && !old);
        }
    })
    .map_err(failure)?;
    if lines.requests == 0 {
        return Err(Failure::Problem(format!(
            "{} has no request: {} lines have none of the known forms (common, combined, JSON lines)",
            arguments.log.display(),
            lines.unreadable_lines
        )));
    }
    let evicted = sides.iter().map(Replay::evicted).sum();
    let documents = documents.iter().map(Rules::document);
    let tallies = sides.iter().zip(documents);
    let tallies: Vec<Tally> = tallies
        .map(|(side, document)| side.tally(document))
        .collect();
    let changed = [newly_refused, newly_admitted];
    let mut notes = headers.notes(lines.requests);
    notes.extend(requests_in_progress(document));
    Ok(report(
        &lines,
        &tallies,
        changed,
        notes,
        evicted,
        arguments.top,
    ))
}

const KEY_SEED_VARIABLE: &str = "TOWER_QUOTA_KEY_SEED";

/// Returns the seed of your services, or a random one.
fn key_seed() -> Result<[u8; 16], Failure> {
    let Ok(text) = env::var(KEY_SEED_VARIABLE) else {
        return Ok(core::array::from_fn(|_| fastrand::u8(..)));
    };
    let number = u128::from_str_radix(text.trim(), 16).ok();
    let number = number.filter(|_| text.trim().len() == 32);
    let number = number.ok_or_else(|| {
        Failure::Usage(format!("{KEY_SEED_VARIABLE} is not 32 hexadecimal digits"))
    })?;
    Ok(number.to_be_bytes())
}
