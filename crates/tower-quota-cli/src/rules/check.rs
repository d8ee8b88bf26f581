//! `check`: what is wrong with rules.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tower_quota_rules::Problems;

use super::load::LoadArguments;
use crate::failure::Ended;
use crate::output::Output;

#[derive(Args, Debug)]
#[command(after_help = "Quote YAML values with braces: { path: \"/users/{id}\" }.")]
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

pub(crate) fn run(arguments: &CheckArguments) -> Ended {
    let mut has_findings = false;
    let mut all = Vec::new();
    for path in &arguments.files {
        let text = arguments.load.read(path)?;
        let (valid, problems) = match arguments.load.check(&text) {
            Ok(rules) => (true, rules.warnings().clone()),
            Err(problems) => (false, problems),
        };
        has_findings |= !valid || (arguments.strict && !problems.is_empty());
        all.push(Checked {
            file: text.name,
            valid,
            problems,
            text: text.text,
        });
    }
    let text: String = all.iter().map(Checked::shown).collect();
    Ok(Output::new(&all, &text)?.found(has_findings))
}

impl Checked {
    fn shown(&self) -> String {
        let rendered = self.problems.render(&self.text, &self.file);
        let count = self.problems.iter().count() + self.problems.more();
        let (result, noun) = match self.valid {
            true if count == 0 => return format!("{}: ok\n", self.file),
            true => ("ok, with ", "warning"),
            false => ("", "problem"),
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{rendered}{}: {result}{count} {noun}{plural}\n", self.file)
    }
}
