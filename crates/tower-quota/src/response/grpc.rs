//! Refuses gRPC calls with Trailers-Only responses, which clients may retry (gRFC A6).

use core::fmt::Write;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::{LimitStatus, Outcome};

use super::problem::TYPICAL_FIELDS;
use super::refusal_body::RefusalBody;
use super::refused::Refused;
use crate::protocol::{GRPC_STATUS, GrpcContentType};

const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

pub(super) const FIELDS: [HeaderName; 4] = [GRPC_STATUS, MESSAGE, DETAILS, PUSHBACK];

const UNKNOWN: i32 = 2;
const UNAUTHENTICATED: i32 = 16;

/// The status of a refused gRPC call: a code, a message, and details for programs.
///
/// Return your own status from [`on_refused_grpc`](crate::RateLimitLayer::on_refused_grpc). The feature `tonic` adds
/// conversions from and into `tonic::Status`.
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer, response::GrpcStatus};
///
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
///     .on_refused_grpc(|refused| GrpcStatus::new(GrpcStatus::of(refused).code(), "Slow down, please."));
/// # let _ = layer;
/// ```
#[derive(Clone, Debug)]
pub struct GrpcStatus {
    code: i32,
    message: String,
    details: Option<Vec<u8>>,
    metadata: HeaderMap,
}

impl GrpcStatus {
    /// Makes a status from a message and a gRPC code, such as 8 for `RESOURCE_EXHAUSTED`.
    ///
    /// Other codes than 1 to 16 become `UNKNOWN`. The layer adds the time to retry and the limits.
    #[must_use]
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        let code = if (1..=UNAUTHENTICATED).contains(&code) {
            code
        } else {
            UNKNOWN
        };
        Self {
            code,
            message: message.into(),
            details: None,
            metadata: HeaderMap::new(),
        }
    }

    /// Returns the default status of a refusal.
    #[must_use]
    pub fn of(refused: &Refused<'_>) -> Self {
        Self::without_details(refused).completed(refused)
    }

    /// Returns the default status before [`respond`] completes it.
    pub(super) fn without_details(refused: &Refused<'_>) -> Self {
        Self::new(refused.reason().answer().grpc_code, refused.detail())
    }

    fn completed(mut self, refused: &Refused<'_>) -> Self {
        if self.details.is_none() {
            self.details = error_details(refused, self.code, &self.message);
        }
        self.metadata
            .entry(PUSHBACK)
            .or_insert_with(|| push_back(refused));
        self
    }

    /// Returns the code.
    #[must_use]
    pub const fn code(&self) -> i32 {
        self.code
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(feature = "tonic")]
impl From<tonic::Status> for GrpcStatus {
    fn from(status: tonic::Status) -> Self {
        let details = Some(status.details())
            .filter(|details| !details.is_empty())
            .map(<[u8]>::to_vec);
        let metadata = status.metadata().clone().into_headers();
        Self {
            details,
            metadata,
            ..Self::new(status.code().into(), status.message())
        }
    }
}

#[cfg(feature = "tonic")]
impl From<GrpcStatus> for tonic::Status {
    fn from(status: GrpcStatus) -> Self {
        Self::with_details_and_metadata(
            status.code.into(),
            status.message,
            status.details.unwrap_or_default().into(),
            tonic::metadata::MetadataMap::from_headers(status.metadata),
        )
    }
}

pub(super) fn respond(
    mut status: GrpcStatus,
    content_type: GrpcContentType,
    refused: &Refused<'_>,
) -> Response<RefusalBody> {
    let mut response = Response::new(RefusalBody::default());
    status.metadata.reserve(TYPICAL_FIELDS);
    let GrpcStatus {
        code,
        message,
        details,
        mut metadata,
    } = status.completed(refused);
    metadata.insert(CONTENT_TYPE, HeaderValue::from_static(content_type.0));
    metadata.insert(GRPC_STATUS, code.into());
    // The details repeat this message, and must not contradict the header.
    if let Ok(message) = HeaderValue::try_from(percent_encoded(&message)) {
        metadata.insert(MESSAGE, message);
    }
    if let Some(value) =
        details.and_then(|details| HeaderValue::try_from(STANDARD_NO_PAD.encode(details)).ok())
    {
        metadata.insert(DETAILS, value);
    }
    *response.headers_mut() = metadata;
    response
}

/// Returns the wait in 32-bit milliseconds, rounded up. A negative number stops retries.
fn push_back(refused: &Refused<'_>) -> HeaderValue {
    let Some(wait) = refused.retry_after() else {
        return HeaderValue::from_static("-1");
    };
    HeaderValue::from(i32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX))
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// The maximum size of the details, 4 KiB in base64, half of the usual bound for headers.
const MAX_DETAILS_BYTES: usize = 3_072;

/// The maximum number of violations, with room for long names.
const MAX_VIOLATIONS: usize = 8;

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const QUOTA_FAILURE: &str = "type.googleapis.com/google.rpc.QuotaFailure";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

const STATUS_DETAILS: u64 = 3;

/// Encodes the details as in `google/rpc/error_details.proto`, unless the message is too long.
fn error_details(refused: &Refused<'_>, code: i32, message: &str) -> Option<Vec<u8>> {
    let code = u64::try_from(code).unwrap_or_default();
    let info = Message::default()
        .string(1, refused.reason().answer().error_info)
        .string(2, refused.grpc_domain.as_str());
    let mut status = Message::default().integer(1, code).string(2, message).any(
        STATUS_DETAILS,
        ERROR_INFO,
        &info,
    );
    if let Some(wait) = refused.retry_after() {
        // Clients retry only with a `RetryInfo`.
        status = status.any(
            STATUS_DETAILS,
            RETRY_INFO,
            &Message::default().message(1, &duration(wait)),
        );
    }
    let mut violations = Message::default();
    for status in refused.refusing_statuses().take(MAX_VIOLATIONS) {
        violations = violations.message(1, &violation(status));
    }
    if !violations.0.is_empty() {
        status = status.any(STATUS_DETAILS, QUOTA_FAILURE, &violations);
    }
    (status.0.len() <= MAX_DETAILS_BYTES).then_some(status.0)
}

fn violation(status: &LimitStatus) -> Message {
    let name = status.name;
    let description = match status.outcome {
        Outcome::Never => {
            format!("The request costs more than the limit \"{name}\" can ever admit.")
        }
        _ => format!("Over the limit \"{name}\"."),
    };
    Message::default()
        .string(1, &format!("limit:{name}"))
        .string(2, &description)
        .string(5, name.as_str())
        .integer(7, status.limit)
}

/// Encodes a `google.protobuf.Duration`, which holds at most 10,000 years.
fn duration(span: Duration) -> Message {
    const MAX_SECS: u64 = 315_576_000_000;
    Message::default()
        .integer(1, span.as_secs().min(MAX_SECS))
        .integer(2, u64::from(span.subsec_nanos()))
}

struct Message(Vec<u8>);

impl Default for Message {
    /// Makes an empty message with room for the details of a typical refusal.
    fn default() -> Self {
        Self(Vec::with_capacity(512))
    }
}

const LENGTH_DELIMITED: u64 = 2;

impl Message {
    fn integer(mut self, field: u64, value: u64) -> Self {
        if value > 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    fn string(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn any(self, field: u64, type_url: &str, message: &Self) -> Self {
        self.message(
            field,
            &Self::default().string(1, type_url).message(2, message),
        )
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a varint, where the top bit of a byte announces another byte.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}
