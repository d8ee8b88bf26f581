//! Throttling of any tower service, like API clients and workers.
//!
//! Put a [`Limiter`](crate::Limiter) around your service with [`ThrottleLayer`]. A [`ThrottleError`] differs from the
//! remote's refusals.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer, throttle::ThrottleError};
//!
//! struct Mail {
//!     tenant: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Each tenant may send 10 mails a second and 20 at once. A mail waits up to 5 seconds for its turn.
//! let limiter = Limiter::new(MemoryStore::new(), "mails", Quota::per_second(10).burst(20));
//! let throttle = ThrottleLayer::new(limiter, |mail: &Mail| mail.tenant.clone()).max_wait(Duration::from_secs(5));
//!
//! let send = service_fn(async |mail: Mail| Ok::<_, Infallible>(format!("sent for {}", mail.tenant)));
//! let mut send = ServiceBuilder::new().layer(throttle).service(send);
//!
//! match send.ready().await?.call(Mail { tenant: "ann".into() }).await {
//!     Ok(sent) => assert_eq!(sent, "sent for ann"),
//!     Err(ThrottleError::Throttled(refusal)) => println!("not sent: try again in {:?}", refusal.retry_after()),
//!     Err(error) => println!("{error}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What happens to a request
//!
//! 1. `call` takes a turn. If the turn is now, the layer calls the inner service.
//! 2. Otherwise the request waits within [`max_wait`](ThrottleLayer::max_wait) and
//!    [`max_waiting`](ThrottleLayer::max_waiting), or fails. If you drop the request, the turn is refunded.
//! 3. The response may [hold back](ThrottleLayer::pushback) the key's next requests. A turn that falls due meanwhile is
//!    lost, and the request takes another turn afterwards, so the remote never gets more than your rate.
//! 4. The layer may [retry](ThrottleLayer::retries) refused requests.
//!
//! # Customised: waits and retries for a remote
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use tower_quota::throttle::{Retries, remote_headers};
//! use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
//!
//! let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_second(50));
//! let throttle = ThrottleLayer::global(limiter)
//!     .cost_with(|request: &Request<Full<Bytes>>| if request.uri().path() == "/search" { 5 } else { 1 })
//!     // `Retry-After` and spent `RateLimit` fields hold back the next requests of the key.
//!     .pushback(remote_headers)
//!     .max_pushback(Duration::from_secs(60))
//!     // The remote's refusals are retried, within a budget.
//!     .retries(Retries::http());
//! # let _: ThrottleLayer<_, _, http::Response<String>> = throttle;
//! ```
//!
//! # Caveats
//!
//! * **Pushbacks are local** to a layer and all clones, even with Redis. The layer keeps 10,000 keys up to
//!   [`max_pushback`](ThrottleLayer::max_pushback), and drops the earliest ends.
//! * **Windows have no turns**, so requests fail at once. Use a bucket.
//! * **A concurrency limit** holds the unit of a request until the future of the response ends. A request without a
//!   unit fails at once, and a waiting request already holds its unit. The layer accepts any type of response, so it does
//!   not know bodies. To count until the body of a response ends, put the layer around a service that reads the body.
//! * **Waiting needs a tokio runtime** with a timer.
//! * **The inner service must be `Clone` and `Send`**, with `Send` requests, responses and futures.

mod budget;
mod error;
mod failures;
mod gate;
mod layer;
mod pushbacks;
mod remote;
mod retries;
mod send;
mod service;

pub use self::error::{ThrottleError, Throttled};
pub use self::gate::StoreFailure;
pub use self::layer::ThrottleLayer;
pub use self::remote::{pushback, refusal, remote_headers, remote_refusals};
pub use self::retries::Retries;
pub use self::service::{Throttle, ThrottleFuture};
