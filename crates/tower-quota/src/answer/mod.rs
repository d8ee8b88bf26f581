//! What clients are told: header fields, and the answers to refused requests.

mod accept;
mod answers;
mod fields;
mod grpc;
mod negotiated;
mod overdrawn;
mod particulars;
mod partition;
mod problem;
mod refusal;
mod seconds;
mod shadow;
mod sheet;
mod shim;
mod structured;
mod style;
mod telling;
#[cfg(test)]
mod tests;
mod text;
mod usual;

pub(crate) type RefusalBody = bytes::Bytes;
pub use self::negotiated::Negotiated;
pub(crate) use self::partition::{PartitionKey, Partitions};
pub use self::problem::ProblemDetails;
pub use self::refusal::{Reason, Refusal, Refused};
pub(crate) use self::shim::{Report, ResponseSettings, Responses};
pub use self::style::{EXPOSED_HEADERS, HeaderStyle, Reset};
