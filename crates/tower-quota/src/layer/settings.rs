//! What a layer can be told about its answers.

use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{ConfigError, Name, Store};

use super::layer::RateLimitLayer;
use crate::answer::{HeaderStyle, Partitions, Refusal, ResponseSettings};

impl<S: Store> RateLimitLayer<S> {
    /// Answers refused HTTP requests this way instead of in the [form that the client asks for](crate::Negotiated).
    pub fn refusal(self, refusal: impl Refusal) -> Self {
        self.responding(|responses| responses.refusal = Some(Arc::new(refusal)))
    }

    /// Tells clients how they stand in these styles, instead of [`HeaderStyle::Draft11`] alone. None at all tell nothing; a
    /// refusal's `Retry-After` stays.
    ///
    /// ```
    /// use tower_quota::{HeaderStyle, MemoryStore, Policy, RateLimitLayer, Reset};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
    ///     .headers([HeaderStyle::Draft11, HeaderStyle::XRateLimit(Reset::Epoch), HeaderStyle::PerWindow]);
    /// # let _ = layer;
    /// ```
    ///
    /// # Panics
    /// When two of them write the same field; see [`RateLimitLayer::try_headers`].
    #[track_caller]
    pub fn headers(self, styles: impl IntoIterator<Item = HeaderStyle>) -> Self {
        match self.try_headers(styles) {
            Ok(layer) => layer,
            #[expect(clippy::panic, reason = "documented: a layer written in code fails at start")]
            Err(error) => panic!("{error}"),
        }
    }

    /// [`RateLimitLayer::headers`] for styles that were not written in code.
    ///
    /// # Errors
    /// [`ConfigError::SharedField`] when two of them write the same field, as [`HeaderStyle`] says.
    pub fn try_headers(self, styles: impl IntoIterator<Item = HeaderStyle>) -> Result<Self, ConfigError> {
        let styles: Vec<HeaderStyle> = styles.into_iter().collect();
        HeaderStyle::check(&styles)?;
        Ok(self.responding(|responses| responses.styles = styles))
    }

    /// Tells clients whose counter each limit reads, as `pk` in the fields of [`HeaderStyle::Draft11`], so that those who
    /// speak for several can tell them apart: 12 bytes of a hash of the limit's key, keyed by this secret. The key cannot
    /// be read out of it by those who do not know the secret, which should be 16 random bytes or more, and the same in
    /// all instances. Off unless called; each request then has its keys read twice.
    pub fn partition_keys(self, secret: impl AsRef<[u8]>) -> Self {
        self.responding(|responses| responses.partitions = Some(Partitions::new(secret.as_ref())))
    }

    /// Tells each refused client a time to retry that is up to this much later than it must be, at random: clients that
    /// were refused together do not come back together. It is never earlier, and the same throughout an answer:
    /// `Retry-After`, the sentence, the draft fields, gRPC's `RetryInfo` and push-back. The
    /// [`Decision`](crate::Decision) keeps the exact time. None unless called.
    pub fn retry_jitter(self, most: Duration) -> Self {
        self.responding(|responses| responses.most_jitter = most)
    }

    /// Names the shadow limits that would have refused a request in `X-RateLimit-Shadow`: a list of strings, left out where
    /// there are none. Clients are told nothing of such limits otherwise, and not even this unless called.
    pub fn shadow_header(self) -> Self {
        self.responding(|responses| responses.tells_shadows = true)
    }

    /// Who refuses, for gRPC clients: the domain in the `ErrorInfo` of a refusal, such as `api.example.com`. It is
    /// `tower-quota` unless called.
    pub fn grpc_domain(self, domain: impl Into<Name>) -> Self {
        self.responding(|responses| responses.grpc_domain = domain.into())
    }

    /// Changes how the layer responds.
    fn responding(self, change: impl FnOnce(&mut ResponseSettings)) -> Self {
        self.with(|settings| change(&mut settings.responses))
    }
}
