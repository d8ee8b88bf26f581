//! Compiles the conditions of a match.

use std::sync::Arc;

use tower_quota::RequestHead;
use tower_quota::explain;
use tower_quota::key::{self, ClientIp};
use tower_quota::when::{self, Condition};

use super::key_patterns::KeyPatterns;
use super::key_source::KeySource;
use crate::code_parts::CodeParts;
use crate::document::{Document, Many, Match, PathMatch};
use crate::text::KeyPattern;

pub(crate) struct Context<'a> {
    pub(crate) document: &'a Document,
    pub(crate) code: &'a CodeParts,
    pub(crate) client_ip: Arc<ClientIp>,
    pub(crate) default_key: Arc<KeySource>,
}

impl Context<'_> {
    pub(crate) fn condition(&self, matching: &Match) -> Box<dyn Condition> {
        let mut all: Vec<Box<dyn Condition>> = Vec::new();
        if let Some(methods) = &matching.method {
            let methods = methods.0.iter().map(|method| method.as_str().parse().ok());
            all.push(when::method(methods.flatten()));
        }
        all.extend(any_of(&matching.host, |host| when::host(host.as_str())));
        all.extend(any_of(&matching.path, path_condition));
        #[cfg(feature = "axum")]
        all.extend(any_of(&matching.route, |route| when::route(&**route)));
        for (compared, patterns) in ComparedText::of(matching) {
            all.push(matches_any(self.compared(&compared), &patterns.0));
        }
        if let Some(networks) = &matching.network {
            let client_ip = ClientIp::clone(&self.client_ip);
            all.push(when::address_in(client_ip, &networks.0));
        }
        all.extend(any_of(&matching.grpc_service, |name| {
            when::grpc_service(name.as_str())
        }));
        all.extend(any_of(&matching.grpc_method, |name| {
            when::grpc_method(name.as_str())
        }));
        if matching.cors_preflight {
            all.push(when::cors_preflight());
        }
        if let Some(names) = &matching.code {
            let known = &self.code.conditions;
            let names = names.0.iter();
            let given: Vec<_> = names
                .filter_map(|name| known.get(name.as_str()))
                .cloned()
                .collect();
            all.push(Box::new(move |head: &RequestHead<'_>| {
                given.iter().any(|holds| holds(head))
            }));
        }
        all.extend(any_of(&matching.not, |excluded| self.condition(excluded)).map(when::not));
        match all.pop() {
            Some(only) if all.is_empty() => only,
            last => when::every(all.into_iter().chain(last)),
        }
    }
}

/// A text of a request that patterns are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedText<'a> {
    Key,
    Header(&'a str),
    Claim(&'a str),
}

impl<'a> ComparedText<'a> {
    pub(super) fn of(matching: &'a Match) -> impl Iterator<Item = (Self, &'a Many<KeyPattern>)> {
        let headers = matching.header.iter();
        let headers = headers.map(|(name, patterns)| (Self::Header(name.as_str()), patterns));
        let claims = matching.claim.iter();
        let claims = claims.map(|(name, patterns)| (Self::Claim(name.as_str()), patterns));
        let key = matching.key.iter().map(|patterns| (Self::Key, patterns));
        headers.chain(claims).chain(key)
    }
}

impl Context<'_> {
    pub(super) fn compared(&self, text: &ComparedText<'_>) -> Arc<KeySource> {
        let mut source = KeySource::default();
        match text {
            ComparedText::Key => return Arc::clone(&self.default_key),
            ComparedText::Header(name) => source.push(Arc::new(key::header(name)), true),
            ComparedText::Claim(name) => {
                // The check has refused unknown names.
                if let Some(given) = self.code.claims.get(*name) {
                    let named = explain::named(format!("claim {name}"), Arc::clone(given));
                    source.push(Arc::new(named), true);
                }
            }
        }
        Arc::new(source)
    }
}

pub(crate) fn any_of<T>(
    values: &Option<Many<T>>,
    condition: impl Fn(&T) -> Box<dyn Condition>,
) -> Option<Box<dyn Condition>> {
    match &values.as_ref()?.0[..] {
        [only] => Some(condition(only)),
        values => Some(when::any(values.iter().map(condition))),
    }
}

fn path_condition(path: &PathMatch) -> Box<dyn Condition> {
    match path {
        PathMatch::Pattern(pattern) => when::path(pattern.as_str()),
        PathMatch::Regex { regex } => {
            let regex = regex.regex().clone();
            Box::new(move |head: &RequestHead<'_>| head.path_matches(|path| regex.is_match(path)))
        }
    }
}

fn matches_any(source: Arc<KeySource>, patterns: &[KeyPattern]) -> Box<dyn Condition> {
    let mut index = KeyPatterns::default();
    patterns.iter().for_each(|pattern| index.push(pattern));
    Box::new(move |head: &RequestHead<'_>| {
        let mut matches = false;
        source.each_text(head, &mut |text| {
            matches |= index.first(text).is_some();
        });
        matches
    })
}
