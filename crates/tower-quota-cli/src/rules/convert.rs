use std::path::PathBuf;

use clap::Args;
use tower_quota_rules::Format;

use super::load::{LoadArguments, format};
use crate::failure::Failure;
use crate::output::{Ended, Output};

#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The file of rules, or `-` for standard input.
    file: PathBuf,
    /// The format to print, `yaml` or `json`.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    to: Format,
    #[command(flatten)]
    load: LoadArguments,
}

pub(crate) fn run(arguments: &ConvertArguments) -> Ended {
    let rules = arguments.load.load(&arguments.file)?;
    let text = rules.document().to_text(arguments.to);
    Output::document(&(), text.trim_end().to_owned() + "\n")
}

pub(crate) fn schema() -> Ended {
    let schema = serde_json::to_string_pretty(&tower_quota_rules::schema());
    let schema = schema.map_err(|error| Failure::Problem(error.to_string()))?;
    Output::document(&(), schema + "\n")
}
