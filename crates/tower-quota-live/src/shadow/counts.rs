use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use serde::{Deserialize, Serialize};
use tower_quota::{Decided, Policy};

use crate::version::Version;

/// Counts the outcomes of a shadow document and of the document in force on an instance.
///
/// Create the counts first, and give them to the layer and to the live rules:
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
/// use tower_quota_live::{LiveOptions, ShadowCounts};
///
/// let counts = ShadowCounts::new();
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_decision(counts.listener());
/// let options = LiveOptions::new().shadow_counts(counts);
/// # let _ = (layer, options);
/// ```
///
/// Without a shadow document, the listener costs a single load per request.
#[derive(Clone, Default)]
pub struct ShadowCounts {
    running: Arc<ArcSwapOption<Running>>,
}

/// The report of a shadow document, and a hash of its text. A restored store may reuse the number for another text.
struct Running {
    hash: u64,
    report: Mutex<ShadowReport>,
}

impl Running {
    fn report(&self) -> MutexGuard<'_, ShadowReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcomes of a shadow document on an instance, since the document began there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ShadowReport {
    /// The version of the shadow document.
    pub version: u64,
    /// Requests decided by both documents.
    pub requests: u64,
    /// Requests refused by the document in force.
    pub current_refused: u64,
    /// Requests the shadow document would have refused.
    pub shadow_refused: u64,
    /// Admitted requests the shadow document would have refused.
    pub only_shadow_refuses: u64,
    /// Refused requests the shadow document would have admitted.
    pub only_current_refuses: u64,
    /// The same counts per limit. For a limit in a single document, only the counts of the
    /// document.
    pub limits: BTreeMap<String, LimitCounts>,
}

/// The outcomes of a limit in both documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct LimitCounts {
    /// Requests refused by the limit in the document in force.
    pub current_refused: u64,
    /// Requests the limit would have refused in the shadow document.
    pub shadow_refused: u64,
    /// Requests refused only in the shadow document.
    pub only_shadow_refuses: u64,
    /// Requests refused only in the document in force.
    pub only_current_refuses: u64,
}

impl ShadowReport {
    const MOST_SHARED_LIMITS: usize = 1_000;

    pub(crate) fn bounded(mut self) -> Self {
        if self.limits.len() > Self::MOST_SHARED_LIMITS {
            let mut limits: Vec<(String, LimitCounts)> =
                core::mem::take(&mut self.limits).into_iter().collect();
            limits.sort_by_key(|(_, counts)| {
                core::cmp::Reverse(counts.current_refused.max(counts.shadow_refused))
            });
            limits.truncate(Self::MOST_SHARED_LIMITS);
            self.limits = limits.into_iter().collect();
        }
        self
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.current_refused += other.current_refused;
        self.shadow_refused += other.shadow_refused;
        self.only_shadow_refuses += other.only_shadow_refuses;
        self.only_current_refuses += other.only_current_refuses;
        for (name, added) in &other.limits {
            let counts = self.limit(name);
            counts.current_refused += added.current_refused;
            counts.shadow_refused += added.shadow_refused;
            counts.only_shadow_refuses += added.only_shadow_refuses;
            counts.only_current_refuses += added.only_current_refuses;
        }
    }

    fn limit(&mut self, name: &str) -> &mut LimitCounts {
        self.limits.entry(name.to_owned()).or_default()
    }

    fn note(&mut self, decided: &Decided<'_>) {
        // Skip a request without a decision, for which no limit was checked.
        let Some(decision) = decided.decision else {
            return;
        };
        let refusing = || {
            let statuses = decision.statuses().iter();
            statuses.filter(|status| status.outcome.is_refusal())
        };
        let shadow_name = |name: &'static str| name.strip_prefix(Policy::DRY_RUN_PREFIX);
        let mut would_refuse = false;
        for status in refusing() {
            let name = status.name.as_str();
            if let Some(name) = shadow_name(name) {
                would_refuse = true;
                let is_same =
                    refusing().any(|other| !other.is_shadow && other.name.as_str() == name);
                let counts = self.limit(name);
                counts.shadow_refused += 1;
                counts.only_shadow_refuses += u64::from(!is_same);
            } else if !status.is_shadow {
                let is_same =
                    refusing().any(|other| shadow_name(other.name.as_str()) == Some(name));
                let counts = self.limit(name);
                counts.current_refused += 1;
                counts.only_current_refuses += u64::from(!is_same);
            }
        }
        let is_refused = decided.reason.is_some();
        self.requests += 1;
        self.current_refused += u64::from(is_refused);
        self.shadow_refused += u64::from(would_refuse);
        self.only_shadow_refuses += u64::from(would_refuse && !is_refused);
        self.only_current_refuses += u64::from(is_refused && !would_refuse);
    }
}

impl ShadowCounts {
    /// Creates counts without a shadow document.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the listener for
    /// [`RateLimitLayer::on_decision`](tower_quota::RateLimitLayer::on_decision).
    pub fn listener(&self) -> impl Fn(&Decided<'_>) + Send + Sync + 'static {
        let running = Arc::clone(&self.running);
        move |decided| {
            if let Some(running) = &*running.load() {
                running.report().note(decided);
            }
        }
    }

    /// Returns the counts of the shadow document, if there is one.
    #[must_use]
    pub fn report(&self) -> Option<ShadowReport> {
        let running = self.running.load();
        Some(running.as_ref()?.report().clone())
    }

    pub(crate) fn follow(&self, shadow: Option<&Version>) {
        let running = self.running.load();
        let known = running.as_ref();
        let known = known.map(|running| (running.report().version, running.hash));
        let new = shadow.map(|version| (version.number, version.short_hash()));
        if known == new {
            return;
        }
        let running = new.map(|(version, hash)| {
            let report = ShadowReport {
                version,
                ..ShadowReport::default()
            };
            let report = Mutex::new(report);
            Arc::new(Running { hash, report })
        });
        self.running.store(running);
    }
}

impl fmt::Debug for ShadowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShadowCounts").field(&self.report()).finish()
    }
}
