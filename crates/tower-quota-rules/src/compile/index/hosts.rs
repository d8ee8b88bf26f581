//! The index of hosts and domains.

use std::collections::HashMap;

use tower_quota::{RequestHead, key};

/// Finds all matches for the requested hosts, as `when::host` compares them.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: HashMap<Box<[u8]>, Vec<u32>>,
    domains: HashMap<Box<[u8]>, Vec<u32>>,
}

impl Hosts {
    pub(super) fn add(&mut self, pattern: &str, entry: u32) {
        let (name, map) = match pattern.strip_prefix("*.") {
            Some(domain) => (domain, &mut self.domains),
            None => (pattern, &mut self.hosts),
        };
        let host = key::host().key_of(name);
        map.entry(host.as_bytes().into()).or_default().push(entry);
    }

    pub(super) fn find(&self, head: &RequestHead<'_>, examine: &mut dyn FnMut(u32)) {
        if self.hosts.is_empty() && self.domains.is_empty() {
            return;
        }
        if head.holds_in_doubt() {
            head.host_matches(|host| {
                self.find_one(host, examine);
                false
            });
            return;
        }
        let Some(first) = head.host() else { return };
        if head.host_matches(|host| *host == *first) {
            return self.find_one(&first, examine);
        }
        // Only a domain can match several different hosts.
        for domain in domains(&first) {
            if let Some(entries) = self.domains.get(domain)
                && head.host_matches(|host| domains(host).any(|other| other == domain))
            {
                entries.iter().for_each(|entry| examine(*entry));
            }
        }
    }

    /// Visits the matches for a host, and for each domain that the host is under.
    fn find_one(&self, host: &[u8], examine: &mut dyn FnMut(u32)) {
        let found = self.hosts.get(host).into_iter();
        let under = domains(host).filter_map(|domain| self.domains.get(domain));
        for entry in found.chain(under).flatten() {
            examine(*entry);
        }
    }
}

/// Returns the domains that a host is under. At least one character is before their dot.
fn domains(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dots = host
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, byte)| **byte == b'.');
    dots.filter_map(|(at, _)| host.get(at + 1..))
}
