//! A compiled document: the index of its limits, its tiers and its lists.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tower_quota::{
    Key, Limit, Name, Policy, Quota, RequestHead,
    policy::{Chosen, Explained, Explainer},
};

use super::conditions::Context;
use super::key_source::KeySource;
use super::keys::{Keys, client_ip};
use super::limits::{Limits, default_key};
use super::matches::Matches;
use super::tiers::Tiers;
use crate::code_parts::CodeParts;
use crate::document::{Document, LimitRule, Match};
use crate::problem::{Place, Problem, Problems};

/// The compiled form of a document.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) policy: Policy,
    index: Arc<Index>,
    /// Made when it is first asked.
    explainer: OnceLock<Explainer>,
}

/// The index that chooses the limits of a request.
#[derive(Debug)]
struct Index {
    /// The positions of the limits of every request.
    everywhere: Vec<u32>,
    /// The matches of limits and routes, each with the positions of its limits: the first, and the one after the last.
    matches: Matches<(u32, u32)>,
    tiers: Tiers,
}

/// Compiles a document.
///
/// # Errors
/// [`Problems`] with all that cannot be compiled.
pub(crate) fn compile(document: &Arc<Document>, code: &CodeParts) -> Result<Compiled, Problems> {
    let mut problems = Problems::default();
    let compiled = Compiler::new(document, code, &mut problems)
        .and_then(|compiler| compiler.compile(&mut problems));
    match compiled {
        Some(compiled) if !problems.has_errors() => Ok(compiled),
        _ => Err(problems),
    }
}

impl Compiled {
    /// Returns what the policy does with a request.
    pub(crate) fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.explainer
            .get_or_init(|| self.policy.explainer())
            .explain(head)
    }

    /// Returns the tier of a request.
    pub(crate) fn tier(&self, head: &RequestHead<'_>) -> Option<Name> {
        self.index.tiers.of(head).tier
    }
}

impl Index {
    /// Adds the limits of a request, each with the quota that its tier or its key has instead.
    fn choose(&self, head: &RequestHead<'_>, chosen: &mut Chosen<'_>) {
        let granted = self.tiers.of(head);
        let mut add = |limit: u32| {
            let Ok(position) = usize::try_from(limit) else {
                return;
            };
            match granted.quota(limit) {
                None => chosen.add(position, None),
                Some(Some(quota)) => chosen.add(position, Some(quota)),
                // Unlimited.
                Some(None) => {}
            }
        };
        self.everywhere.iter().for_each(|limit| add(*limit));
        self.matches
            .find(head, |(first, end)| (first..end).for_each(&mut add));
    }

    /// Returns the quota that a client has instead of a limit's own, as far as its key alone says.
    fn quota_of(&self, limit: u32, key: &Key<'_>) -> Option<Quota> {
        self.tiers.of_key(key).quota(limit).flatten()
    }
}

/// The parts of a document that the others refer to.
struct Compiler<'a> {
    document: &'a Arc<Document>,
    code: &'a CodeParts,
    client_ip: Arc<tower_quota::key::ClientIp>,
    default_key: Arc<KeySource>,
}

impl<'a> Compiler<'a> {
    fn new(
        document: &'a Arc<Document>,
        code: &'a CodeParts,
        problems: &mut Problems,
    ) -> Option<Self> {
        let made = client_ip(&document.client_ip).and_then(|client_ip| {
            let keys = Keys {
                client_ip: &client_ip,
                code,
            };
            let source = keys.source(
                &default_key(&document.defaults),
                &Place::of("defaults").field("key"),
            )?;
            Ok(Self {
                document,
                code,
                client_ip: Arc::new(client_ip),
                default_key: Arc::new(source),
            })
        });
        made.map_err(|problem| problems.push(problem)).ok()
    }

    const fn context(&self) -> Context<'_> {
        Context {
            code: self.code,
            client_ip: &self.client_ip,
            default_key: &self.default_key,
        }
    }

    fn compile(&self, problems: &mut Problems) -> Option<Compiled> {
        let document = self.document;
        let mut limits: Vec<(Limit, Place)> = Vec::new();
        let (mut everywhere, mut matches) = (Vec::new(), Vec::<(&Match, Place, (u32, u32))>::new());
        for (at, rule) in document.limits.iter().enumerate() {
            let place = Place::of("limits").index(at);
            let position = number(limits.len());
            self.add(rule, true, place.clone(), &mut limits, problems);
            match &rule.when {
                None => everywhere.push(position),
                Some(when) => {
                    let place = place.field("when");
                    let found = (position, number(limits.len()));
                    matches.extend(
                        when.0
                            .iter()
                            .map(|matching| (matching, place.clone(), found)),
                    );
                }
            }
        }
        for (at, route) in document.routes.iter().enumerate() {
            let place = Place::of("routes").index(at);
            let first = number(limits.len());
            for (at, rule) in route.limits.iter().enumerate() {
                self.add(
                    rule,
                    false,
                    place.field("limits").index(at),
                    &mut limits,
                    problems,
                );
            }
            matches.push((
                &route.matching,
                place.field("match"),
                (first, number(limits.len())),
            ));
        }
        let rules = || {
            document
                .limits
                .iter()
                .chain(document.routes.iter().flat_map(|route| &route.limits))
        };
        let names: HashMap<&str, u32> = rules().map(|rule| rule.name.as_str()).zip(0..).collect();
        let matches = Matches::new(matches, self.context(), problems);
        let tiers = Tiers::new(document, &names, &self.default_key, problems);
        let index = Arc::new(Index {
            everywhere,
            matches,
            tiers,
        });
        let policy = self.policy(limits, &index, problems)?;
        Some(Compiled {
            policy: self.with_lists(policy, problems),
            index,
            explainer: OnceLock::new(),
        })
    }

    fn add(
        &self,
        rule: &LimitRule,
        is_found_by_when: bool,
        place: Place,
        limits: &mut Vec<(Limit, Place)>,
        problems: &mut Problems,
    ) {
        let keys = Keys {
            client_ip: &self.client_ip,
            code: self.code,
        };
        let made = Limits {
            defaults: &self.document.defaults,
            keys,
            context: self.context(),
        };
        match made.limit(rule, is_found_by_when, &place) {
            Ok(limit) => limits.push((limit, place)),
            Err(problem) => {
                problems.push(problem);
                // In its place, so that the positions of the others stay.
                limits.push((Limit::new(&rule.name, rule.quota.into()), place));
            }
        }
    }

    /// Makes the policy of these limits, of which the index chooses.
    fn policy(
        &self,
        limits: Vec<(Limit, Place)>,
        index: &Arc<Index>,
        problems: &mut Problems,
    ) -> Option<Policy> {
        let mut policy = Policy::new();
        if let Some(instances) = self.document.instances {
            match policy.try_instances(instances) {
                Ok(divided) => policy = divided,
                Err(error) => {
                    problems.push(Problem::error(Place::of("instances"), error));
                    return None;
                }
            }
        }
        if let Some(choice) = self.document.defaults.on_store_failure {
            policy = policy.on_store_failure(choice.into());
        }
        let with_tiers = |(limit, at): (&Limit, u32)| {
            if index.tiers.is_empty() {
                return limit.clone();
            }
            let index = Arc::clone(index);
            limit
                .clone()
                .quota_of_key(move |key| index.quota_of(at, key))
        };
        let chooser = Arc::clone(index);
        let choose =
            move |head: &RequestHead<'_>, chosen: &mut Chosen<'_>| chooser.choose(head, chosen);
        match policy.clone().try_choose(
            limits
                .iter()
                .map(|(limit, _)| limit)
                .zip(0..)
                .map(with_tiers),
            choose,
        ) {
            Ok(policy) => Some(policy),
            Err(_) => {
                // Added one by one, to tell the places of all that are invalid.
                for (limit, place) in limits {
                    match policy.clone().try_limit(limit) {
                        Ok(added) => policy = added,
                        Err(error) => problems.push(Problem::error(place, error)),
                    }
                }
                None
            }
        }
    }

    /// Adds the lists of requests that are not counted or blocked.
    fn with_lists(&self, mut policy: Policy, problems: &mut Problems) -> Policy {
        let document = self.document;
        let mut list = |field: &str, matches: &[Match]| {
            let places = (0..).map(|at| Place::of(field).index(at));
            let entries = matches
                .iter()
                .zip(places)
                .map(|(matching, place)| (matching, place, ()));
            let index = Matches::new(entries, self.context(), problems);
            (!index.is_empty()).then_some(move |head: &RequestHead<'_>| index.has(head))
        };
        if let Some(allowed) = list("allow", &document.allow) {
            policy = policy.allow(allowed);
        }
        if let Some(blocked) = list("block", &document.block) {
            policy = policy.block(blocked);
        }
        match list("skip", &document.skip) {
            Some(skipped) => policy.skip(skipped),
            None => policy,
        }
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
