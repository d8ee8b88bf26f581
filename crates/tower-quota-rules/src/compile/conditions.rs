//! Conditions of single matches, without an index.

use std::sync::Arc;

use tower_quota::RequestHead;
use tower_quota::key::{self, ClientIp};
use tower_quota::when::{self, Condition};

use super::key_source::KeySource;
use super::networks::{Networks, network_of};
use super::unknown::unknown_code;
use crate::code_parts::CodeParts;
use crate::document::{Many, Match, PathMatch};
use crate::problem::{Place, Problem};
use crate::text::KeyPattern;

/// The parts of a document that conditions refer to.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) code: &'a CodeParts,
    pub(crate) client_ip: &'a Arc<ClientIp>,
    pub(crate) default_key: &'a Arc<KeySource>,
}

/// Returns the condition of a match.
pub(crate) fn condition(
    matching: &Match,
    context: Context<'_>,
    place: &Place,
) -> Result<Box<dyn Condition>, Problem> {
    let mut all: Vec<Box<dyn Condition>> = Vec::new();
    let invalid =
        |field: &str, error: &dyn core::fmt::Display| Problem::error(place.field(field), error);
    if let Some(methods) = &matching.method {
        let methods = methods.0.iter().map(|method| method.as_str().parse().ok());
        all.push(when::method(methods.flatten()));
    }
    if let Some(hosts) = &matching.host {
        let hosts = any_of(hosts, |host| when::try_host(host.as_str()));
        all.push(hosts.map_err(|error| invalid("host", &error))?);
    }
    if let Some(paths) = &matching.path {
        let paths = any_of(paths, path_condition);
        all.push(paths.map_err(|error| invalid("path", &error))?);
    }
    if let Some(routes) = &matching.route {
        #[cfg(feature = "axum")]
        {
            let routes = routes.0.iter().map(|route| when::route(&**route));
            all.push(when::any(routes));
        }
        #[cfg(not(feature = "axum"))]
        {
            let _ = routes;
            return Err(invalid(
                "route",
                &"routes are those of axum: build the program with the feature \"axum\"",
            ));
        }
    }
    for (name, patterns) in &matching.header.0 {
        let source = header_source(name.as_str()).map_err(|error| invalid("header", &error))?;
        all.push(matches_any(Arc::new(source), &patterns.0));
    }
    if let Some(patterns) = &matching.key {
        all.push(matches_any(Arc::clone(context.default_key), &patterns.0));
    }
    if let Some(networks) = &matching.network {
        let networks = networks
            .0
            .iter()
            .map(|text| Ok((network_of(text.as_str())?, ())));
        let networks: Result<Networks<()>, when::PatternError> = networks.collect();
        let networks = networks.map_err(|error| invalid("network", &error))?;
        let client_ip = Arc::clone(context.client_ip);
        all.push(Box::new(move |head: &RequestHead<'_>| {
            let address = client_ip.address(head);
            address.is_some_and(|address| networks.find(address).next().is_some())
        }));
    }
    if let Some(services) = &matching.grpc_service {
        let services = any_of(services, |name| when::try_grpc_service(name.as_str()));
        all.push(services.map_err(|error| invalid("grpc_service", &error))?);
    }
    if let Some(methods) = &matching.grpc_method {
        let methods = any_of(methods, |name| when::try_grpc_method(name.as_str()));
        all.push(methods.map_err(|error| invalid("grpc_method", &error))?);
    }
    if matching.cors_preflight {
        all.push(when::cors_preflight());
    }
    if let Some(names) = &matching.code {
        let given = any_of(names, |name| -> Result<Box<dyn Condition>, Problem> {
            let given = code_condition(name.as_str(), context, place)?;
            Ok(Box::new(move |head: &RequestHead<'_>| given(head)))
        });
        all.push(given?);
    }
    if let Some(excluded) = &matching.not {
        let excluded = excluded.0.iter().enumerate();
        let excluded: Result<Vec<_>, _> = excluded
            .map(|(at, excluded)| condition(excluded, context, &place.field("not").index(at)))
            .collect();
        all.push(when::not(when::any(excluded?)));
    }
    Ok(match all.pop() {
        Some(only) if all.is_empty() => only,
        last => when::every(all.into_iter().chain(last)),
    })
}

/// Returns the condition that one of these values matches.
fn any_of<T, E>(
    values: &Many<T>,
    condition: impl Fn(&T) -> Result<Box<dyn Condition>, E>,
) -> Result<Box<dyn Condition>, E> {
    let conditions: Vec<_> = values.0.iter().map(condition).collect::<Result<_, E>>()?;
    Ok(when::any(conditions))
}

/// Returns the condition that a program gives by this name.
fn code_condition(
    name: &str,
    context: Context<'_>,
    place: &Place,
) -> Result<Arc<dyn Condition>, Problem> {
    let known = &context.code.conditions;
    let unknown = || unknown_code(place.field("code"), name, known.keys());
    known.get(name).cloned().ok_or_else(unknown)
}

/// Returns the source of a header's values.
pub(crate) fn header_source(name: &str) -> Result<KeySource, http::header::InvalidHeaderName> {
    let mut source = KeySource::new();
    source.push(Arc::new(key::try_header(name)?), true);
    Ok(source)
}

fn path_condition(path: &PathMatch) -> Result<Box<dyn Condition>, when::PatternError> {
    match path {
        PathMatch::Pattern(pattern) => when::try_path(pattern.as_str()),
        PathMatch::Regex(regex) => {
            let regex = regex.regex().clone();
            Ok(Box::new(move |head: &RequestHead<'_>| {
                head.path_matches(|path| regex.is_match(path))
            }))
        }
    }
}

/// Returns the condition that a key matches one of these patterns.
fn matches_any(source: Arc<KeySource>, patterns: &[KeyPattern]) -> Box<dyn Condition> {
    let patterns: Box<[KeyPattern]> = patterns.into();
    Box::new(move |head: &RequestHead<'_>| {
        let mut matches = false;
        source.each_text(head, &mut |text| {
            matches |= patterns.iter().any(|pattern| pattern.matches(text))
        });
        matches
    })
}
