//! `check`: what is wrong with rules.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tower_quota_rules::Problems;

use super::load::{LoadArguments, RulesText};
use crate::failure::{Ended, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The files of rules, or `-` for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Fails for warnings too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    load: LoadArguments,
}

/// The findings in one file.
#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    valid: bool,
    #[serde(flatten)]
    problems: Problems,
    #[serde(skip)]
    text: String,
}

pub(crate) fn run(arguments: &CheckArguments, is_json: bool) -> Ended {
    let mut found = Found::Nothing;
    let mut all = Vec::new();
    for path in &arguments.files {
        let text = RulesText::read(path, arguments.load.format)?;
        let (valid, problems) = match text.rules(&arguments.load.code) {
            Ok(rules) => (true, rules.warnings().clone()),
            Err(problems) => (false, problems),
        };
        if !valid || (arguments.strict && !problems.is_empty()) {
            found = Found::Something;
        }
        all.push(Checked {
            file: text.name(),
            valid,
            problems,
            text: text.text,
        });
    }
    output::print(is_json, &all, |all| {
        all.iter().map(Checked::shown).collect()
    })?;
    Ok(found)
}

impl Checked {
    fn shown(&self) -> String {
        let rendered = self.problems.render(&self.text, &self.file);
        let count = self.problems.iter().count() + self.problems.more();
        match (self.valid, count) {
            (true, 0) => format!("{}: ok\n", self.file),
            (true, 1) => format!("{rendered}{}: ok, with a warning\n", self.file),
            (true, count) => format!("{rendered}{}: ok, with {count} warnings\n", self.file),
            (false, 1) => format!("{rendered}{}: 1 problem\n", self.file),
            (false, count) => format!("{rendered}{}: {count} problems\n", self.file),
        }
    }
}
