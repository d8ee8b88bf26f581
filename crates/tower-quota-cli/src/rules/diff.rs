use std::path::Path;

use clap::Args;
use tower_quota_rules::{Difference, Rules};

use crate::failure::Failure;
use crate::output::{Ended, Output};
use crate::remote::TargetArguments;

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// The old rules, as a file or as the number of a service's version.
    old: String,
    /// The new rules, as a file or as the number of a version.
    new: String,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &DiffArguments) -> Ended {
    let old = arguments.rules(&arguments.old)?;
    let new = arguments.rules(&arguments.new)?;
    let differences = old.document().differences(new.document());
    let output = Output::new(&differences, &text(&old, &new, &differences))?;
    Ok(output.found(!differences.is_empty()))
}

/// Returns the differences between two documents, and the names of the limits that are lost.
pub(crate) fn between(old: &Rules, new: &Rules) -> String {
    text(old, new, &old.document().differences(new.document()))
}

fn text(old: &Rules, new: &Rules, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "no differences\n".into();
    }
    let mut text: String = differences
        .iter()
        .map(|difference| format!("{difference}\n"))
        .collect();
    let lost = old.document().lost_limits(new.document());
    if !lost.is_empty() {
        text += &format!("limits gone: {}\n", lost.join(", "));
    }
    text
}

impl DiffArguments {
    /// Loads a file. If there is no such file, a number means a version of the service.
    fn rules(&self, source: &str) -> Result<Rules, Failure> {
        let (path, load) = (Path::new(source), &self.target.load);
        match source.parse() {
            Ok(number) if !path.exists() => {
                load.checked(&self.target.connect()?.version(Some(number))?.rules())
            }
            _ => load.load(path),
        }
    }
}
