//! Throttling of any tower service: clients of other parties' APIs, workers, queues.
//!
//! [`ThrottleLayer`] puts a [`Limiter`](crate::Limiter) around a `Service<Request>` of any request. A request waits for
//! its turn, or fails with a [`ThrottleError`] that says when to try again. So a refusal made here is never taken for
//! one of the remote.
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
//! // Each tenant sends 10 mails a second, 20 at once, and waits up to 5 seconds for a turn.
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
//! 1. Called, it takes its turn from the limiter. If that is now, the inner service is called at once.
//! 2. Otherwise it waits, at most as long as [`max_wait`](ThrottleLayer::max_wait) says, and among at most
//!    [`max_waiting`](ThrottleLayer::max_waiting) others. It does not keep the inner service's readiness meanwhile: its
//!    clone of the service is polled ready after the wait.
//! 3. Dropped before the inner service is called, it gives its turn back.
//! 4. A response may push the key back, see [`heed`](ThrottleLayer::heed): the remote knows its limits better.
//!
//! # Heeding the remote
//!
//! With [`remote_headers`], `Retry-After` and spent `RateLimit` fields of a response hold back the next requests of its
//! key until the remote wants them. They wait, or fail with the time if that is longer than they may wait. A remote
//! cannot block a key for longer than [`max_pushback`](ThrottleLayer::max_pushback) from each response.
//!
//! Pushbacks are kept in this process, by the services of one layer and its clones. Processes that share a budget in
//! Redis do not share them: each learns from a response of its own. They hold for at most 10,000 keys at once; of more,
//! those that end first are dropped.

mod error;
mod future;
mod gate;
mod layer;
mod pushbacks;
mod reader;
mod remote;
mod service;

pub use self::error::{ThrottleError, Throttled};
pub use self::future::ThrottleFuture;
pub use self::gate::StoreFailure;
pub use self::layer::ThrottleLayer;
pub use self::reader::{Constant, Reader};
pub use self::remote::{RemoteHeaders, pushback, remote_headers};
pub use self::service::Throttle;
