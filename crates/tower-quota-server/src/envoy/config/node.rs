//! A file or a resource as a tree of nodes with their places.

use std::borrow::Cow;

use prost_types::Struct;

use super::problem::Place;

#[derive(Clone, Debug)]
pub(crate) struct Node<'t> {
    pub(crate) place: Place,
    pub(crate) kind: Kind<'t>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'t> {
    Null,
    /// A scalar in quotes, or a block.
    Text(Cow<'t, str>),
    /// A scalar without quotes. The type depends on the field.
    Plain(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Map(Vec<(Node<'t>, Node<'t>)>),
    /// The metadata of a resource.
    Struct(&'t Struct),
}

/// Makes a node without a place.
impl<'t> From<Kind<'t>> for Node<'t> {
    fn from(kind: Kind<'t>) -> Self {
        let place = Place::default();
        Self { place, kind }
    }
}

/// Returns the value of a word for yes or no.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}
