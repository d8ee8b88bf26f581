//! The limits of a call, and the counters that it charges.

use core::ops::{Deref, Range};
use std::collections::HashSet;

use smallvec::SmallVec;
use tonic::Status;
use tower_quota_core::{Charge, Name};

use crate::envoy::config::{Domain, EnvoyConfig, Rule};
use crate::envoy::counter;
use crate::messages::RateLimitUnit;
use crate::messages::descriptors::RateLimitDescriptor;
use crate::messages::ratelimit::RateLimitRequest;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;

/// A call with its limits and counters.
pub(super) struct Plan<'c> {
    pub(super) asked: SmallVec<[Asked<'c>; 4]>,
    pub(super) counters: SmallVec<[Counter; 4]>,
    /// The names of the counters, one after the other.
    names: Vec<u8>,
    /// Whether refused calls count too.
    pub(super) is_compatible: bool,
}

/// A descriptor of a call with its limit, if it has one.
pub(super) struct Asked<'c> {
    pub(super) rule: Option<Found<'c>>,
    /// The position of the counter, if the store counts the limit.
    pub(super) counter: Option<usize>,
    pub(super) hits: u64,
    /// Whether the hits are given back.
    pub(super) gives_back: bool,
    name: Range<usize>,
}

/// A limit of the configuration or of the descriptor itself.
pub(super) enum Found<'c> {
    InTree(&'c Rule),
    InDescriptor(Box<Rule>),
}

/// A counter of a call. Several descriptors may share it.
pub(super) struct Counter {
    pub(super) limit: Name,
    /// The position of the first descriptor, which has the limit.
    pub(super) first: usize,
    pub(super) hits: u64,
    /// The hits to give back.
    pub(super) back: u64,
    name: Range<usize>,
}

impl<'c> Plan<'c> {
    /// Finds the limits of a request.
    pub(super) fn new(config: &'c EnvoyConfig, request: &RateLimitRequest) -> Result<Self, Status> {
        if request.domain.is_empty() {
            return Err(Status::invalid_argument("the request has no domain"));
        }
        if request.descriptors.is_empty() {
            return Err(Status::invalid_argument("the request has no descriptors"));
        }
        let domain = config.domain(&request.domain);
        let mut plan = Self {
            asked: SmallVec::new(),
            counters: SmallVec::new(),
            names: Vec::new(),
            is_compatible: domain.is_some_and(|domain| domain.is_compatible),
        };
        for descriptor in &request.descriptors {
            let start = plan.names.len();
            let rule = match domain {
                Some(domain) => plan.find(domain, request, descriptor)?,
                None => None,
            };
            plan.asked.push(Asked {
                rule,
                counter: None,
                hits: descriptor
                    .hits_addend
                    .unwrap_or(request.hits_addend.max(1).into()),
                gives_back: descriptor.is_negative_hits,
                name: start..plan.names.len(),
            });
        }
        plan.drop_replaced();
        plan.add_counters()?;
        Ok(plan)
    }

    /// Finds the limit of a descriptor, and appends the name of its counter.
    fn find(
        &mut self,
        domain: &'c Domain,
        request: &RateLimitRequest,
        descriptor: &RateLimitDescriptor,
    ) -> Result<Option<Found<'c>>, Status> {
        counter::push(&mut self.names, &request.domain);
        let Some(limit) = &descriptor.limit else {
            let rule = domain.find(&descriptor.entries, &mut self.names);
            return Ok(rule.map(Found::InTree));
        };
        let unit = RateLimitUnit::try_from(limit.unit).unwrap_or_default();
        // Limits of different units count apart.
        counter::push(&mut self.names, unit.as_str_name());
        for entry in &descriptor.entries {
            counter::push_entry(&mut self.names, &entry.key, &entry.value, None);
        }
        let unit = Unit::from_str_name(unit.as_str_name()).unwrap_or_default();
        if unit == Unit::Unknown {
            let message = "the limit of a descriptor has no known unit: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR";
            return Err(Status::invalid_argument(message));
        }
        match Rule::of_descriptor(limit.requests_per_unit, unit) {
            Ok(rule) => Ok(Some(Found::InDescriptor(Box::new(rule)))),
            Err(error) => Err(Status::invalid_argument(format!(
                "the limit of a descriptor: {error}"
            ))),
        }
    }

    /// Drops each limit that another limit of the call replaces.
    fn drop_replaced(&mut self) {
        let mut replaced: HashSet<&'c str> = HashSet::new();
        for asked in &self.asked {
            if let Some(Found::InTree(rule)) = asked.rule {
                replaced.extend(rule.replaces.iter().map(|name| &**name));
            }
        }
        if replaced.is_empty() {
            return;
        }
        for asked in &mut self.asked {
            let rule = asked.rule.as_deref();
            if rule.is_some_and(|rule| {
                !rule.is_unlimited() && replaced.contains(rule.shown.name.as_str())
            }) {
                asked.rule = None;
            }
        }
    }

    /// Adds a counter for each limit. The store charges a counter once, with the hits of all its descriptors.
    fn add_counters(&mut self) -> Result<(), Status> {
        for position in 0..self.asked.len() {
            let asked = &self.asked[position];
            let Some(rule) = asked.rule.as_ref().filter(|rule| rule.quota().is_some()) else {
                continue;
            };
            let limit = rule.counter();
            let name = &self.names[asked.name.clone()];
            let mut known = self.counters.iter();
            let known = known
                .position(|known| known.limit == limit && &self.names[known.name.clone()] == name);
            let counter = known.unwrap_or(self.counters.len());
            if counter == Charge::MOST {
                let message = "the request has more than 32 limits: send fewer descriptors";
                return Err(Status::invalid_argument(message));
            }
            if known.is_none() {
                self.counters.push(Counter {
                    limit,
                    first: position,
                    hits: 0,
                    back: 0,
                    name: asked.name.clone(),
                });
            }
            let (hits, gives_back) = (asked.hits, asked.gives_back);
            let total = &mut self.counters[counter];
            let total = if gives_back {
                &mut total.back
            } else {
                &mut total.hits
            };
            *total = total.saturating_add(hits);
            self.asked[position].counter = Some(counter);
        }
        Ok(())
    }

    /// Returns the bytes that name a counter.
    pub(super) fn name(&self, counter: &Counter) -> &[u8] {
        &self.names[counter.name.clone()]
    }

    /// Returns the limit of a counter.
    pub(super) fn rule(&self, counter: &Counter) -> Option<&Rule> {
        self.asked[counter.first].rule.as_deref()
    }
}

impl Found<'_> {
    const fn counter(&self) -> Name {
        match self {
            Self::InTree(_) => counter::OF_TREE,
            Self::InDescriptor(_) => counter::OF_DESCRIPTOR,
        }
    }
}

impl Deref for Found<'_> {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        match self {
            Self::InTree(rule) => rule,
            Self::InDescriptor(rule) => rule,
        }
    }
}
