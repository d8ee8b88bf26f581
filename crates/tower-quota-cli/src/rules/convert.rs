//! `convert` and `schema`: rules in another format, and what editors check them with.

use std::path::PathBuf;

use clap::Args;
use tower_quota_rules::Format;

use super::load::{LoadArguments, format};
use crate::failure::{Ended, Failure, Found};
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The file of rules, or `-` for standard input.
    file: PathBuf,
    /// The format to print.
    #[arg(long, value_name = "yaml|json", value_parser = format)]
    to: Format,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &ConvertArguments) -> Ended {
    let rules = arguments.load.load(&arguments.file)?;
    let text = rules.to_text(arguments.to);
    output::write(text.trim_end())?;
    output::write("\n")?;
    Ok(Found::Nothing)
}

pub(crate) fn schema() -> Ended {
    let schema = serde_json::to_string_pretty(&tower_quota_rules::schema());
    output::write(&(schema.map_err(|error| Failure::Problem(error.to_string()))? + "\n"))?;
    Ok(Found::Nothing)
}
