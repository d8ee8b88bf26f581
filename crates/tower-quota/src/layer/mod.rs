//! The middleware: [`RateLimitLayer`], the service it makes, and the pipeline of a request.
//!
//! 1. `service`: the request arrives, and passes the steps of the pipeline that need no wait.
//! 2. `pipeline`: lists, look-ups, keys and charges, the store's decision and its result. The same code runs for
//!    immediate and for later answers. Its result is a `Step`.
//! 3. `stage`: the waits between steps: for look-ups, the store, the turn.
//! 4. `refuse`: all kinds of refusals, and the decisions if the store fails.
//! 5. `admission`: an admitted request until it is forwarded, and the remaining work on its response.
//! 6. `future` polls stages, the inner service's readiness, and its response; `body` is the response's body.

mod admission;
mod body;
mod future;
#[expect(
    clippy::module_inception,
    reason = "the folder holds the pipeline, the file the type"
)]
mod layer;
mod pipeline;
mod refuse;
mod service;
mod settings;
mod shared;
mod stage;

pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::layer::RateLimitLayer;
pub use self::refuse::CloseConnection;
pub use self::service::RateLimit;
pub(crate) use self::settings::Settings;
pub(crate) use self::shared::Shared;
