use std::path::Path;
use std::{fs, io};

use clap::Args;
use tower_quota::{Name, RequestHead, key, settle};
use tower_quota_rules::{CodeParts, Document, Problems, Rules};

use crate::failure::Failure;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LoadArguments {
    /// Declares a part that your service defines in code, for rules with `code NAME` or `claim`. Write
    /// `key=NAME`, `claim=NAME`, `tier=NAME`, `cost=NAME`, `condition=NAME` or `settle=NAME`. In this
    /// command, the key, the claim and the tier are missing, the cost is 1, and the condition never matches.
    #[arg(long = "code", value_name = "KIND=NAME", value_parser = code_part)]
    pub(crate) code: Vec<CodePart>,
}

pub(crate) type CodePart = (String, String);

#[derive(Clone, Debug)]
pub(crate) struct RulesText {
    pub(crate) name: String,
    pub(crate) text: String,
}

const LONGEST: usize = 256 << 20;

impl LoadArguments {
    pub(crate) fn read(&self, path: &Path) -> Result<RulesText, Failure> {
        let (name, text) = if path == Path::new("-") {
            ("standard input".into(), io::read_to_string(io::stdin()))
        } else {
            (path.display().to_string(), fs::read_to_string(path))
        };
        let text = text.map_err(Failure::at(&name))?;
        let merged = Document::merged(&text, LONGEST, |included| {
            fs::read_to_string(path.with_file_name("").join(included))
        });
        let merged = merged.map_err(|problems| {
            let rendered = problems.render(&text, &name);
            Failure::Problem(format!("{name} cannot be used\n{rendered}"))
        })?;
        let text = merged.unwrap_or(text);
        Ok(RulesText { name, text })
    }

    /// Reads valid rules. The failure lists all problems.
    pub(crate) fn load(&self, path: &Path) -> Result<Rules, Failure> {
        self.checked(&self.read(path)?)
    }

    pub(crate) fn checked(&self, text: &RulesText) -> Result<Rules, Failure> {
        self.check(text).map_err(|problems| {
            let rendered = problems.render(&text.text, &text.name);
            Failure::Problem(format!("{} cannot be used\n{rendered}", text.name))
        })
    }

    pub(crate) fn check(&self, text: &RulesText) -> Result<Rules, Problems> {
        Rules::parse_up_to(&text.text, &parts(&self.code), LONGEST)
    }
}

pub(crate) fn parts(code: &[CodePart]) -> CodeParts {
    let mut parts = CodeParts::new();
    for (kind, name) in code {
        parts = match kind.as_str() {
            "key" => {
                let scope = Name::from(format!("code {name}"));
                parts.key(name, key::from_fn(scope, |_| None::<String>))
            }
            "claim" => {
                let scope = Name::from(format!("claim {name}"));
                parts.claim(name, key::from_fn(scope, |_| None::<String>))
            }
            "tier" => parts.tier(name, |_: &RequestHead<'_>| None),
            "cost" => parts.cost(name, |_| 1),
            "condition" => parts.condition(name, |_: &RequestHead<'_>| false),
            _ => parts.settle(name, settle::by_handler()),
        };
    }
    parts
}

const CODE_PARTS: [&str; 6] = ["key", "claim", "tier", "cost", "condition", "settle"];

fn code_part(text: &str) -> Result<CodePart, String> {
    match text.split_once('=') {
        Some((kind, name)) if CODE_PARTS.contains(&kind) => Ok((kind.to_owned(), name.to_owned())),
        _ => Err(format!("give {}=NAME", CODE_PARTS.join("=NAME, "))),
    }
}
