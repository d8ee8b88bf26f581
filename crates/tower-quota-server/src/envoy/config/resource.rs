//! Resources of xDS, as the tree of nodes that a file has.

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
    let root = map(vec![
        ("domain", text(&config.domain)),
        ("descriptors", list(&config.descriptors, descriptor)),
    ]);
    root.into()
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Kind<'_> {
    let limit = descriptor.rate_limit.as_ref();
    let metadata = descriptor.metadata.as_ref();
    map(vec![
        ("key", text(&descriptor.key)),
        ("value", text(&descriptor.value)),
        ("rate_limit", limit.map_or(Kind::Null, rate_limit)),
        (
            "descriptors",
            list(&descriptor.descriptors, self::descriptor),
        ),
        ("shadow_mode", flag(descriptor.shadow_mode)),
        ("quota_mode", flag(descriptor.quota_mode)),
        ("detailed_metric", flag(descriptor.detailed_metric)),
        ("metadata", metadata.map_or(Kind::Null, Kind::Struct)),
    ])
}

fn rate_limit(limit: &RateLimitPolicy) -> Kind<'_> {
    let requests = limit.requests_per_unit.to_string();
    map(vec![
        ("unit", text(limit.unit().as_str_name())),
        ("requests_per_unit", Kind::Plain(requests.into())),
        ("unlimited", flag(limit.unlimited)),
        ("name", text(&limit.name)),
        ("replaces", list(&limit.replaces, replaced)),
    ])
}

fn replaced(replaced: &RateLimitReplace) -> Kind<'_> {
    map(vec![("name", text(&replaced.name))])
}

fn text(text: &str) -> Kind<'_> {
    Kind::Text(text.into())
}

fn flag(flag: bool) -> Kind<'static> {
    match flag {
        true => Kind::Plain("true".into()),
        false => Kind::Null,
    }
}

fn list<'t, T>(elements: &'t [T], element: fn(&'t T) -> Kind<'t>) -> Kind<'t> {
    match elements {
        [] => Kind::Null,
        _ => Kind::List(elements.iter().map(element).map(Node::from).collect()),
    }
}

/// Leaves absent values out, because a large response has many of them.
fn map<'t>(mut entries: Vec<(&'t str, Kind<'t>)>) -> Kind<'t> {
    entries.retain(|(_, value)| !matches!(value, Kind::Null));
    let entries = entries.into_iter();
    Kind::Map(
        entries
            .map(|(name, value)| (text(name).into(), value.into()))
            .collect(),
    )
}
