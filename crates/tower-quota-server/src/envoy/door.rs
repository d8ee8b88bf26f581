//! The gRPC service.

use core::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tonic::{Request, Response, Status};
use tower_quota_core::Store;

use super::config::EnvoyConfig;
use super::decide::decide;
use super::options::EnvoyOptions;
use crate::messages::ratelimit::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use crate::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

/// The service `envoy.service.ratelimit.v3.RateLimitService`, over any store.
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
/// let router = tonic::transport::Server::builder().add_service(door.service());
/// # let _ = router;
/// # Ok::<(), tower_quota_server::envoy::Problems>(())
/// ```
pub struct EnvoyDoor<S>(Arc<Inner<S>>);

struct Inner<S> {
    config: RwLock<Arc<EnvoyConfig>>,
    store: S,
    options: EnvoyOptions,
}

impl<S: Store> EnvoyDoor<S> {
    /// Creates the service.
    pub fn new(config: EnvoyConfig, store: S, options: EnvoyOptions) -> Self {
        Self(Arc::new(Inner {
            config: RwLock::new(Arc::new(config)),
            store,
            options,
        }))
    }

    /// Replaces the limits. Running calls keep the limits that they began with.
    pub fn replace(&self, config: EnvoyConfig) {
        let mut current = self
            .0
            .config
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(config);
    }

    /// Returns the service for a tonic server, which refuses requests beyond the [largest](EnvoyOptions).
    pub fn service(&self) -> RateLimitServiceServer<Self> {
        RateLimitServiceServer::new(self.clone())
            .max_decoding_message_size(self.0.options.largest_request)
    }

    /// Decides a request.
    ///
    /// # Errors
    /// Returns a status for a request without domain or descriptors, for a request with more than 32 limits, and for a
    /// failed store if a limit has `on_store_failure: error`.
    pub async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let inner = &*self.0;
        let config = Arc::clone(&inner.config.read().unwrap_or_else(PoisonError::into_inner));
        decide(&config, &inner.options, &inner.store, request).await
    }
}

#[tonic::async_trait]
impl<S: Store> RateLimitService for EnvoyDoor<S> {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        self.decide(request.get_ref()).await.map(Response::new)
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
