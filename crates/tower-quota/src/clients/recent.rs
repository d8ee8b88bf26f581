//! The clients that this process has refused lately.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use tower_quota_core::{Key, Name};

/// The number of latest entries that are searched for a client that is refused again.
///
/// A longer search would make floods of refusals expensive. Entries that it misses are merged when the list is read.
const SEARCHED_ENTRIES: usize = 16;

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

    /// The longest key that is remembered, in bytes. Clients choose their keys, and long ones would fill the memory.
    pub const LONGEST_KEY: usize = 1_024;

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

    /// Returns the text that [names](crate::ClientKey::Text) this client, which may be a secret.
    ///
    /// It is an address or the value that was sent. For IPv6 it is the first address of the network that is counted.
    /// `None` where the key is not text: bytes of a closure, or several parts.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let (scope, bytes) = (self.key.scope().as_str(), self.key.as_bytes());
        if scope == "ip" || scope.starts_with("ip ") {
            return address(bytes).map(|address| address.to_string());
        }
        let text = core::str::from_utf8(bytes).ok().filter(|text| !text.is_empty() && !text.contains(char::is_control));
        text.map(str::to_owned)
    }

    /// Returns the number of its refused requests while it was remembered. Under load some are not counted.
    #[must_use]
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns the instant from which its last refused request would have been admitted.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Returns the time from now until its last refused request would be admitted, or zero.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.until.saturating_duration_since(super::now())
    }
}

/// Returns the address whose leading bytes are the bytes of a key.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(v4));
    }
    let mut v6 = [0; 16];
    // A shorter key was not made by an extractor.
    if bytes.len() < 8 {
        return None;
    }
    v6.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(IpAddr::from(v6))
}

/// A bounded list of refused clients, the latest first.
#[derive(Debug, Default)]
pub(crate) struct RecentRefusals(Mutex<VecDeque<RefusedClient>>);

impl RecentRefusals {
    /// Records a refusal without waiting: while another thread records one, this one is not counted.
    pub(crate) fn note(&self, limit: Name, key: &Key<'_>, until: Instant) {
        if key.as_bytes().len() > RefusedClient::LONGEST_KEY {
            return;
        }
        let mut clients = match self.0.try_lock() {
            Ok(clients) => clients,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let is_known = |client: &RefusedClient| client.limit == limit && client.key == *key;
        let known = clients.iter().take(SEARCHED_ENTRIES).position(is_known);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyExtractor, all, client_ip, header, method};

    fn refused(key: &Key<'_>) -> RefusedClient {
        let recent = RecentRefusals::default();
        recent.note(Name::new("limit"), key, super::super::now() + Duration::from_secs(600));
        recent.list().remove(0)
    }

    #[test]
    fn text_names_the_same_client() {
        for (client, address) in [
            (client_ip(), "203.0.113.7"),
            (client_ip(), "2001:db8:1:2::"),
            (client_ip().prefix_v6(48).prefix_v4(24), "2001:db8:1::"),
            (client_ip().prefix_v6(128), "2001:db8::1"),
        ] {
            let key = client.parse(address).unwrap();
            assert_eq!(refused(&key).text().as_deref(), Some(address));
        }
        assert_eq!(refused(&header("x").key_of("ann")).text().as_deref(), Some("ann"));
    }

    #[test]
    fn long_key_is_not_remembered() {
        let recent = RecentRefusals::default();
        for (bytes, remembered) in [(RefusedClient::LONGEST_KEY, 1), (RefusedClient::LONGEST_KEY + 1, 1)] {
            let key = header("x").key_of("k".repeat(bytes));
            recent.note(Name::new("limit"), &key, super::super::now());
            assert_eq!(recent.list().len(), remembered, "{bytes} bytes");
        }
    }

    #[test]
    fn key_of_parts_has_no_text() {
        let (one, other) = (header("x"), method());
        let both = all((one.clone(), other)).key_of([&one.key_of("ann"), &other.key_of(&http::Method::GET)]);
        assert_eq!(refused(&both).text(), None);
        assert_eq!(refused(&Key::EVERYONE).text(), None);
    }

    #[test]
    fn refused_client_waits_from_now() {
        let wait = refused(&header("x").key_of("ann")).retry_after();
        assert!(!wait.is_zero() && wait <= Duration::from_secs(600), "{wait:?}");
    }
}
