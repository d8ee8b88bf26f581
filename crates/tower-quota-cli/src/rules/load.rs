//! Rules from files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use tower_quota::{Name, RequestHead, key, settle};
use tower_quota_rules::{CodeParts, Format, Rules};

use crate::failure::Failure;

/// The options of reading rules.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LoadArguments {
    /// A part that the service's code gives, for rules that say `code NAME`: `key=NAME`, `cost=NAME`, `condition=NAME` or
    /// `settle=NAME`. Requests have no such key, cost 1, and match no such condition.
    #[arg(long = "code", value_name = "KIND=NAME", value_parser = code_part)]
    pub(crate) code: Vec<CodePart>,
    /// The format of rules from standard input, or from a file whose name does not say.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,
}

/// A part of rules that code gives: its kind and its name.
pub(crate) type CodePart = (String, String);

/// A text of rules, and where it is from.
#[derive(Clone, Debug)]
pub(crate) struct RulesText {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) text: String,
}

impl RulesText {
    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path, format: Option<Format>) -> Result<Self, Failure> {
        let unreadable = |error| Failure::Usage(format!("{}: {error}", path.display()));
        let text = if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .map_err(unreadable)?;
            text
        } else {
            fs::read_to_string(path).map_err(unreadable)?
        };
        let format = format
            .or_else(|| Format::of_path(path))
            .unwrap_or(Format::Yaml);
        Ok(Self {
            path: path.to_owned(),
            format,
            text,
        })
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> String {
        if self.path == Path::new("-") {
            "standard input".into()
        } else {
            self.path.display().to_string()
        }
    }

    /// Checks the rules.
    pub(crate) fn rules(&self, code: &[CodePart]) -> Result<Rules, tower_quota_rules::Problems> {
        Rules::parse_up_to(&self.text, self.format, &parts(code), LONGEST)
    }
}

/// The most bytes of a file of rules.
const LONGEST: usize = 256 << 20;

impl LoadArguments {
    /// Reads rules that must be valid. All that is wrong is in the failure.
    pub(crate) fn load(&self, path: &Path) -> Result<Rules, Failure> {
        self.checked(&RulesText::read(path, self.format)?)
    }

    /// Checks rules that must be valid.
    pub(crate) fn checked(&self, text: &RulesText) -> Result<Rules, Failure> {
        text.rules(&self.code).map_err(|problems| {
            Failure::Problem(format!(
                "{} cannot be used\n{}",
                text.name(),
                problems.render(&text.text, &text.name())
            ))
        })
    }
}

/// Returns stand-ins for parts that code gives.
pub(crate) fn parts(code: &[CodePart]) -> CodeParts {
    let mut parts = CodeParts::new();
    for (kind, name) in code {
        parts = match kind.as_str() {
            "key" => {
                let scope = Name::from(format!("code {name}"));
                parts.key(name, key::from_fn(scope, |_| None::<String>))
            }
            "cost" => parts.cost(name, |_| 1),
            "condition" => parts.condition(name, |_: &RequestHead<'_>| false),
            _ => parts.settle(name, settle::by_handler()),
        };
    }
    parts
}

fn code_part(text: &str) -> Result<CodePart, &'static str> {
    match text.split_once('=') {
        Some((kind @ ("key" | "cost" | "condition" | "settle"), name)) => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        _ => Err("give key=NAME, cost=NAME, condition=NAME or settle=NAME"),
    }
}

pub(crate) fn format(text: &str) -> Result<Format, &'static str> {
    let path = format!("rules.{text}");
    Format::of_path(Path::new(&path)).ok_or("give yaml or json")
}
