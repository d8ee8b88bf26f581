use core::fmt;

use serde::de::{Expected, Unexpected};

use crate::problem::nearest;

#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub(super) struct ReadError(pub(super) Box<Wrong>);

#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) node: Option<u32>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl ReadError {
    fn new(message: String, help: Option<String>) -> Self {
        Self(Box::new(Wrong {
            node: None,
            message,
            help,
        }))
    }

    pub(super) fn at(mut self, node: u32) -> Self {
        self.0.node.get_or_insert(node);
        self
    }

    pub(super) fn number(text: &str, most: u64) -> Self {
        Self::new(
            format!("{text} is not an integer from 0 to {most}"),
            Some("give one in this range".into()),
        )
    }
}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        let text = text.to_string();
        match text.rsplit_once(": ") {
            Some((message, help)) => Self::new(message.into(), Some(help.into())),
            None => Self::new(text, None),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            format!("{} stands where {expected} belongs", shown(&found)),
            Some(format!("give {expected}")),
        )
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        unknown("field", field, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        unknown("choice", variant, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(
            format!("the field {field:?} is missing"),
            Some(format!("add {field:?}")),
        )
    }
}

/// Fields by the words of the API in Rust and of other limiters.
const WORDS: [(&str, &str); 2] = [("by", "key"), ("rate", "quota")];

fn unknown(what: &str, name: &str, expected: &[&'static str]) -> ReadError {
    let meant = WORDS.iter().find(|(word, _)| *word == name);
    let meant = meant.map(|(_, field)| *field);
    let meant = meant.filter(|field| expected.contains(field));
    let near = meant.or_else(|| nearest(name, expected.iter().copied()));
    let help = match (near, expected) {
        (Some(near), _) => Some(format!("write {near:?}, if that is meant")),
        (None, []) => None,
        (None, known) => {
            let quoted: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            Some(format!("write one of {}", quoted.join(", ")))
        }
    };
    ReadError::new(format!("there is no {what} {name:?} here"), help)
}

fn shown(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Map => "a map".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit => "nothing".into(),
        other => other.to_string(),
    }
}
