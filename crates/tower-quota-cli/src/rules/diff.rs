//! `diff`: what changes from one document to another, by limit, tier and route.

use std::path::Path;

use clap::Args;
use tower_quota_rules::{Difference, Rules};

use crate::failure::{Ended, Failure, Found};
use crate::output;
use crate::remote::TargetArguments;
use crate::remote::rules::version_text;

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// The old rules: a file, or the number of a version that a service has.
    old: String,
    /// The new rules: a file, or the number of a version.
    new: String,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &DiffArguments, is_json: bool) -> Ended {
    let (old, new) = (
        arguments.rules(&arguments.old)?,
        arguments.rules(&arguments.new)?,
    );
    let differences = old.document().differences(new.document());
    output::print(is_json, &differences, |differences| {
        if differences.is_empty() {
            return "no differences\n".into();
        }
        differences
            .iter()
            .map(|difference: &Difference| format!("{difference}\n"))
            .collect()
    })?;
    Ok(if differences.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

impl DiffArguments {
    /// Loads rules. A number is that of a version, unless there is such a file.
    fn rules(&self, source: &str) -> Result<Rules, Failure> {
        let (path, load) = (Path::new(source), &self.target.store.load);
        match source.parse() {
            Ok(number) if !path.exists() => {
                load.checked(&version_text(&self.target.connect()?, number)?)
            }
            _ => load.load(path),
        }
    }
}
