//! `test`: the sample requests that a document carries.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::load::LoadArguments;
use crate::failure::{Ended, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// The files of rules, or `-` for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    load: LoadArguments,
}

/// Runs the tests of documents. A failed one is something found.
pub(crate) fn run(arguments: &TestArguments, is_json: bool) -> Ended {
    let mut found = Found::Nothing;
    let mut all = Vec::new();
    for path in &arguments.files {
        let report = arguments.load.load(path)?.test();
        if !report.is_passed() {
            found = Found::Something;
        }
        all.push((path.display().to_string(), report));
    }
    let files: Vec<_> = all
        .iter()
        .map(|(file, report)| json!({ "file": file, "report": report }))
        .collect();
    output::print(is_json, &files, |_| {
        let mut out = String::new();
        for (file, report) in &all {
            for failure in &report.failures {
                let differences = failure.differences.join("\n    ");
                out.push_str(&format!(
                    "{file}: test {} failed\n    {differences}\n",
                    failure.test
                ));
            }
            out.push_str(&format!(
                "{file}: {} passed, {} failed\n",
                report.passed,
                report.failures.len() + report.more
            ));
        }
        out
    })?;
    Ok(found)
}
