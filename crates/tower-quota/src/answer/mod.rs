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
mod structured;
mod style;
mod telling;
#[cfg(test)]
mod tests;
mod text;
mod usual;

pub(crate) use self::answers::Answers;
pub(crate) use self::fields::Fields;
pub use self::negotiated::Negotiated;
pub(crate) use self::particulars::Particulars;
pub(crate) use self::partition::Partitions;
pub use self::problem::ProblemDetails;
pub use self::refusal::{Reason, Refusal, Refused};
pub use self::style::{EXPOSED_HEADERS, HeaderStyle, Reset};
pub(crate) use self::usual::{Brief, Denial};
