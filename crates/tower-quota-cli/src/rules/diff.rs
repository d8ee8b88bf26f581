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
    let differences = between(&old, &arguments.rules(&arguments.new)?);
    let output = Output::new(&differences, &text(&differences))?;
    Ok(output.found(!differences.is_empty()))
}

pub(crate) fn between(old: &Rules, new: &Rules) -> Vec<Difference> {
    old.document().differences(new.document())
}

pub(crate) fn text(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "no differences\n".into();
    }
    differences
        .iter()
        .map(|difference| format!("{difference}\n"))
        .collect()
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
