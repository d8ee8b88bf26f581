use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tower_quota::{
    Key, Limit, Policy, Quota, RequestHead,
    explain::{Explained, Explainer},
    policy::Chosen,
};

use super::conditions::Context;
use super::keys::client_ip;
use super::matches::Matches;
use super::tiers::Tiers;
use crate::check::all_limits;
use crate::code_parts::CodeParts;
use crate::document::{Document, Match};
use crate::explain::ListName;
use crate::problem::{DocumentPlace, Problems};

pub(crate) struct Compiled {
    pub(crate) policy: Policy,
    pub(crate) index: Arc<Index>,
    explainer: OnceLock<Explainer>,
}

pub(crate) struct Index {
    everywhere: Vec<u32>,
    matches: Matches<(u32, u32)>,
    pub(crate) tiers: Tiers,
    /// The positions of the limits by name.
    pub(crate) positions: HashMap<Box<str>, u32>,
    /// The positions of the entries of the document's lists.
    skip: Matches<usize>,
    allow: Matches<usize>,
    block: Matches<usize>,
}

/// Compiles a checked document, and adds a problem for each part that does not compile.
pub(crate) fn compile(
    document: &Document,
    code: &CodeParts,
    problems: &mut Problems,
) -> Option<Compiled> {
    let mut context = Context {
        document,
        code,
        client_ip: Arc::new(client_ip(&document.client_ip)),
        default_key: Arc::default(),
    };
    context.default_key = Arc::new(context.source(document.defaults.key()));
    context.compile(problems)
}

impl Compiled {
    pub(crate) fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.explainer
            .get_or_init(|| self.policy.explainer())
            .explain(head)
    }

    /// Returns the first entry of a list that matches a request.
    pub(crate) fn entry(&self, list: ListName, head: &RequestHead<'_>) -> Option<usize> {
        let (entries, in_doubt) = match list {
            ListName::Allow => (&self.index.allow, false),
            ListName::Block => (&self.index.block, true),
        };
        let mut found = Vec::new();
        entries.find(&head.in_doubt(in_doubt), |at| found.push(*at));
        found.into_iter().min()
    }
}

impl Index {
    fn choose(&self, head: &RequestHead<'_>, chosen: &mut Chosen<'_>) {
        let granted = self.tiers.of(head);
        let mut add = |limit: u32| {
            let Ok(position) = usize::try_from(limit) else {
                return;
            };
            match granted.quota(limit) {
                None => chosen.add(position, None),
                Some(Some(quota)) => chosen.add(position, Some(quota)),
                // The tier has no limit here.
                Some(None) => chosen.leave_out(position),
            }
        };
        self.everywhere.iter().for_each(|limit| add(*limit));
        self.matches
            .find(head, |(first, end)| (*first..*end).for_each(&mut add));
    }

    fn quota_of(&self, limit: u32, key: &Key<'_>) -> Option<Quota> {
        self.tiers.of_key(key).quota(limit).flatten()
    }
}

impl Context<'_> {
    fn compile(&self, problems: &mut Problems) -> Option<Compiled> {
        let document = self.document;
        let mut limits: Vec<(Limit, DocumentPlace)> = Vec::new();
        let mut positions: HashMap<Box<str>, u32> = HashMap::new();
        let (mut everywhere, mut matches) = (Vec::new(), Vec::<(&Match, (u32, u32))>::new());
        for (position, limit) in (0..).zip(all_limits(document)) {
            let (rule, is_of_route) = (limit.rule, limit.route.is_some());
            positions.insert(rule.name.as_str().into(), position);
            limits.push((self.limit(rule, !is_of_route), limit.place()));
            match &rule.when {
                _ if is_of_route => {}
                None => everywhere.push(position),
                Some(when) => {
                    let found = (position, position + 1);
                    matches.extend(when.0.iter().map(|matching| (matching, found)));
                }
            }
        }
        let mut first = number(document.limits.len());
        for route in &document.routes {
            let end = first + number(route.limits.len());
            matches.push((&route.matching, (first, end)));
            first = end;
        }
        let index = Arc::new(Index {
            everywhere,
            matches: Matches::new(matches, self),
            tiers: Tiers::new(self, &positions, problems),
            positions,
            skip: self.list(&document.skip),
            allow: self.list(&document.allow),
            block: self.list(&document.block),
        });
        let policy = self.policy(limits, &index, problems)?;
        Some(Compiled {
            policy: with_lists(policy, &index),
            index,
            explainer: OnceLock::new(),
        })
    }

    /// Creates the policy of these limits. The index chooses among them.
    fn policy(
        &self,
        limits: Vec<(Limit, DocumentPlace)>,
        index: &Arc<Index>,
        problems: &mut Problems,
    ) -> Option<Policy> {
        let mut policy = Policy::new();
        if let Some(instances) = self.document.instances {
            match policy.try_instances(instances) {
                Ok(divided) => policy = divided,
                Err(error) => {
                    problems.error(DocumentPlace::of("instances"), error);
                    return None;
                }
            }
        }
        if let Some(refusals) = self.document.close_after {
            policy = policy.close_after(refusals);
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
        let positioned = limits.iter().map(|(limit, _)| limit).zip(0..);
        match policy
            .clone()
            .try_choose(positioned.map(with_tiers), choose)
        {
            Ok(policy) => Some(policy),
            Err(_) => {
                // Add the limits one by one, to report the places of all invalid limits.
                for (limit, place) in limits {
                    match policy.clone().try_limit(limit) {
                        Ok(added) => policy = added,
                        Err(error) => problems.error(place, error),
                    }
                }
                None
            }
        }
    }

    fn list(&self, matches: &[Match]) -> Matches<usize> {
        Matches::new(matches.iter().zip(0..), self)
    }
}

fn with_lists(mut policy: Policy, index: &Arc<Index>) -> Policy {
    if !index.allow.is_empty() {
        let index = Arc::clone(index);
        policy = policy.allow(move |head: &RequestHead<'_>| index.allow.has(head));
    }
    if !index.block.is_empty() {
        let index = Arc::clone(index);
        policy = policy.block(move |head: &RequestHead<'_>| index.block.has(head));
    }
    if !index.skip.is_empty() {
        let index = Arc::clone(index);
        policy = policy.skip(move |head: &RequestHead<'_>| index.skip.has(head));
    }
    policy
}

fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
