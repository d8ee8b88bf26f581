use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::load::LoadArguments;
use crate::output::{Ended, Output};

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

pub(crate) fn run(arguments: &CheckArguments) -> Ended {
    let mut has_findings = false;
    let (mut all, mut out) = (Vec::new(), String::new());
    for path in &arguments.files {
        let text = arguments.load.read(path)?;
        let (is_valid, problems) = match arguments.load.check(&text) {
            Ok(rules) => (true, rules.warnings().clone()),
            Err(problems) => (false, problems),
        };
        has_findings |= !is_valid || (arguments.strict && !problems.is_empty());
        out += &problems.render(&text.text, &text.name);
        let count = problems.iter().count() + problems.more();
        out += &match (is_valid, count) {
            (true, 0) => format!("{}: ok\n", text.name),
            (true, _) => format!("{}: ok, warnings: {count}\n", text.name),
            (false, _) => format!("{}: problems: {count}\n", text.name),
        };
        let mut checked = json!(problems);
        checked["file"] = text.name.into();
        checked["valid"] = is_valid.into();
        all.push(checked);
    }
    Ok(Output::new(&all, &out)?.found(has_findings))
}
