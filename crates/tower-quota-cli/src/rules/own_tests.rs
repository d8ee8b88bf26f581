use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tower_quota_rules::TestReport;

use super::load::LoadArguments;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// The files of rules, or `-` for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &TestArguments) -> Ended {
    let mut has_findings = false;
    let (mut all, mut out) = (Vec::new(), String::new());
    for path in &arguments.files {
        let report = arguments.load.load(path)?.test();
        has_findings |= !report.is_passed();
        let file = path.display().to_string();
        out += &failures(&report, &file);
        let (passed, failed) = (report.passed, report.failures.len() + report.more);
        out += &format!("{file}: {passed} passed, {failed} failed\n");
        all.push(json!({ "file": file, "report": report }));
    }
    Ok(Output::new(&all, &out)?.found(has_findings))
}

/// Returns the failed tests of a file, with the differences from the expectations.
pub(super) fn failures(report: &TestReport, file: &str) -> String {
    let failures = report.failures.iter().map(|failure| {
        let differences = failure.differences.join("\n    ");
        format!("{file}: test {} failed\n    {differences}\n", failure.test)
    });
    failures.collect()
}
