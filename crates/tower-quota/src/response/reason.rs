use core::error::Error;
use core::time::Duration;

use http::StatusCode;
use tower_quota_core::{Decision, Outcome};

use crate::key::MissingPart;

/// The reason of a refusal.
///
/// | reason | HTTP | gRPC |
/// |---|---|---|
/// | `OverQuota` | 429 | `RESOURCE_EXHAUSTED` |
/// | `NeverFits`, `MissingKey` | 400 | `INVALID_ARGUMENT` |
/// | `Unauthenticated` | 401 | `UNAUTHENTICATED` |
/// | `Blocked` | 403 | `PERMISSION_DENIED` |
/// | `NoPeerAddress`, `TooManyLimits`, `Undecidable` | 500 | `INTERNAL` |
/// | `StoreFailure`, `Overloaded` | 503 | `UNAVAILABLE` |
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// The request is over a quota and may retry later.
    OverQuota(&'a Decision),
    /// The request costs more than the capacity of a limit, so never retry.
    NeverFits(&'a Decision),
    /// The request lacks this part of a key, or has conflicting values.
    MissingKey(MissingPart),
    /// The request lacks these credentials, or has conflicting values.
    Unauthenticated(MissingPart),
    /// The server did not attach the peer address, which a limit needs.
    NoPeerAddress,
    /// The policy is wrong. A request has more limits than [`Charge::MOST`](crate::store::Charge::MOST).
    ///
    /// [`OnStoreFailure`](crate::OnStoreFailure) does not apply.
    TooManyLimits,
    /// The policy is wrong. The store can [never decide](crate::store::Undecidable) the request.
    ///
    /// [`OnStoreFailure`](crate::OnStoreFailure) does not apply.
    Undecidable(&'a (dyn Error + Send + Sync + 'static)),
    /// The policy or an operator [blocks](crate::Policy::block) the request.
    Blocked,
    /// The store failed, and a limit [refuses](crate::OnStoreFailure::Refuse) or its share is too small.
    ///
    /// Keep the error in your logs.
    StoreFailure(&'a (dyn Error + Send + Sync + 'static)),
    /// The service is overloaded, and a layer of `tower-quota-shed` refuses the request for this time.
    Overloaded(Duration),
}

pub(super) struct ReasonCodes {
    pub(super) status: StatusCode,
    pub(super) grpc_code: i32,
    pub(super) error_info: &'static str,
}

impl<'a> Reason<'a> {
    pub(crate) fn of(decision: &'a Decision) -> Self {
        match decision.outcome() {
            Outcome::Never => Self::NeverFits(decision),
            _ => Self::OverQuota(decision),
        }
    }

    pub(super) const fn answer(&self) -> ReasonCodes {
        let (status, grpc_code, error_info) = match self {
            Self::OverQuota(_) => (StatusCode::TOO_MANY_REQUESTS, 8, "RATE_LIMIT_EXCEEDED"),
            Self::NeverFits(_) => (StatusCode::BAD_REQUEST, 3, "COST_ABOVE_RATE_LIMIT"),
            Self::MissingKey(_) => (StatusCode::BAD_REQUEST, 3, "RATE_LIMIT_KEY_MISSING"),
            Self::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, 16, "CREDENTIALS_MISSING"),
            Self::NoPeerAddress => (
                StatusCode::INTERNAL_SERVER_ERROR,
                13,
                "PEER_ADDRESS_MISSING",
            ),
            Self::TooManyLimits => (
                StatusCode::INTERNAL_SERVER_ERROR,
                13,
                "TOO_MANY_RATE_LIMITS",
            ),
            Self::Undecidable(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                13,
                "RATE_LIMITS_UNDECIDABLE",
            ),
            Self::Blocked => (StatusCode::FORBIDDEN, 7, "CLIENT_BLOCKED"),
            Self::StoreFailure(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                14,
                "RATE_LIMIT_UNAVAILABLE",
            ),
            Self::Overloaded(_) => (StatusCode::SERVICE_UNAVAILABLE, 14, "SERVICE_OVERLOADED"),
        };
        ReasonCodes {
            status,
            grpc_code,
            error_info,
        }
    }
}
