//! Answers errors with problem details (RFC 9457).

mod kind;

use core::fmt::Display;

use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::Serialize;
use tower_quota::HandleError;
use tower_quota_live::{ChangeError, RuleStoreError};
use tower_quota_rules::Problems;

pub use self::kind::ProblemKind;

/// The answer instead of the problems of a version, which quote keys.
pub(crate) const HIDDEN_PROBLEMS: &str = "a token with the role `rules` reads the problems";

pub(crate) type Result<T> = core::result::Result<T, Problem>;

#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(skip)]
    kind: ProblemKind,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<u64>,
    #[serde(flatten)]
    problems: Option<Problems>,
}

#[derive(Serialize)]
struct ProblemBody {
    r#type: String,
    title: &'static str,
    status: u16,
    #[serde(flatten)]
    problem: Problem,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
            current: None,
            problems: None,
        }
    }

    pub(crate) fn current(self, current: Option<u64>) -> Self {
        Self { current, ..self }
    }

    pub(crate) fn not_found(detail: impl Display) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    pub(crate) fn invalid(detail: impl Display) -> Self {
        Self::new(ProblemKind::InvalidRequest, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let kind = self.kind;
        let body = ProblemBody {
            r#type: kind.type_address(),
            title: kind.title(),
            status: kind.status().as_u16(),
            problem: self,
        };
        let content_type = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (kind.status(), content_type, axum::Json(body)).into_response();
        if kind == ProblemKind::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer realm=\"tower-quota\"");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection {
            JsonRejection::MissingJsonContentType(_) => Self::new(
                ProblemKind::UnsupportedType,
                "send the body with `Content-Type: application/json`",
            ),
            JsonRejection::BytesRejection(rejection) => {
                of_bytes(&rejection, crate::AdminOptions::LONGEST_JSON)
            }
            rejection => Self::invalid(rejection.body_text()),
        }
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        of_bytes(&rejection, crate::AdminOptions::LONGEST_BODY)
    }
}

fn of_bytes(rejection: &BytesRejection, most: usize) -> Problem {
    match rejection.status() {
        http::StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            ProblemKind::TooLarge,
            format_args!("this body has at most {most} bytes"),
        ),
        _ => Problem::invalid(rejection.body_text()),
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<RuleStoreError> for Problem {
    fn from(error: RuleStoreError) -> Self {
        let (kind, current) = match &error {
            RuleStoreError::Conflict { current } => (ProblemKind::VersionChanged, *current),
            RuleStoreError::ReadOnly(_) => (ProblemKind::ReadOnly, None),
            RuleStoreError::UnknownVersion(_) => (ProblemKind::NotFound, None),
            RuleStoreError::TooManyBlocks => (ProblemKind::InvalidValue, None),
            // The reason may quote the keys of a document.
            RuleStoreError::Unreadable { store, .. } => {
                let detail = format!("{store} cannot be read: {HIDDEN_PROBLEMS} in `/v1/health`");
                return Self::new(ProblemKind::Unavailable, detail);
            }
            _ => (ProblemKind::Unavailable, None),
        };
        Self::new(kind, error).current(current)
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(problems) => {
                let count = problems.iter().len() + problems.more();
                let detail = format_args!("{count} problems: the rules in force stay as they are");
                Self {
                    problems: Some(problems),
                    ..Self::new(ProblemKind::InvalidRules, detail)
                }
            }
            ChangeError::Client(error) => error.into(),
            ChangeError::Store(error) => error.into(),
            error => Self::new(ProblemKind::InvalidValue, error),
        }
    }
}

impl<E: core::error::Error> From<HandleError<E>> for Problem {
    fn from(error: HandleError<E>) -> Self {
        let kind = match error {
            HandleError::UnknownLimit { .. } => ProblemKind::NotFound,
            HandleError::UnreadableKey(_)
            | HandleError::NotGranted(_)
            | HandleError::InvalidQuota(..) => ProblemKind::InvalidValue,
            _ => ProblemKind::Unavailable,
        };
        Self::new(kind, error)
    }
}
