//! Responses: the header fields of admitted requests, and the answers to refused ones.
//!
//! [`Responses`] is the only writer. The pipeline passes it a [`Report`] of the decision; header styles read it as a
//! [`HeaderReport`] and write their fields by name. A refused request is a [`Refused`], answered by a [`Refusal`] or,
//! if the [protocol](crate::Protocol) is gRPC, by a [`GrpcStatus`].
//!
//! | file | holds |
//! |---|---|
//! | `responses` | the writer and its settings |
//! | `report` | the report that the pipeline passes on; partition keys |
//! | `write_headers` | the trait of header styles, and the report as they see it |
//! | `limit_info` | the limits of a policy as clients see them, found by name |
//! | `style` | the choice of styles; each of `draft11`, `older_drafts` and `x_ratelimit` implements some |
//! | `refused` | the reason of a refusal, and its status, message and wait |
//! | `refusal`, `refusal_body` | the trait that answers, and its body |
//! | `negotiated`, `problem`, `grpc` | the built-in refusals |
//! | `text` | numbers, strings and lists in header fields |

mod draft11;
mod grpc;
mod limit_info;
mod negotiated;
mod older_drafts;
mod problem;
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
pub use self::limit_info::LimitInfo;
pub use self::negotiated::Negotiated;
pub use self::problem::ProblemDetails;
pub(crate) use self::refusal::OnRefused;
pub use self::refusal::Refusal;
pub use self::refusal_body::RefusalBody;
pub use self::refused::{Reason, Refused};
pub(crate) use self::report::{Partitions, Report};
pub(crate) use self::responses::{ResponseSettings, Responses};
pub use self::style::{CustomStyle, HeaderStyle, exposed_headers};
#[cfg(feature = "throttle")]
pub(crate) use self::text::split_unquoted;
pub use self::write_headers::{HeaderReport, LimitReport, WriteHeaders};
pub use self::x_ratelimit::Reset;
