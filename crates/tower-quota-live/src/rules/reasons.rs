//! Finds the reason of a refusal: earlier refusals, entries of lists, and the source of a quota.

use core::net::IpAddr;

use tower_quota::{Key, RequestHead};
use tower_quota_rules::{ListName, QuotaSource};

use super::LiveRules;
use crate::blocks::{Block, BlockKind, Listing};
use crate::refusals::{RefusalFilter, RefusalList};

impl LiveRules {
    /// Returns the last refusals of this instance, the newest first, at most `most`.
    ///
    /// An instance remembers its last 10,000 refusals, with their keys up to 128 bytes. A client that repeats refused
    /// requests takes at most four places a second for each limit and route.
    #[must_use]
    pub fn refusals(&self, filter: &RefusalFilter, most: usize) -> RefusalList {
        self.shared().refusals.list(filter, most)
    }

    /// Returns the clients that a text can name, one for each scope that accepts the text.
    #[must_use]
    pub fn clients(&self, text: &str) -> Vec<Key<'static>> {
        let handle = self.handle();
        let mut clients: Vec<Key<'static>> = Vec::new();
        for limit in handle.limits() {
            if let Ok(key) = handle.key(limit.as_str(), text)
                && !key.as_bytes().is_empty()
                && !clients.contains(&key)
            {
                clients.push(key);
            }
        }
        // A blocked address has a key even if no limit counts by addresses.
        let address = self.shared().blocks.address_key(text);
        clients.extend(address.filter(|key| !clients.contains(key)));
        clients
    }

    /// Returns the entry that allows a client, or else the entry that blocks the client.
    ///
    /// Entries of the document with further conditions, such as a path, do not count.
    #[must_use]
    pub fn listing_of_client(&self, key: &Key<'_>) -> Option<Listing> {
        let block = self.shared().blocks.entry_of_client(key);
        let of_document = |list| self.in_force()?.rules.entry_of_client(list, key);
        self.listing(block.as_deref(), &of_document)
    }

    /// Returns the block or the allowance of a network with this address.
    #[must_use]
    pub fn listing_of_address(&self, address: IpAddr) -> Option<Listing> {
        let block = self.shared().blocks.entry_of_address(address);
        block.as_deref().map(Listing::of_block)
    }

    /// Returns the entry that allows a request, or else the entry that blocks the request.
    #[must_use]
    pub fn listing_of_request(&self, head: &RequestHead<'_>) -> Option<Listing> {
        let block = self.shared().blocks.entry(head);
        let of_document = |list| self.in_force()?.rules.entry(list, head);
        self.listing(block.as_deref(), &of_document)
    }

    /// Returns the operator's override that gives a client its quota of a limit, if any.
    #[must_use]
    pub fn override_source(&self, limit: &str, key: &Key<'_>) -> Option<QuotaSource> {
        let given = self.shared().blocks.override_of(limit, key)?;
        Some(QuotaSource::Operator {
            author: given.author.clone(),
            until: given.until.to_string(),
        })
    }

    /// Returns what gives a client its quota of a limit, without a tier from your code.
    #[must_use]
    pub fn quota_source(&self, limit: &str, key: &Key<'_>) -> QuotaSource {
        let by_document = || Some(self.in_force()?.rules.quota_source_by_key(limit, key));
        self.override_source(limit, key)
            .or_else(by_document)
            .unwrap_or(QuotaSource::Limit)
    }

    /// Chooses between an entry of the blocks and the entries of the document. Allowances take precedence.
    fn listing(
        &self,
        block: Option<&Block>,
        of_document: &dyn Fn(ListName) -> Option<usize>,
    ) -> Option<Listing> {
        let found = |list| {
            let position = of_document(list)?;
            Some(Listing::of_document(
                list,
                position,
                &self.in_force()?.version,
            ))
        };
        let of_block = || block.map(Listing::of_block);
        if block.is_some_and(|block| block.kind == BlockKind::Allow) {
            return of_block();
        }
        found(ListName::Allow)
            .or_else(of_block)
            .or_else(|| found(ListName::Block))
    }
}
