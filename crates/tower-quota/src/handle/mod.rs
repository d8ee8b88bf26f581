//! Operations on a running layer.

mod blocks;
mod client;
mod counters;
mod error;
mod observed;

use std::sync::Arc;

use tower_quota_core::{BoxStore, Name, Store};

pub use self::client::ClientKey;
pub use self::error::HandleError;
use crate::layer::{LayerState, RateLimitLayer};
use crate::policy::Policy;
use crate::traced::KeySeed;

/// Operates a running layer. Get a handle from [`RateLimitLayer::handle`].
///
/// Name a client by a limit and a [`ClientKey`], such as an address. Operations fail with [`HandleError`] if the limit
/// is unknown or cannot read the client.
///
/// ```
/// use std::time::Duration;
/// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
///
/// # async fn operate() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::new().limit(Limit::new("login", Quota::per_minute(5)).by(key::client_ip()));
/// let layer = RateLimitLayer::new(MemoryStore::new(), policy);
/// let handle = layer.handle();
///
/// let status = handle.peek("login", "203.0.113.7").await?;
/// println!("{} of {} left", status.remaining(), status.limit);
/// handle.reset("login", "203.0.113.7").await?;
/// handle.block("login", "198.51.100.9", Duration::from_secs(600))?;
/// # Ok(())
/// # }
/// ```
///
/// In a handler, name the client by the request:
///
/// ```
/// use axum::extract::State;
/// use http::request::Parts;
/// use tower_quota::{MemoryStore, RateLimitHandle};
///
/// async fn logged_in(State(limits): State<RateLimitHandle<MemoryStore>>, head: Parts) {
///     if let Err(error) = limits.reset("login", &head).await {
///         eprintln!("{error}");
///     }
/// }
/// ```
#[derive(Debug)]
pub struct RateLimitHandle<S> {
    shared: Arc<LayerState<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// Returns a handle that operates this layer, and the clones that share its settings.
    #[must_use]
    pub fn handle(&self) -> RateLimitHandle<S> {
        self.shared.use_now();
        RateLimitHandle {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Store> RateLimitHandle<S> {
    /// Returns a handle on the same layer with a type that does not name the store.
    #[must_use]
    pub fn boxed(&self) -> RateLimitHandle<BoxStore> {
        RateLimitHandle {
            shared: Arc::new(self.shared.boxed()),
        }
    }

    /// Returns the names of the policy's limits.
    #[must_use]
    pub fn limits(&self) -> Vec<Name> {
        self.shared
            .rules()
            .plan
            .limits()
            .map(|limit| limit.name)
            .collect()
    }

    /// Returns the limits that no request has had so far, for example because of a typo in a [path](crate::when::path()).
    ///
    /// The layer looks at the first 10,000 requests after you set the policy. Limits of rare requests may stay in the
    /// list.
    #[must_use]
    pub fn unmet_limits(&self) -> Vec<Name> {
        let rules = self.shared.rules();
        let names: Vec<Name> = rules.plan.limits().map(|limit| limit.name).collect();
        let unmet = rules.watch.unmet();
        unmet
            .filter_map(|position| names.get(position).copied())
            .collect()
    }

    /// Replaces the policy. The old policy finishes the requests that have begun.
    ///
    /// Limits keep their counters by name. A raised window takes effect at once, and a bucket refills at the new rate.
    /// To release a client now, [`reset`](Self::reset) or [`grant`](Self::grant).
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.replace_policy(policy);
    }

    /// Returns the number of requests in the queue of this process.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue.waiting()
    }

    /// Refuses queued requests and requests that would queue. Call this method at shutdown.
    ///
    /// The layer refunds the turns, and answers as for a full queue.
    pub fn close_queue(&self) {
        self.shared.queue.close();
    }

    /// Sets the secret for the hashes of keys in events and spans, as in
    /// [`trace_store_calls`](RateLimitLayer::trace_store_calls).
    pub fn hash_keys_with(&self, key_seed: [u8; 16]) {
        self.shared
            .change(|settings| settings.key_seed = KeySeed::chosen(key_seed));
    }

    /// Sets the secret like [`hash_keys_with`](Self::hash_keys_with), unless you set another one before.
    pub fn hash_keys_by_default(&self, key_seed: [u8; 16]) {
        self.shared.change(|settings| {
            if settings.key_seed.is_default {
                settings.key_seed.bytes = key_seed;
            }
        });
    }

    /// Returns the secret for the hashes of keys in events and spans. The default is random.
    #[must_use]
    pub fn key_seed(&self) -> [u8; 16] {
        self.shared.rules().settings.key_seed.bytes
    }
}

impl<S> Clone for RateLimitHandle<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}
