//! What clients are told: header fields, and the answers to refused requests.

mod grpc;
mod headers;
mod problem;
mod refusal;
mod structured;

pub use self::headers::EXPOSED_HEADERS;
pub(crate) use self::headers::{Fields, whole_seconds, write_degraded, write_local, write_uncounted};
pub use self::problem::ProblemDetails;
pub use self::refusal::{Reason, Refusal, Refused};

pub(crate) use self::grpc::GrpcType;
