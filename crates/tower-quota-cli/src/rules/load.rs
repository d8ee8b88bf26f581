//! Rules from files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use tower_quota::key;
use tower_quota::settle;
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
    #[arg(long, value_name = "yaml|json", value_parser = format)]
    pub(crate) format: Option<Format>,
}

/// A part of rules that code gives.
#[derive(Clone, Debug)]
pub(crate) struct CodePart {
    kind: PartKind,
    name: String,
}

#[derive(Clone, Copy, Debug)]
enum PartKind {
    Key,
    Cost,
    Condition,
    Settle,
}

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

pub(crate) fn parts(code: &[CodePart]) -> CodeParts {
    code.iter().fold(CodeParts::new(), |parts, part| {
        let name = part.name.as_str();
        match part.kind {
            PartKind::Key => {
                let scope: tower_quota::Name = format!("code {name}").into();
                parts.key(name, key::from_fn(scope, |_| None::<String>))
            }
            PartKind::Cost => parts.cost(name, |_| 1),
            PartKind::Condition => parts.condition(name, |_: &tower_quota::RequestHead<'_>| false),
            PartKind::Settle => parts.settle(name, settle::by_handler()),
        }
    })
}

fn code_part(text: &str) -> Result<CodePart, String> {
    let (kind, name) = text
        .split_once('=')
        .ok_or("write KIND=NAME, such as key=tenant")?;
    let kind = match kind {
        "key" => PartKind::Key,
        "cost" => PartKind::Cost,
        "condition" => PartKind::Condition,
        "settle" => PartKind::Settle,
        _ => {
            return Err(format!(
                "{kind:?} is not a kind of part: give key, cost, condition or settle"
            ));
        }
    };
    Ok(CodePart {
        kind,
        name: name.to_owned(),
    })
}

pub(crate) fn format(text: &str) -> Result<Format, String> {
    match text {
        "yaml" => Ok(Format::Yaml),
        "json" => Ok(Format::Json),
        _ => Err("give yaml or json, and convert TOML by `yq -p toml -o yaml`".into()),
    }
}
