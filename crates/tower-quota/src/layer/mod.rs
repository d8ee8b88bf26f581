//! The middleware: [`RateLimitLayer`], its service, and the pipeline of a request.
//!
//! | file | content |
//! |---|---|
//! | `service` | the arrival of a request |
//! | `pipeline` | lists, keys, charges and decisions |
//! | `stage`, `turn` | waits for look-ups, the store, and the turn |
//! | `outage` | decisions without the store |
//! | `refuse` | refusals |
//! | `admission` | admitted requests and their responses |
//! | `future`, `body` | the end of a wait, and the response |

mod admission;
mod body;
mod future;
#[expect(
    clippy::module_inception,
    reason = "the folder holds the pipeline, the file the type"
)]
mod layer;
mod outage;
mod pipeline;
mod refuse;
mod service;
mod settings;
mod shared;
mod stage;
mod turn;

pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::layer::RateLimitLayer;
pub use self::refuse::CloseConnection;
pub use self::service::RateLimit;
pub(crate) use self::settings::{FindClient, Settings};
pub(crate) use self::shared::LayerState;
