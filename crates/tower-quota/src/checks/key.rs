//! The state of the checks for one key of a policy.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::hash::DefaultHasher;
use std::sync::OnceLock;

use tower_quota_core::Name;

use super::{Check, Checks, DIRECT_PROOF, DISPROVABLE_PROOF, NEVER_PROOF};
use crate::head::RequestHead;
use crate::key::{self, KeyExtractor, Mistake, forwarding_header};

/// The state of the checks for one key.
#[derive(Debug, Default)]
pub(super) struct WatchedKey {
    is_found: AtomicBool,
    missing: AtomicU64,
    /// Says whether a request with a forwarding header showed no mistake: proxies and configuration fit.
    fits: AtomicBool,
    untrusted: AtomicU64,
    unsent: AtomicU64,
    /// The header that proxies do not send.
    unsent_header: OnceLock<String>,
    paths: Paths,
}

/// The hashes of the first different paths; 0 is an empty place.
#[derive(Debug, Default)]
struct Paths([AtomicU64; 4]);

impl WatchedKey {
    /// Examines a request for mistakes in the key that this limit counts by.
    ///
    /// Returns whether the address of the peer is missing.
    pub(super) fn examine(
        &self,
        checks: &Checks,
        limit: Name,
        extractor: &dyn KeyExtractor,
        head: &RequestHead<'_>,
        is_missing: bool,
    ) -> bool {
        let mistake = key::mistake(extractor, head);
        if mistake == Some(Mistake::NoPeerAddress) {
            return true;
        }
        if is_missing {
            self.miss(checks, limit, extractor.scope());
        } else if !self.is_found.load(Ordering::Relaxed) {
            self.is_found.store(true, Ordering::Relaxed);
        }
        if !self.fits.load(Ordering::Relaxed) {
            match mistake {
                Some(mistake) => self.observe(checks, limit, &mistake, head),
                None if self.is_forwarded(head) => self.fits.store(true, Ordering::Relaxed),
                None => {}
            }
        }
        false
    }

    fn miss(&self, checks: &Checks, limit: Name, scope: Name) {
        if self.is_found.load(Ordering::Relaxed) {
            return;
        }
        checks.observe(Check::KeyNeverFound, Some(limit), &self.missing, NEVER_PROOF, || {
            format!(
                "none of the first {NEVER_PROOF} requests that it applies to has its key, {:?}. Check the spelling, and that what \
                 provides the key runs before this layer: with axum the layer that is added last runs first. Or count by a \
                 key that is always there, as by `.or(key::client_ip())`",
                scope.as_str()
            )
        });
    }

    fn observe(&self, checks: &Checks, limit: Name, mistake: &Mistake, head: &RequestHead<'_>) {
        let (check, seen, proof) = match mistake {
            Mistake::NoPeerAddress => return,
            Mistake::UntrustedProxy { .. } => {
                (Check::UntrustedProxy, &self.untrusted, DIRECT_PROOF)
            }
            Mistake::NoForwardedAddress { header } => {
                self.unsent_header.get_or_init(|| header.clone());
                // Health checks use the same few paths.
                if !self.paths.add(head.path()) {
                    return;
                }
                (Check::NoForwardedAddress, &self.unsent, DISPROVABLE_PROOF)
            }
        };
        checks.observe(check, Some(limit), seen, proof, || mistake.to_string());
    }

    fn is_forwarded(&self, head: &RequestHead<'_>) -> bool {
        let is_sent = |header: &String| head.headers().contains_key(header);
        forwarding_header(head.headers()).is_some() || self.unsent_header.get().is_some_and(is_sent)
    }

    /// Returns whether more requests can prove a mistake.
    pub(super) fn is_open(&self) -> bool {
        let is_missing = !self.is_found.load(Ordering::Relaxed)
            && self.missing.load(Ordering::Relaxed) < NEVER_PROOF;
        let is_forwarding = self.unsent_header.get().is_some()
            && self.unsent.load(Ordering::Relaxed) < DISPROVABLE_PROOF;
        is_missing || is_forwarding && !self.fits.load(Ordering::Relaxed)
    }
}

impl Paths {
    /// Adds a path. Returns whether four different ones were added.
    fn add(&self, path: &str) -> bool {
        let [.., last] = &self.0;
        if last.load(Ordering::Relaxed) != 0 {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let hash = hasher.finish().max(1);
        // If two requests add a path at the same time, one of them may be lost.
        for known in &self.0 {
            match known.load(Ordering::Relaxed) {
                0 => {
                    known.store(hash, Ordering::Relaxed);
                    break;
                }
                other if other == hash => break,
                _ => {}
            }
        }
        last.load(Ordering::Relaxed) != 0
    }
}
