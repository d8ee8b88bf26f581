//! The middleware: [`ShedLayer`], its service, and the response.

mod arrival;
mod body;
mod future;
#[expect(
    clippy::module_inception,
    reason = "the folder holds the middleware, the file the type"
)]
mod layer;
mod outcome;
mod service;

pub(crate) use self::arrival::problem_details;
pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::layer::ShedLayer;
pub use self::service::ShedService;
