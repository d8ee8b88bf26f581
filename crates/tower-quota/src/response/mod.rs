//! Responses to admitted and refused requests.
//!
//! Header styles read a [`HeaderReport`]. Implement [`WriteHeaders`] for your own style. A closure answers a
//! [`Refused`] request, [`problem_details`] by default, or a [`GrpcStatus`] in [gRPC](crate::Protocol).
//!
//! `responses` writes a `report` with a `style` or a refusal (`problem`, `grpc`). A plan has `prepared` texts.
//! `text` formats values.

mod grpc;
mod into_refusal;
mod prepared;
mod prepared_problem;
mod problem;
mod reason;
mod refusal_body;
mod refused;
mod report;
mod responses;
mod style;
mod text;
mod write_headers;

pub use self::grpc::GrpcStatus;
pub use self::into_refusal::IntoRefusal;
pub(crate) use self::prepared::PreparedTexts;
pub use self::problem::problem_details;
pub use self::reason::Reason;
pub use self::refusal_body::RefusalBody;
pub use self::refused::Refused;
pub(crate) use self::report::Report;
pub use self::report::{HeaderReport, LimitReport};
pub(crate) use self::responses::ResponseSettings;
pub use self::style::{HeaderStyle, Reset};
#[cfg(feature = "throttle")]
pub(crate) use self::text::split_unquoted;
pub use self::write_headers::WriteHeaders;
