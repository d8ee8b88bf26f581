//! The watch over the first requests of a policy.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tower_quota_core::{Decision, Key, Name, Outcome};

use super::key::WatchedKey;
use super::limit::WatchedLimit;
use super::{Check, Checks, DIRECT_PROOF, Mark, NEVER_PROOF};
use crate::head::RequestHead;
use crate::policy::{Ask, NotAsked, Plan};

/// The number of requests after which the watch ends in any case.
const MAX_WATCHED_REQUESTS: u64 = 10_000;

/// Watches the first requests that the limits of one policy are evaluated for.
///
/// It ends after a thousand requests if every key has been found and no mistake is partly proved, and after ten
/// thousand otherwise. Afterwards all checks together cost a request one relaxed load and a branch, in
/// [`is_open`](Self::is_open). Until then they cost a few shared counters, one more read of the peer and the forwarding
/// headers for each key that uses them, and one extension.
#[derive(Debug)]
pub(crate) struct Watch {
    is_open: AtomicBool,
    /// The number of the store, for marks.
    store: usize,
    requests: AtomicU64,
    /// True if the address of the peer was needed and is missing.
    lacks_peer: AtomicBool,
    has_admitted: AtomicBool,
    refused: AtomicU64,
    unlimited: AtomicU64,
    /// Those that every request is asked about. Chosen limits are not watched: most apply to few requests.
    limits: Box<[WatchedLimit]>,
    keys: Box<[WatchedKey]>,
}

impl Watch {
    pub(crate) fn new(plan: &Plan, checks: &Checks, store: usize) -> Self {
        Self {
            is_open: AtomicBool::new(!checks.are_off()),
            store,
            requests: AtomicU64::new(0),
            lacks_peer: AtomicBool::new(false),
            has_admitted: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            unlimited: AtomicU64::new(0),
            limits: plan
                .listed_limits()
                .map(|_| WatchedLimit::default())
                .collect(),
            keys: (0..plan.key_count())
                .map(|_| WatchedKey::default())
                .collect(),
        }
    }

    /// Returns whether requests are still examined.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns the flag that extractors and conditions set when the peer's address is missing.
    pub(crate) const fn lacks_peer(&self) -> &AtomicBool {
        &self.lacks_peer
    }

    /// Examines a request whose keys were read. Returns the mark for the layers inside this one.
    pub(crate) fn examine(
        &self,
        checks: &Checks,
        plan: &Plan,
        ask: &Ask<'_, '_>,
        not_asked: Option<&NotAsked>,
        head: &RequestHead<'_>,
    ) -> Mark {
        self.count();
        if plan.admits_everything() {
            checks.observe(Check::NoLimits, None, &self.unlimited, NEVER_PROOF, || {
                String::from(
                    "the policy has no limits, so every request passes. Add one by `Policy::limit`, or leave the layer out",
                )
            });
        }
        self.examine_keys(checks, plan, ask, not_asked, head);
        match not_asked {
            // The limits after the one that refused were not evaluated.
            Some(
                NotAsked::MissingKey(_) | NotAsked::Unauthenticated(_) | NotAsked::NoPeerAddress,
            ) => Mark::default(),
            Some(NotAsked::NoLimit | NotAsked::TooManyLimits) | None => {
                self.examine_limits(checks, plan, ask, head)
            }
        }
    }

    fn examine_keys(
        &self,
        checks: &Checks,
        plan: &Plan,
        ask: &Ask<'_, '_>,
        not_asked: Option<&NotAsked>,
        head: &RequestHead<'_>,
    ) {
        let mut lacks_peer = self.lacks_peer.swap(false, Ordering::Relaxed);
        for (position, is_missing) in ask.keys_read() {
            let (Some(key), Some((extractor, limit))) =
                (self.keys.get(position), plan.key(position))
            else {
                continue;
            };
            lacks_peer |= key.examine(checks, limit, extractor, head, is_missing);
        }
        // A request that is refused for this reason is counted where it is refused.
        if lacks_peer && !matches!(not_asked, Some(NotAsked::NoPeerAddress)) {
            checks.no_peer_address();
        }
    }

    fn examine_limits(
        &self,
        checks: &Checks,
        plan: &Plan,
        ask: &Ask<'_, '_>,
        head: &RequestHead<'_>,
    ) -> Mark {
        let mut mark = Mark::default();
        for (watched, (limit, key)) in self.limits.iter().zip(plan.listed_limits()) {
            let Some((scope, units)) = ask.part_of(limit.name) else {
                // It may have skipped the request because the key is missing.
                if ask.lacks_key(key) {
                    watched.applies();
                } else {
                    watched.does_not_apply(checks, limit, head);
                }
                continue;
            };
            watched.applies();
            if units == 0 {
                continue;
            }
            if Mark::is_marked(head.extensions(), self.store, limit.name, scope) {
                checks.observe(Check::CountedTwice, Some(limit.name), &watched.counted_twice, DIRECT_PROOF, || {
                    String::from(
                        "two layers count it for the same request, by the same key and in the same store, so each request costs \
                         twice. Remove one of the layers, or give one of the limits another name",
                    )
                });
            }
            mark.add(self.store, limit.name, scope);
        }
        mark
    }

    /// Records a request that the limits admitted.
    pub(crate) fn admitted(&self) {
        if !self.has_admitted.load(Ordering::Relaxed) {
            self.has_admitted.store(true, Ordering::Relaxed);
        }
    }

    /// Records a request that a limit refused, given the keys of its limits.
    pub(crate) fn refused(
        &self,
        checks: &Checks,
        decision: &Decision,
        keys: &[(Name, Key<'static>)],
    ) {
        let Some(binding) = decision.tightest() else {
            return;
        };
        let is_everyone = keys
            .iter()
            .any(|(limit, key)| *limit == binding.name && *key == Key::EVERYONE);
        if is_everyone || decision.outcome() == Outcome::Never {
            self.refused_for_good(checks);
        }
    }

    /// Records a request that would be refused for any client, or that is blocked.
    pub(crate) fn refused_for_good(&self, checks: &Checks) {
        if !self.is_open() || self.has_admitted.load(Ordering::Relaxed) {
            return;
        }
        checks.observe(Check::RefusesAll, None, &self.refused, NEVER_PROOF, || {
            format!(
                "the first {NEVER_PROOF} requests were all refused: blocked, or over a limit that none of them could meet. Check \
                 the conditions of `Policy::block`, that costs are below each limit's capacity, and that no other service \
                 uses up a limit of the same name in the same store"
            )
        });
    }

    fn count(&self) {
        let requests = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if requests < NEVER_PROOF || !requests.is_multiple_of(100) {
            return;
        }
        let refused = self.refused.load(Ordering::Relaxed);
        let is_unproved = || {
            !self.has_admitted.load(Ordering::Relaxed) && (1..NEVER_PROOF).contains(&refused)
                || self.keys.iter().any(WatchedKey::is_open)
                || self.limits.iter().any(WatchedLimit::is_open)
        };
        if requests >= MAX_WATCHED_REQUESTS || !is_unproved() {
            self.is_open.store(false, Ordering::Relaxed);
        }
    }
}
