//! The clients that this process has refused lately.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use tower_quota_core::{Key, Name};

/// How many of the latest clients are searched for one that is refused again. A longer search would make floods of
/// refusals dear; what it misses is merged when the list is read.
const NEAR: usize = 16;

/// A client that was refused lately.
#[derive(Clone, Debug)]
pub struct RefusedClient {
    limit: Name,
    key: Key<'static>,
    refusals: u64,
    until: Instant,
}

impl RefusedClient {
    /// The most clients that are remembered.
    pub const MOST: usize = 256;

    /// Returns the limit that refused it last.
    #[must_use]
    pub const fn limit(&self) -> Name {
        self.limit
    }

    /// Returns its key, which may be a secret.
    #[must_use]
    pub const fn key(&self) -> &Key<'static> {
        &self.key
    }

    /// Returns how many of its requests were refused while it was remembered. Under load some are not counted.
    #[must_use]
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns the instant from which its last refused request would have been admitted.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }
}

/// A bounded list of refused clients, the latest first.
#[derive(Debug, Default)]
pub(crate) struct RecentRefusals(Mutex<VecDeque<RefusedClient>>);

impl RecentRefusals {
    /// Notes a refusal. Never waits: while another thread notes one, this one is not counted.
    pub(crate) fn note(&self, limit: Name, key: &Key<'_>, until: Instant) {
        let mut clients = match self.0.try_lock() {
            Ok(clients) => clients,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let is_known = |client: &RefusedClient| client.limit == limit && client.key == *key;
        let known = clients.iter().take(NEAR).position(is_known);
        let mut client = match known.and_then(|position| clients.remove(position)) {
            Some(client) => client,
            None => {
                clients.truncate(RefusedClient::MOST - 1);
                RefusedClient { limit, key: Key::owned(key.scope(), key.as_bytes()), refusals: 0, until }
            }
        };
        client.refusals += 1;
        client.until = until;
        clients.push_front(client);
    }

    pub(crate) fn list(&self) -> Vec<RefusedClient> {
        let latest: Vec<RefusedClient> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let mut clients: Vec<RefusedClient> = Vec::new();
        for client in latest {
            match clients.iter_mut().find(|known| known.limit == client.limit && known.key == client.key) {
                Some(known) => known.refusals += client.refusals,
                None => clients.push(client),
            }
        }
        clients
    }
}
