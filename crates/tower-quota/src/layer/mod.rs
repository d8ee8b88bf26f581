//! The middleware: [`RateLimitLayer`], the service it makes, and what happens to each request.
//!
//! 1. `service`: the request comes in, and goes through the pipeline as far as it can without waiting.
//! 2. `pipeline`: lists, look-ups, keys and charges, the store's decision, what it means. One interpreter, whether the
//!    answer is there at once or comes later. Its result is a `Step`.
//! 3. `stage`: what a request waits for between steps: look-ups, the store, its turn.
//! 4. `refuse`: refusals of every kind, and what limits do when the store fails.
//! 5. `admission`: an admitted request until it is forwarded, and what is left to do with its response.
//! 6. `future` polls stages, the inner service's readiness, and its response; `body` is the response's body.

mod admission;
mod body;
mod future;
#[expect(clippy::module_inception, reason = "the folder holds the pipeline, the file the type")]
mod layer;
mod pipeline;
mod refuse;
mod service;
mod shared;
mod stage;

pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::layer::RateLimitLayer;
pub use self::service::RateLimit;
pub(crate) use self::shared::Shared;
pub use self::stage::StoreTimeout;
