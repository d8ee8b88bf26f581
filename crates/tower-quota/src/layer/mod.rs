//! The middleware: decides before the inner service is called, writes headers on what it answers.

mod answer;
mod answering;
mod before;
mod body;
mod future;
mod gate;
#[expect(clippy::module_inception, reason = "a middleware's folder holds its layer, service, future and body")]
mod layer;
mod local;
mod meter;
mod pending;
mod refusing;
mod report;
mod service;
mod sick;
mod till;
mod turn;
mod verdict;

pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::layer::RateLimitLayer;
pub use self::service::RateLimit;
