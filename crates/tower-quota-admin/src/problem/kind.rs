//! The kinds of problems, which clients tell apart by their type.

use http::StatusCode;

/// The kind of a problem. Types and statuses stay the same in all versions of the API.
///
/// The type is the address of the variant in this documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// 400: a parameter, a header or a body cannot be read.
    InvalidRequest,
    /// 401: the request has no token, or a wrong one.
    Unauthenticated,
    /// 403: the request asks for readable keys, and the options do not allow them.
    KeysHidden,
    /// 403: this process may not change the source of the rules.
    ReadOnly,
    /// 403: the token has a lower [`Role`](crate::Role) than the operation needs.
    RoleRequired,
    /// 404: there is no such path, version, limit or block.
    NotFound,
    /// 405: the path has no such method.
    MethodNotAllowed,
    /// 409: there is a shadow document that the change would remove, or there is none any more.
    Conflict,
    /// 412: the rules have changed since the version in `If-Match`.
    VersionChanged,
    /// 413: the body is above [16 MiB](crate::AdminOptions::LONGEST_BODY).
    TooLarge,
    /// 415: the body is of another type than this path takes.
    UnsupportedType,
    /// 422: the rules have errors: `problems` lists all of them.
    InvalidRules,
    /// 422: the limit cannot read this key, or the block cannot be made.
    InvalidValue,
    /// 428: a change of the rules needs `If-Match` with the version that it is made from.
    VersionRequired,
    /// 429: all places for event streams are taken.
    TooManyStreams,
    /// 503: the store or the source of the rules does not answer.
    Unavailable,
    /// 503: the answer took longer than the [timeout](crate::AdminOptions::timeout). A change may have been made.
    Timeout,
}

impl ProblemKind {
    /// All kinds.
    pub const ALL: [Self; 17] = [
        Self::InvalidRequest,
        Self::Unauthenticated,
        Self::KeysHidden,
        Self::ReadOnly,
        Self::RoleRequired,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::VersionChanged,
        Self::TooLarge,
        Self::UnsupportedType,
        Self::InvalidRules,
        Self::InvalidValue,
        Self::VersionRequired,
        Self::TooManyStreams,
        Self::Unavailable,
        Self::Timeout,
    ];

    /// Returns the address that is the `type` of such problems.
    ///
    /// ```
    /// let address = tower_quota_admin::ProblemKind::Conflict.type_address();
    /// assert!(address.starts_with("https://docs.rs/") && address.ends_with("#variant.Conflict"));
    /// ```
    #[must_use]
    pub fn type_address(self) -> String {
        format!(
            "https://docs.rs/tower-quota-admin/latest/tower_quota_admin/enum.ProblemKind.html#variant.{self:?}"
        )
    }

    /// Returns the kind of a problem from its `type`.
    #[must_use]
    pub fn of_type_address(address: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.type_address() == address)
    }

    /// Returns the status of responses with such problems.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::KeysHidden | Self::ReadOnly | Self::RoleRequired => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::VersionChanged => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidRules | Self::InvalidValue => StatusCode::UNPROCESSABLE_ENTITY,
            Self::VersionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::Timeout => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the title of such problems, which is the same in each.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request cannot be read",
            Self::Unauthenticated => "A valid token is required",
            Self::KeysHidden => "Keys are shown hashed only",
            Self::ReadOnly => "The rules are read-only",
            Self::RoleRequired => "Another role is required",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::Conflict => "Conflict with the shadow document",
            Self::VersionChanged => "The rules have changed",
            Self::TooLarge => "The body is too large",
            Self::UnsupportedType => "Unsupported content type",
            Self::InvalidRules => "The rules have errors",
            Self::InvalidValue => "Invalid value",
            Self::VersionRequired => "If-Match is required",
            Self::TooManyStreams => "Too many event streams",
            Self::Unavailable => "Unavailable",
            Self::Timeout => "The answer took too long",
        }
    }
}
