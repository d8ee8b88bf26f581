//! The settings of a layer's responses.

use core::time::Duration;
use std::sync::Arc;

use http::Response;
use tower_quota_core::{ConfigError, Name, Store};

use super::layer::RateLimitLayer;
use crate::protocol::Protocol;
use crate::response::{
    GrpcStatus, HeaderStyle, OnRefused, Partitions, Refusal, RefusalBody, Refused, ResponseSettings,
};

impl<S: Store> RateLimitLayer<S> {
    /// Answers refused HTTP requests by this closure instead of in the [form that the client asks
    /// for](crate::Negotiated).
    ///
    /// The body is text, bytes, or a [`RefusalBody`]; with the feature `axum` the response may be one of axum. The layer
    /// adds what the closure leaves out: see [`Refusal`].
    ///
    /// ```
    /// use http::Response;
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_refused(|refused| {
    ///     let mut response = Response::new(refused.detail());
    ///     *response.status_mut() = refused.status();
    ///     response
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_refused<F, B>(self, respond: F) -> Self
    where
        F: Fn(&Refused<'_>) -> Response<B> + Send + Sync + 'static,
        B: Into<RefusalBody> + 'static,
    {
        self.refusal(OnRefused(respond))
    }

    /// Answers refused HTTP requests by this value: see [`Refusal`].
    pub fn refusal(self, refusal: impl Refusal) -> Self {
        self.responding(|settings| settings.refusal = Arc::new(refusal))
    }

    /// Answers refused gRPC calls with the status that this closure returns.
    ///
    /// It returns a [`GrpcStatus`], or with the feature `tonic` a `tonic::Status`. Unless it is called, the status is
    /// [`GrpcStatus::of`] the refusal. Which calls are answered in gRPC depends on the [protocol](Self::protocol).
    pub fn on_refused_grpc<F, G>(self, status: F) -> Self
    where
        F: Fn(&Refused<'_>) -> G + Send + Sync + 'static,
        G: Into<GrpcStatus>,
    {
        self.responding(|settings| settings.on_refused_grpc = Arc::new(move |refused| status(refused).into()))
    }

    /// Chooses which refusals are gRPC responses. The default is [`Protocol::Auto`].
    pub fn protocol(self, protocol: Protocol) -> Self {
        self.responding(|settings| settings.protocol = protocol)
    }

    /// Reports the limits to clients in these header styles.
    ///
    /// The default is [`HeaderStyle::Draft11`] and [`HeaderStyle::XRateLimit`] with [`Reset::Epoch`](crate::Reset::Epoch)
    /// together. With none, admitted responses have no fields; the `Retry-After` of refusals stays.
    ///
    /// ```
    /// use tower_quota::{HeaderStyle, MemoryStore, Policy, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
    ///     .headers([HeaderStyle::Draft11, HeaderStyle::GitHub, HeaderStyle::PerWindow]);
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

    /// Is [`RateLimitLayer::headers`] for styles that are not written in code.
    ///
    /// # Errors
    /// [`ConfigError::SharedField`] when two of them write the same field.
    pub fn try_headers(self, styles: impl IntoIterator<Item = HeaderStyle>) -> Result<Self, ConfigError> {
        let styles: Vec<HeaderStyle> = styles.into_iter().collect();
        HeaderStyle::check(&styles)?;
        Ok(self.responding(|settings| settings.styles = styles))
    }

    /// Shows clients the partition of each limit that counted them, as `pk` in the fields of [`HeaderStyle::Draft11`].
    ///
    /// It is 12 bytes of a hash of the limit's key, keyed by this secret: a client that speaks for several can tell them
    /// apart, and the key cannot be read out of it without the secret, which should be 16 random bytes or more, and the
    /// same in all instances.
    pub fn partition_keys(self, secret: impl AsRef<[u8]>) -> Self {
        self.responding(|settings| settings.partitions = Some(Partitions::new(secret.as_ref())))
    }

    /// Adds a random time, at most this long, to the wait of each refused client.
    ///
    /// Clients that were refused together then do not come back together. The wait is never shorter than it must be, and
    /// the same throughout a response: `Retry-After`, the sentence, the draft fields, gRPC's `RetryInfo` and push-back.
    /// The [`Decision`](crate::Decision) keeps the exact time. The default is none.
    pub fn retry_jitter(self, most: Duration) -> Self {
        self.responding(|settings| settings.most_jitter = most)
    }

    /// Names the shadow limits that would have refused a request in `X-RateLimit-Shadow`, a list of strings.
    ///
    /// Clients see nothing of such limits otherwise.
    pub fn shadow_header(self) -> Self {
        self.responding(|settings| settings.tells_shadows = true)
    }

    /// Names the service that refuses to gRPC clients, such as `api.example.com`: the domain of `ErrorInfo`.
    ///
    /// The default is `tower-quota`.
    pub fn grpc_domain(self, domain: impl Into<Name>) -> Self {
        self.responding(|settings| settings.grpc_domain = domain.into())
    }

    fn responding(self, change: impl FnOnce(&mut ResponseSettings)) -> Self {
        self.with(|settings| change(&mut settings.responses))
    }
}
