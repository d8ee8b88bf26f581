//! The decisions of the gRPC service.

use core::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tonic::Status;
use tower_quota_core::{RefusalCache, Store};

use super::config::EnvoyConfig;
use super::counts::NamedCounts;
use super::decide::decide;
use super::options::EnvoyOptions;
use crate::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

/// The decisions of `envoy.service.ratelimit.v3.RateLimitService`, over any store.
///
/// Clones share the configuration.
///
/// ```
/// use tower_quota_core::MemoryStore;
/// use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
///
/// let text = "
/// domain: shop
/// descriptors:
///   - key: user
///     rate_limit: { unit: minute, requests_per_unit: 100 }
/// ";
/// let config = EnvoyConfig::parse([("shop.yaml", text)], false)?;
/// let door = EnvoyDoor::new(config, MemoryStore::new(), EnvoyOptions::default());
/// # let _ = door;
/// # Ok::<(), tower_quota_server::envoy::Problems>(())
/// ```
pub struct EnvoyDoor<S>(Arc<Inner<S>>);

struct Inner<S> {
    config: ArcSwap<EnvoyConfig>,
    store: RefusalCache<S>,
    options: EnvoyOptions,
    named: NamedCounts,
}

impl<S: Store> EnvoyDoor<S> {
    /// Creates the service, with a refusal cache of its own.
    pub fn new(config: EnvoyConfig, store: S, options: EnvoyOptions) -> Self {
        Self::with_cache(config, RefusalCache::new(store), options)
    }

    /// Works like [`new`](Self::new), with your refusal cache.
    pub fn with_cache(config: EnvoyConfig, store: RefusalCache<S>, options: EnvoyOptions) -> Self {
        Self(Arc::new(Inner {
            config: ArcSwap::from_pointee(config),
            store,
            options,
            named: NamedCounts::default(),
        }))
    }

    /// Replaces the limits. Running calls keep the limits that they began with.
    pub fn replace(&self, config: EnvoyConfig) {
        self.0.config.store(Arc::new(config));
    }

    /// Decides a request.
    ///
    /// # Errors
    /// Returns a status for a request without domain or descriptors, for a request with more than 32 limits or 1,024
    /// descriptors, and for a failed store if a limit has `on_store_failure: error`.
    pub async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let Inner {
            config,
            store,
            options,
            named,
        } = &*self.0;
        // A call may wait long, so it does not keep a place in the list of the swap.
        let config = config.load_full();
        decide(&config, options, named, store, request).await
    }
}

impl<S> Clone for EnvoyDoor<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for EnvoyDoor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvoyDoor")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}
