use core::time::Duration;
use std::time::Instant;

use tower_quota_core::{Key, Name};

/// A client of a limit, with its number of requests in a window.
///
/// You get an estimate from [`at_least`](Self::at_least) to [`at_most`](Self::at_most).
#[derive(Clone, Debug)]
pub struct TopClient {
    /// The limit that applied or refused.
    pub limit: Name,
    /// The key, which may be a secret.
    pub key: Key<'static>,
    /// The maximum number of counted requests.
    ///
    /// The excess over [`at_least`](Self::at_least) is at most a 250th of all counted requests.
    pub at_most: u64,
    pub(super) excess: u64,
    /// The instant of the last counted request.
    pub last: Instant,
    /// The instant at which the last refused request would be admitted.
    pub until: Instant,
    /// The first of the refusals that follow each other within a minute, if the client is still refused so.
    ///
    /// A client at the limit of a bucket gets some requests through meanwhile.
    pub since: Option<Instant>,
}

impl TopClient {
    /// The maximum number of clients in a slice of a window.
    pub const MOST: usize = 256;

    /// The maximum bytes of a remembered key, because clients choose their keys.
    pub(super) const LONGEST_KEY: usize = 1_024;

    /// Returns the [text](crate::ClientKey::Text) of the key, if any. The text may be a secret.
    ///
    /// For IPv6, you get the first address of the network.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        Self::text_of(&self.key)
    }

    /// Returns the [text](Self::text) of a key.
    #[must_use]
    pub fn text_of(key: &Key<'_>) -> Option<String> {
        if let Some(address) = key.to_address() {
            return Some(address.to_string());
        }
        let text = core::str::from_utf8(key.as_bytes())
            .ok()
            .filter(|text| !text.is_empty() && !text.contains(char::is_control));
        text.map(str::to_owned)
    }

    /// Returns the minimum number of requests. Under load, the process may skip requests.
    #[must_use]
    pub const fn at_least(&self) -> u64 {
        self.at_most.saturating_sub(self.excess)
    }

    /// Returns the remaining time to [`until`](Self::until), or zero.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.until.saturating_duration_since(crate::observe::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyExtractor, all, client_ip, header, method};

    fn refused(key: &Key<'_>) -> TopClient {
        let now = crate::observe::now();
        let key = key.to_static();
        let until = now + Duration::from_secs(600);
        TopClient {
            limit: Name::new("limit"),
            key,
            at_most: 1,
            excess: 0,
            last: now,
            until,
            since: None,
        }
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
        assert_eq!(
            refused(&header("x").key_of("ann")).text().as_deref(),
            Some("ann")
        );
    }

    #[test]
    fn key_of_parts_has_no_text() {
        let (one, other) = (header("x"), method());
        let both =
            all((one.clone(), other.clone())).key_of([&one.key_of("ann"), &other.key_of("GET")]);
        assert_eq!(refused(&both).text(), None);
        assert_eq!(refused(&Key::EVERYONE).text(), None);
    }

    #[test]
    fn refused_client_waits_from_now() {
        let wait = refused(&header("x").key_of("ann")).retry_after();
        assert!(
            !wait.is_zero() && wait <= Duration::from_secs(600),
            "{wait:?}"
        );
    }
}
