//! Responses: the header fields of admitted requests, and the answers to refused ones.
//!
//! A header style reads a [`HeaderReport`] and writes its fields: see [`WriteHeaders`] for a style of your own. A refused
//! request is a [`Refused`]. A [`Refusal`] answers it, or a [`GrpcStatus`] if the [protocol](crate::Protocol) is gRPC.
//!
//! | file | holds |
//! |---|---|
//! | `responses` | the writer and its settings |
//! | `report` | the report that the pipeline passes on; partition keys |
//! | `write_headers` | the trait of header styles |
//! | `header_report`, `limit_report` | the report as header styles read it |
//! | `limits` | the limits of a policy, found by name |
//! | `style` | the choice of styles; `draft11`, `draft7` and `x_ratelimit` implement them |
//! | `reason`, `refused` | the reason of a refusal and its status; its message and wait |
//! | `refusal`, `into_refusal`, `refusal_body` | the trait that answers, what closures return, and the body |
//! | `problem`, `grpc` | the built-in refusals |
//! | `text` | numbers, strings and lists in header fields |

mod draft11;
mod draft7;
mod grpc;
mod header_report;
mod into_refusal;
mod limit_report;
mod limits;
mod problem;
mod reason;
mod refusal;
mod refusal_body;
mod refused;
mod report;
mod responses;
mod style;
mod text;
mod write_headers;
mod x_ratelimit;

pub use self::grpc::GrpcStatus;
pub use self::header_report::HeaderReport;
pub use self::into_refusal::IntoRefusal;
pub use self::limit_report::LimitReport;
pub use self::problem::ProblemDetails;
pub use self::reason::Reason;
pub(crate) use self::refusal::OnRefused;
pub use self::refusal::Refusal;
pub use self::refusal_body::RefusalBody;
pub use self::refused::Refused;
pub(crate) use self::report::{Partitions, Report};
pub(crate) use self::responses::{ResponseSettings, Responses};
pub use self::style::{CustomStyle, HeaderStyle};
#[cfg(feature = "throttle")]
pub(crate) use self::text::split_unquoted;
pub use self::write_headers::WriteHeaders;
pub use self::x_ratelimit::Reset;
