use core::time::Duration;
use std::sync::Arc;

use tower_layer::Layer;
use tower_quota::key::KeyExtractor;
use tower_quota::response::IntoRefusal;
use tower_quota::when::Condition;
use tower_quota::{Protocol, Refused, RequestHead};

use super::service::ShedService;
use crate::error::ConfigError;
use crate::gate::Gate;
use crate::handle::ShedHandle;
use crate::limit::LimitSettings;
use crate::priority::Priority;
use crate::settings::{Hold, Settings};

const HOUR: Duration = Duration::from_secs(3_600);

/// Limits the requests in progress to what your service can answer well, and refuses other requests early.
///
/// Clones share the limit and the places. A changed option begins with new places, so set all options first.
///
/// ```
/// use std::time::Duration;
/// use tower_quota::{key, when};
/// use tower_quota_shed::{Priority, ShedLayer};
///
/// let layer = ShedLayer::new()
///     .exempt(when::path("/events"))
///     .priority(Priority::Critical.when(when::path("/checkout")))
///     .fair_by(key::header("x-tenant"))
///     .until_end(when::path("/reports/{*file}"))
///     .retry_after(Duration::from_secs(2), Duration::from_secs(30))?;
/// # let _ = layer;
/// # Ok::<(), tower_quota_shed::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ShedLayer {
    gate: Arc<Gate>,
}

impl Default for ShedLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl ShedLayer {
    /// Makes a layer that finds the limit by itself, with one class and without shares.
    pub fn new() -> Self {
        Self {
            gate: Arc::new(Gate::new(Settings::default())),
        }
    }

    /// Sets the range of the limit, or a fixed limit. By default the layer finds the limit by itself.
    ///
    /// # Errors
    /// Returns an error if the range is empty or includes 0.
    pub fn limit(self, limit: LimitSettings) -> Result<Self, ConfigError> {
        limit.check()?;
        Ok(self.with(|settings| settings.limit = limit))
    }

    /// Adds a rule for the [class](Priority) of requests. The first rule with an answer decides, otherwise the class is
    /// [`Normal`](Priority::Normal).
    ///
    /// Pass [`Priority::when`], [`Priority::from_header`], or a closure that returns a class or an option of a class.
    pub fn priority<F, P>(self, rule: F) -> Self
    where
        F: Fn(&RequestHead<'_>) -> P + Send + Sync + 'static,
        P: Into<Option<Priority>>,
    {
        let rule = move |head: &RequestHead<'_>| rule(head).into();
        self.with(|settings| settings.priorities.push(Arc::new(rule)))
    }

    /// Under pressure, refuses keys with more than their share of the places before the other keys of the same class.
    ///
    /// Use an authenticated key. All keys that sent one request have one share, together with the requests without a key.
    /// A client that makes up keys and sends each key twice therefore gets many shares, like a client with many valid keys.
    pub fn fair_by(self, key: impl KeyExtractor) -> Self {
        self.with(|settings| settings.key = Some(Arc::new(key)))
    }

    /// Leaves these requests out. They take no place and are never refused.
    ///
    /// Leave out long polls, event streams and WebSockets. To limit long requests, use
    /// [`Quota::concurrent`](tower_quota::Quota::concurrent). The layer leaves out health checks at `/healthz`, `/livez`,
    /// `/readyz`, and of the gRPC service `grpc.health.v1.Health`. Leave out the health checks at your other paths.
    pub fn exempt(self, condition: impl Condition) -> Self {
        self.hold(Hold::Nothing, condition)
    }

    /// Counts these requests within the limit until the body has ended, however long the body is. By default, a body of
    /// more than 0.2 s does not count within the limit.
    ///
    /// Use `until_end` if your service works while it sends the body. Slow readers then hold the places of other clients.
    pub fn until_end(self, condition: impl Condition) -> Self {
        self.hold(Hold::UntilEnd, condition)
    }

    /// Lets some requests wait for a place, the newest of the best class first. By default no request waits.
    ///
    /// A full queue refuses the oldest request. Choose a wait far below the timeouts of your clients.
    ///
    /// # Errors
    /// Returns an error unless 1 to 10,000 requests may wait for 1 ms to 60 s.
    pub fn queue(self, places: usize, max_wait: Duration) -> Result<Self, ConfigError> {
        let is_valid =
            (1..=10_000).contains(&places) && (1..=60_000).contains(&max_wait.as_millis());
        let queue = (places, max_wait);
        let error = ConfigError::Queue(places, max_wait);
        is_valid
            .then(|| self.with(|settings| settings.queue = queue))
            .ok_or(error)
    }

    /// Sets the range of `Retry-After`. Defaults to 1 s and 60 s.
    ///
    /// The wait grows with the number of requests for each answer, and is spread.
    ///
    /// # Errors
    /// Returns an error unless 1 s <= `least` <= `most` <= 1 hour.
    pub fn retry_after(self, least: Duration, most: Duration) -> Result<Self, ConfigError> {
        let is_valid = 1 <= least.as_secs() && least <= most && most <= HOUR;
        let error = ConfigError::RetryAfter(least, most);
        is_valid
            .then(|| self.with(|settings| settings.retry = (least, most)))
            .ok_or(error)
    }

    /// Sets which refusals are gRPC responses. Defaults to [`Protocol::Auto`].
    pub fn protocol(self, protocol: Protocol) -> Self {
        self.with(|settings| settings.protocol = protocol)
    }

    /// Answers refused HTTP requests by this closure, which a
    /// [`RateLimitLayer`](tower_quota::RateLimitLayer::on_refused) can use too. Defaults to problem details.
    pub fn on_refused<F, R>(self, respond: F) -> Self
    where
        F: Fn(&Refused<'_>) -> R + Send + Sync + 'static,
        R: IntoRefusal,
    {
        let respond = move |refused: &Refused<'_>| respond(refused).into_refusal();
        self.with(|settings| settings.respond = Arc::new(respond))
    }

    /// Returns a handle that shows the figures of this layer.
    #[must_use]
    pub fn handle(&self) -> ShedHandle {
        ShedHandle(Arc::clone(&self.gate))
    }

    fn hold(self, hold: Hold, condition: impl Condition) -> Self {
        let rule = move |head: &RequestHead<'_>| condition(head).then_some(hold);
        self.with(|settings| settings.holds.push(Arc::new(rule)))
    }

    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.gate.settings.clone();
        change(&mut settings);
        Self {
            gate: Arc::new(Gate::new(settings)),
        }
    }
}

/// The service must be `Clone` and `Send`, and the request body `Send`. Put other services behind tower's `Buffer`.
impl<Svc: Clone> Layer<Svc> for ShedLayer {
    type Service = ShedService<Svc>;

    fn layer(&self, inner: Svc) -> Self::Service {
        ShedService::new(inner, Arc::clone(&self.gate))
    }
}
