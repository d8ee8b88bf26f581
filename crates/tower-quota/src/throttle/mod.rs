//! Throttling of any tower service: clients of other parties' APIs, workers, queues.
//!
//! [`ThrottleLayer`] puts a [`Limiter`](crate::Limiter) around a `Service<Request>` of any request. A request waits for
//! its turn, or fails with a [`ThrottleError`] that says when to try again. So a refusal of this layer is never
//! confused with one of the remote.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use tower_quota::{Limiter, MemoryStore, Quota, ThrottleError, ThrottleLayer};
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
//! 1. When it is called, it takes its turn from the limiter. If the turn is now, the inner service is called at once.
//! 2. Otherwise it waits, at most [`max_wait`](ThrottleLayer::max_wait), and with at most
//!    [`max_waiting`](ThrottleLayer::max_waiting) requests at once. It does not hold the inner service's readiness in
//!    the meantime: its clone of the service is polled ready after the wait. A request that may not wait fails.
//! 3. If it is dropped before the inner service is called, its turn is refunded.
//! 4. A response may push the key back, see [`heed`](ThrottleLayer::heed), because the remote knows its own limits.
//!
//! # Customised: pushbacks of the remote
//!
//! With [`remote_headers`], `Retry-After` and spent `RateLimit` fields of a response hold back the next requests of its
//! key until the remote accepts them. They wait, or fail with the time if it is longer than they may wait:
//!
//! ```
//! use std::time::Duration;
//! use tower_quota::throttle::remote_headers;
//! use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
//!
//! let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_second(50));
//! let throttle = ThrottleLayer::global(limiter)
//!     .cost_with(|request: &http::Request<Vec<u8>>| if request.uri().path() == "/search" { 5 } else { 1 })
//!     .heed(remote_headers())
//!     .max_pushback(Duration::from_secs(60));
//! # let _ = throttle;
//! ```
//!
//! # Caveats
//!
//! * **Pushbacks are bounded.** A remote cannot block a key for longer than
//!   [`max_pushback`](ThrottleLayer::max_pushback) from each response.
//! * **Pushbacks are local.** They are kept in this process, by the services of one layer and its clones. Processes that
//!   share a limit in Redis do not share pushbacks. At most 10,000 keys are kept; of more, those that end first are
//!   dropped.
//! * **Windows have no turns** to wait for: their requests fail at once. Use a bucket.
//! * **Waiting needs a tokio runtime** with a timer, and a service that is `Clone`.

mod budget;
mod error;
mod future;
mod gate;
mod layer;
mod pushbacks;
mod reader;
mod remote;
mod retries;
mod send;
mod service;

pub use self::error::{ThrottleError, Throttled};
pub use self::future::ThrottleFuture;
pub use self::gate::StoreFailure;
pub use self::layer::ThrottleLayer;
pub use self::reader::{Constant, Reader};
pub use self::remote::{
    IdempotentRequests, RemoteHeaders, RemoteRefusals, pushback, refusal, remote_headers,
};
pub use self::retries::{NoCopies, NoRetries, Retries};
pub use self::service::Throttle;
