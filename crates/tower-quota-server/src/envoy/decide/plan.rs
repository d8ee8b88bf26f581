//! The limits of a call, and the counters that it charges.

use core::ops::Range;
use std::collections::HashSet;

use smallvec::SmallVec;
use tonic::Status;
use tower_quota_core::{Charge, Quota};

use crate::envoy::config::{Domain, Rule};
use crate::envoy::counter;
use crate::envoy::options::EnvoyOptions;
use crate::messages::descriptors::RateLimitDescriptor;
use crate::messages::ratelimit::RateLimitRequest;

/// A call with its limits and counters.
pub(super) struct Plan<'c> {
    pub(super) request: &'c RateLimitRequest,
    pub(super) domain: Option<&'c Domain>,
    pub(super) options: &'c EnvoyOptions,
    pub(super) asked: SmallVec<[Asked<'c>; 4]>,
    pub(super) counters: SmallVec<[Counter<'c>; 4]>,
    /// The names of the counters, one after the other.
    names: Vec<u8>,
    /// Whether refused calls count too.
    pub(super) is_compatible: bool,
}

/// A descriptor of a call with its limit, if it has one.
pub(super) struct Asked<'c> {
    pub(super) rule: Option<&'c Rule>,
    /// The position of the counter, if the store counts the limit.
    pub(super) counter: Option<usize>,
    pub(super) hits: u64,
    /// Whether the hits are given back.
    pub(super) gives_back: bool,
    name: Range<usize>,
}

/// A counter of a call. Several descriptors may share it.
pub(super) struct Counter<'c> {
    pub(super) rule: &'c Rule,
    pub(super) quota: &'c Quota,
    pub(super) hits: u64,
    /// The hits to give back.
    pub(super) back: u64,
    name: Range<usize>,
}

/// Makes the limits that come with descriptors, in the order of the descriptors.
pub(super) fn own_rules(request: &RateLimitRequest) -> Result<Vec<Rule>, Status> {
    let mut rules = Vec::new();
    for descriptor in &request.descriptors {
        let Some(limit) = &descriptor.limit else {
            continue;
        };
        let unit = limit.unit().as_str_name();
        let rule = Rule::of_descriptor(limit.requests_per_unit, unit).ok_or_else(|| {
            let message = "the limit of a descriptor has no known unit: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR";
            Status::invalid_argument(message)
        })?;
        let rule = rule.map_err(|error| {
            Status::invalid_argument(format!("the limit of a descriptor: {error}"))
        })?;
        rules.push(rule);
    }
    Ok(rules)
}

impl<'c> Plan<'c> {
    /// Finds the limits of a request.
    pub(super) fn new(
        domain: Option<&'c Domain>,
        own_rules: &'c [Rule],
        options: &'c EnvoyOptions,
        request: &'c RateLimitRequest,
    ) -> Result<Self, Status> {
        let mut plan = Self {
            request,
            domain,
            options,
            asked: SmallVec::new(),
            counters: SmallVec::new(),
            names: Vec::new(),
            is_compatible: domain.is_some_and(|domain| domain.is_compatible),
        };
        let mut own_rules = own_rules.iter();
        for descriptor in &request.descriptors {
            let start = plan.names.len();
            plan.names.push(descriptor.limit.is_some().into());
            counter::push(&mut plan.names, &request.domain);
            let rule = match (&descriptor.limit, domain) {
                (Some(limit), _) => {
                    plan.name_own(limit.unit().as_str_name(), descriptor);
                    own_rules.next()
                }
                (None, Some(domain)) => plan.find(domain, descriptor),
                (None, None) => None,
            };
            if rule.is_none() {
                // Many descriptors would keep many copies of a long domain.
                plan.names.truncate(start);
            }
            let hits = descriptor.hits_addend;
            plan.asked.push(Asked {
                rule,
                counter: None,
                hits: hits.unwrap_or(request.hits_addend.max(1).into()),
                gives_back: descriptor.is_negative_hits,
                name: start..plan.names.len(),
            });
        }
        plan.drop_replaced();
        plan.add_counters()?;
        Ok(plan)
    }

    /// Finds the limit of a descriptor, and appends the name of its counter.
    fn find(&mut self, domain: &'c Domain, descriptor: &RateLimitDescriptor) -> Option<&'c Rule> {
        domain.find(&descriptor.entries, |entry, found| {
            let shared = found.shares.then_some(&*found.value);
            counter::push_entry(&mut self.names, entry, shared);
        })
    }

    /// Appends the name of the counter of a descriptor with its own limit. Limits of different units count apart.
    fn name_own(&mut self, unit: &str, descriptor: &RateLimitDescriptor) {
        counter::push(&mut self.names, unit);
        for entry in &descriptor.entries {
            counter::push_entry(&mut self.names, entry, None);
        }
    }

    /// Drops each limit that another limit of the call replaces.
    fn drop_replaced(&mut self) {
        let rules = self.asked.iter().filter_map(|asked| asked.rule);
        let replaced: HashSet<&str> = rules
            .flat_map(|rule| rule.replaces.iter().map(|name| &**name))
            .collect();
        if replaced.is_empty() {
            return;
        }
        for asked in &mut self.asked {
            asked.rule = asked
                .rule
                .filter(|rule| rule.is_unlimited || !replaced.contains(rule.shown.name.as_str()));
        }
    }

    /// Adds a counter for each limit. The store charges a counter once, with the hits of all its descriptors.
    fn add_counters(&mut self) -> Result<(), Status> {
        for asked in &mut self.asked {
            let rule = asked
                .rule
                .and_then(|rule| Some((rule, rule.quota.as_ref()?)));
            let Some((rule, quota)) = rule else { continue };
            let name = &self.names[asked.name.clone()];
            let mut known = self.counters.iter();
            let known = known.position(|known| &self.names[known.name.clone()] == name);
            let position = known.unwrap_or(self.counters.len());
            if position == Charge::MOST {
                let message = "the request has more than 32 limits: send fewer descriptors";
                return Err(Status::invalid_argument(message));
            }
            if known.is_none() {
                self.counters.push(Counter {
                    rule,
                    quota,
                    hits: 0,
                    back: 0,
                    name: asked.name.clone(),
                });
            }
            let counter = &mut self.counters[position];
            let total = match asked.gives_back {
                true => &mut counter.back,
                false => &mut counter.hits,
            };
            *total = total.saturating_add(asked.hits);
            asked.counter = Some(position);
        }
        Ok(())
    }

    /// Returns the bytes that name a counter.
    pub(super) fn name(&self, counter: &Counter<'_>) -> &[u8] {
        &self.names[counter.name.clone()]
    }
}
