//! Blocks of clients that are refused for long.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

use ipnet::IpNet;
use tower_quota::TopClient;

use tower_quota_rules::{AdaptiveBlock, BlockBy};

/// The clients that are followed at once. More are refused only in a flood of keys, which no block of keys would end.
const MOST_FOLLOWED: usize = 4 * TopClient::MOST;
/// Without a new refusal for this long, a client has paused.
const PAUSE: Duration = Duration::from_secs(5);

/// The rule by which clients that are refused for long are blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdaptiveRule {
    /// The time for which a client must be refused without a pause.
    pub(crate) after: Duration,
    first: Duration,
    factor: u32,
    most: Duration,
    /// The prefixes of the networks that are blocked; `None` to block keys.
    networks: Option<(u8, u8)>,
}

impl From<&AdaptiveBlock> for AdaptiveRule {
    fn from(rule: &AdaptiveBlock) -> Self {
        let networks = (rule.by == Some(BlockBy::Network))
            .then(|| (rule.prefix_v4.unwrap_or(32), rule.prefix_v6.unwrap_or(64)));
        Self {
            after: rule.after.into(),
            first: rule.first.into(),
            factor: rule.factor.unwrap_or(4),
            most: rule
                .most
                .map_or(Duration::from_secs(86_400), Duration::from),
            networks,
        }
    }
}

impl AdaptiveRule {
    /// Returns the length of a block that comes after this many.
    pub(crate) fn length(&self, strikes: u32) -> Duration {
        self.first
            .saturating_mul(self.factor.saturating_pow(strikes))
            .min(self.most)
    }

    /// Returns for how long the growth is remembered after a block of this length: as long again, at least `after`
    /// ten times.
    pub(crate) fn memory(&self, length: Duration) -> Duration {
        length.max(self.after.saturating_mul(10)).min(self.most)
    }

    /// Returns the network to block for a refused client whose key is an address, if networks are blocked.
    pub(crate) fn network_of(&self, client: &TopClient) -> Option<IpNet> {
        // A client may send any text as another key, such as another client's address.
        let address = client.key().to_address()?;
        self.network(client.key().scope().as_str(), address)
    }

    fn network(&self, scope: &str, address: IpAddr) -> Option<IpNet> {
        let (prefix_v4, prefix_v6) = self.networks?;
        // The rest of the address was not counted: a smaller network would miss the client.
        let counted = |mark, default| {
            scope
                .split(' ')
                .find_map(|word| word.strip_prefix(mark)?.parse().ok())
                .unwrap_or(default)
        };
        let prefix = if address.is_ipv4() {
            prefix_v4.min(counted("v4/", 32))
        } else {
            prefix_v6.min(counted("/", 64))
        };
        IpNet::new(address, prefix)
            .ok()
            .map(|network| network.trunc())
    }
}

/// A client that has been refused for long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offence(pub(crate) u64);

/// Follows refused clients from poll to poll.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    clients: HashMap<u64, Followed>,
}

#[derive(Debug)]
struct Followed {
    /// Its last refusal, by one of the limits that refuse it.
    refused_at: Instant,
    first: Duration,
    last: Duration,
}

impl Tracker {
    /// Takes the refused clients, by the hash of their key with the instant of their last refusal.
    ///
    /// Returns those that have been refused for longer than `after` without a pause. They are followed anew.
    pub(crate) fn observe(
        &mut self,
        now: Duration,
        after: Duration,
        refused: impl IntoIterator<Item = (u64, Instant)>,
    ) -> Vec<Offence> {
        self.clients
            .retain(|_, followed| now.saturating_sub(followed.last) <= PAUSE);
        let mut offences = Vec::new();
        for (hash, refused_at) in refused {
            let is_full = self.clients.len() >= MOST_FOLLOWED;
            let Some(followed) = self.clients.get_mut(&hash) else {
                if !is_full {
                    self.clients.insert(
                        hash,
                        Followed {
                            refused_at,
                            first: now,
                            last: now,
                        },
                    );
                }
                continue;
            };
            if refused_at > followed.refused_at {
                (followed.refused_at, followed.last) = (refused_at, now);
            }
            if followed.last.saturating_sub(followed.first) > after {
                followed.first = now;
                offences.push(Offence(hash));
            }
        }
        offences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_quota_rules::DurationText;

    const SECOND: Duration = Duration::from_secs(1);
    const NONE: [u32; 0] = [];

    /// Polls once a second; the client is refused in the seconds that `is_refused` names.
    fn offences(seconds: u32, is_refused: impl Fn(u32) -> bool) -> Vec<u32> {
        let (mut tracker, start, mut found) = (Tracker::default(), crate::wait::now(), Vec::new());
        let mut refused_at = None;
        for second in 0..seconds {
            refused_at = is_refused(second)
                .then(|| start + SECOND * second)
                .or(refused_at);
            // A client stays in the list of refused ones when it has paused.
            let seen = refused_at.map(|refused_at| (7, refused_at));
            if !tracker
                .observe(SECOND * second, 60 * SECOND, seen)
                .is_empty()
            {
                found.push(second);
            }
        }
        found
    }

    #[test]
    fn client_refused_for_long_is_found() {
        assert_eq!(offences(60, |_| true), NONE);
        assert_eq!(offences(200, |_| true), [61, 122, 183]);
        assert_eq!(
            offences(100, |second| second % 5 == 0),
            [65],
            "every 5 seconds is no pause"
        );
    }

    #[test]
    fn client_that_pauses_is_not_found() {
        assert_eq!(offences(1_000, |second| second % 50 < 40), NONE);
        assert_eq!(offences(1_000, |second| second == 0), NONE);
    }

    #[test]
    fn flood_of_clients_is_bounded() {
        let mut tracker = Tracker::default();
        let now = crate::wait::now();
        tracker.observe(SECOND, SECOND, (0..10_000).map(|client| (client, now)));
        assert_eq!(tracker.clients.len(), MOST_FOLLOWED);
    }

    fn rule(by: Option<BlockBy>) -> AdaptiveRule {
        let [after, first, most] =
            [60, 60, 600].map(|seconds| DurationText::from(SECOND * seconds));
        let (factor, most, prefix_v4, prefix_v6) = (Some(4), Some(most), Some(24), Some(56));
        AdaptiveRule::from(&AdaptiveBlock {
            after,
            first,
            factor,
            most,
            by,
            prefix_v4,
            prefix_v6,
        })
    }

    #[test]
    fn blocks_grow_up_to_the_longest() {
        assert_eq!(
            [0, 1, 2, 99].map(|strikes| rule(None).length(strikes).as_secs()),
            [60, 240, 600, 600]
        );
    }

    #[test]
    fn network_is_blocked_only_when_named() {
        for by in [None, Some(BlockBy::Key)] {
            assert_eq!(rule(by).network("ip", "203.0.113.7".parse().unwrap()), None);
        }
        let network = |text: &str| {
            rule(Some(BlockBy::Network))
                .network("ip", text.parse().unwrap())
                .map(|network| network.to_string())
        };
        assert_eq!(network("203.0.113.7").as_deref(), Some("203.0.113.0/24"));
        assert_eq!(
            network("2001:db8:1:2ff::").as_deref(),
            Some("2001:db8:1:200::/56")
        );
    }

    #[test]
    fn network_is_no_smaller_than_counted() {
        let network = |scope, text: &str| {
            rule(Some(BlockBy::Network))
                .network(scope, text.parse().unwrap())
                .unwrap()
                .to_string()
        };
        assert_eq!(network("ip v4/16", "203.0.0.0"), "203.0.0.0/16");
        assert_eq!(
            network("ip of x-forwarded-for /48 v4/28", "203.0.113.16"),
            "203.0.113.0/24"
        );
        assert_eq!(
            network("ip of x-forwarded-for /48 v4/28", "2001:db8:1::"),
            "2001:db8:1::/48"
        );
    }
}
