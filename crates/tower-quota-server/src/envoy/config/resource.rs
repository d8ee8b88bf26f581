//! Resources of xDS, as the tree of nodes that a file has.

use std::borrow::Cow;

use prost::Message;
use prost_types::Any;

use super::node::{Kind, Node};
use super::problem::{Place, Refused};
use crate::messages::config::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitReplace,
};

/// The type of the resources.
pub(crate) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

pub(super) fn decode(resource: &Any) -> Result<RateLimitConfig, Refused> {
    let Any { type_url, value } = resource;
    if type_url != TYPE_URL {
        let message = format!("the type {type_url:?} is unknown: send {TYPE_URL}");
        return Err(Place::default().refuse(message));
    }
    RateLimitConfig::decode(value.as_slice()).map_err(|error| {
        // The error begins with the path to the place, which may be long.
        let error = error.to_string();
        let reason = error.rsplit(": ").next().unwrap_or_default();
        let message = format!("the resource is no RateLimitConfig, {reason}: send {TYPE_URL}");
        Place::default().refuse(message)
    })
}

pub(super) fn root(config: &RateLimitConfig) -> Node<'_> {
    map([
        ("domain", text(&config.domain)),
        ("descriptors", list(&config.descriptors, descriptor)),
    ])
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Node<'_> {
    let limit = descriptor.rate_limit.as_ref();
    let metadata = descriptor.metadata.as_ref();
    map([
        ("key", text(&descriptor.key)),
        ("value", text(&descriptor.value)),
        ("rate_limit", limit.map_or(NULL, rate_limit)),
        (
            "descriptors",
            list(&descriptor.descriptors, self::descriptor),
        ),
        ("shadow_mode", flag(descriptor.shadow_mode)),
        ("quota_mode", flag(descriptor.quota_mode)),
        ("detailed_metric", flag(descriptor.detailed_metric)),
        (
            "metadata",
            metadata.map_or(NULL, |metadata| node(Kind::Struct(metadata))),
        ),
    ])
}

fn rate_limit(limit: &RateLimitPolicy) -> Node<'_> {
    let requests = limit.requests_per_unit.to_string();
    map([
        ("unit", text(limit.unit().as_str_name())),
        ("requests_per_unit", node(Kind::Plain(requests.into()))),
        ("unlimited", flag(limit.unlimited)),
        ("name", text(&limit.name)),
        ("replaces", list(&limit.replaces, replaced)),
    ])
}

fn replaced(replaced: &RateLimitReplace) -> Node<'_> {
    map([("name", text(&replaced.name))])
}

const NULL: Node<'static> = node(Kind::Null);

const fn node(kind: Kind<'_>) -> Node<'_> {
    Node {
        place: Place { line: 0, column: 0 },
        kind,
    }
}

const fn text(text: &str) -> Node<'_> {
    node(Kind::Text(Cow::Borrowed(text)))
}

const fn flag(flag: bool) -> Node<'static> {
    match flag {
        true => node(Kind::Plain(Cow::Borrowed("true"))),
        false => NULL,
    }
}

fn list<'t, T>(elements: &'t [T], element: impl Fn(&'t T) -> Node<'t>) -> Node<'t> {
    node(Kind::List(elements.iter().map(element).collect()))
}

/// Leaves absent values out, because a large response has many of them.
fn map<'t, const N: usize>(entries: [(&'static str, Node<'t>); N]) -> Node<'t> {
    let given = entries.into_iter().filter(|(_, value)| match &value.kind {
        Kind::Null => false,
        Kind::List(elements) => !elements.is_empty(),
        _ => true,
    });
    node(Kind::Map(
        given.map(|(name, value)| (text(name), value)).collect(),
    ))
}
