//! Counts the hits of a call.

use core::iter;

use super::charges::Decided;
use super::plan::{Asked, Plan};
use crate::envoy::config::{Domain, Rule, name};
use crate::envoy::counts::{Hits, NamedCounts, split};
use crate::messages::descriptors::rate_limit_descriptor::Entry;

impl Plan<'_> {
    /// Counts the hits of each limit, as envoyproxy/ratelimit counts them.
    pub(super) fn record(&self, decided: &Decided, named: &NamedCounts) {
        let Some(domain) = self.domain else {
            metrics::counter!("ratelimit_service_rate_limit_domain_not_found").increment(1);
            return;
        };
        let is_refused = self.refuses(&decided.over);
        if is_refused && self.options.is_shadow {
            metrics::counter!("ratelimit_service_global_shadow_mode").increment(1);
        }
        for (asked, descriptor) in self.asked.iter().zip(&self.request.descriptors) {
            let Some(rule) = asked.rule.filter(|rule| !rule.is_unlimited) else {
                continue;
            };
            if asked.gives_back {
                continue;
            }
            let hits = self.hits(asked, rule, decided, is_refused);
            let entries = &descriptor.entries;
            let path = |rule| self.path(domain, entries, rule);
            if descriptor.limit.is_some() {
                // Without values, because gateways read the values of such descriptors from requests.
                let keys = entries.iter().map(|entry| &entry.key);
                let name = iter::once(&self.request.domain).chain(keys).cloned();
                named.add(name.collect(), hits);
            } else if !rule.names_values || !named.add(path(Some(rule)), hits) {
                let counts = || named.of(path(None));
                rule.counts.get_or_init(counts).add(hits);
            }
        }
    }

    fn hits(&self, asked: &Asked<'_>, rule: &Rule, decided: &Decided, is_refused: bool) -> Hits {
        let (hits, is_shadow) = (asked.hits, rule.is_shadow);
        let Some(counter) = asked.counter else {
            return split(0, hits, 0, 0, is_shadow);
        };
        let Some(status) = decided.statuses.get(counter) else {
            // The store has failed.
            return [hits, 0, 0, 0, 0];
        };
        let used = (status.limit + status.debt()).saturating_sub(status.remaining());
        let takes_all = rule.post_charge || self.is_compatible;
        let before = match takes_all || !is_refused && !decided.over[counter] {
            true => used.saturating_sub(self.counters[counter].hits),
            false => used,
        };
        let near = status.limit.saturating_mul(self.options.near_limit_percent) / 100;
        split(before, hits, near, status.limit, is_shadow)
    }

    /// Returns the domain and the names of the descriptors. A rule chooses the values of the request that are named.
    fn path(&self, domain: &Domain, entries: &[Entry], rule: Option<&Rule>) -> Vec<String> {
        let mut path = vec![self.request.domain.clone()];
        domain.find(entries, |entry, descriptor| {
            let names_value = rule.is_some_and(|rule| rule.is_detailed || descriptor.names_value);
            let value = match names_value && !descriptor.shares {
                true => &entry.value,
                false => &*descriptor.value,
            };
            path.push(name(&entry.key, value));
        });
        path
    }
}
