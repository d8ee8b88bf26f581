use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tower_quota_rules::TestReport;

use super::load::LoadArguments;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
#[command(after_help = "Quote YAML values with braces: { path: \"/users/{id}\" }.")]
pub(crate) struct CheckArguments {
    /// The files of rules, or `-` for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The rules to replace, as a file. Names the limits that the new rules lack, and refuses a
    /// file without the last line `end: true` if the old file has the line.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// Fails for warnings too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &CheckArguments) -> Ended {
    let old = arguments.old.as_ref();
    let old = old.map(|old| arguments.load.load(old)).transpose()?;
    let mut has_findings = false;
    let (mut all, mut out) = (Vec::new(), String::new());
    for path in &arguments.files {
        let text = arguments.load.read(path)?;
        let name = &text.name;
        let (problems, tests) = match arguments.load.check(&text) {
            Ok(rules) => {
                let change = old.as_ref().map(|old| rules.after(old, &|_| 0));
                let change = change.unwrap_or_default();
                let tests = (!change.has_errors()).then(|| rules.test());
                (rules.warnings().clone().and(change), tests)
            }
            Err(problems) => (problems, None),
        };
        let is_valid = tests.as_ref().is_some_and(TestReport::is_passed);
        has_findings |= !is_valid || (arguments.strict && !problems.is_empty());
        out += &problems.render(&text.text, name);
        let count = problems.iter().count() + problems.more();
        out += &match &tests {
            None => format!("{name}: problems: {count}\n"),
            Some(tests) if !tests.is_passed() => {
                let failed = tests.failures.len() + tests.more;
                failures(tests, name) + &format!("{name}: failed tests: {failed}\n")
            }
            Some(_) if count == 0 => format!("{name}: ok\n"),
            Some(_) => format!("{name}: ok, warnings: {count}\n"),
        };
        let mut checked = json!(problems);
        checked["file"] = json!(name);
        checked["valid"] = is_valid.into();
        checked["tests"] = json!(tests);
        all.push(checked);
    }
    Ok(Output::new(&all, &out)?.found(has_findings))
}

/// Returns the failed tests of a file, with the differences from the expectations.
fn failures(report: &TestReport, file: &str) -> String {
    let failures = report.failures.iter().map(|failure| {
        let differences = failure.differences.join("\n    ");
        format!("{file}: test {} failed\n    {differences}\n", failure.test)
    });
    failures.collect()
}
