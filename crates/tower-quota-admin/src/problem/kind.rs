use http::StatusCode;

/// The kind of a problem. Types and statuses never change.
///
/// The type is the address of the variant in this documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Status 400. A parameter, a header or a body is unreadable.
    InvalidRequest,
    /// Status 401. The request has no valid token.
    Unauthenticated,
    /// Status 403. Your options do not allow readable keys.
    KeysHidden,
    /// Status 403. The rules are only read from their source, such as a file: change them there.
    ReadOnly,
    /// Status 403. The operation needs a higher [`Role`](crate::Role).
    RoleRequired,
    /// Status 404. There is no such path, version, limit or block.
    NotFound,
    /// Status 405. The path does not support this method.
    MethodNotAllowed,
    /// Status 412. The rules have changed since the version in `If-Match`.
    VersionChanged,
    /// Status 413. The document is above [16 MiB](crate::AdminOptions::LONGEST_BODY), or another body
    /// above [64 KiB](crate::AdminOptions::LONGEST_JSON).
    TooLarge,
    /// Status 415. The path does not accept this content type.
    UnsupportedType,
    /// Status 422. The rules have errors, listed in `problems`.
    InvalidRules,
    /// Status 422. The limit cannot read this key, or the block is impossible.
    InvalidValue,
    /// Status 428. A change of the rules needs `If-Match` with your version.
    VersionRequired,
    /// Status 429. Too many checks or comparisons of documents are under way, or one of your token.
    TooManyChecks,
    /// Status 429. All event streams are in use.
    TooManyStreams,
    /// Status 503. The store or the source of the rules does not answer.
    Unavailable,
    /// Status 503. The answer exceeded the [timeout](crate::AdminOptions::timeout). The change may have
    /// happened.
    Timeout,
}

impl ProblemKind {
    /// Returns the address for the `type` of a problem.
    ///
    /// ```
    /// let address = tower_quota_admin::ProblemKind::ReadOnly.type_address();
    /// assert!(address.starts_with("https://docs.rs/") && address.ends_with("#variant.ReadOnly"));
    /// ```
    #[must_use]
    pub fn type_address(self) -> String {
        format!(
            "https://docs.rs/tower-quota-admin/latest/tower_quota_admin/enum.ProblemKind.html#variant.{self:?}"
        )
    }

    /// Returns the status of a response with this kind.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::KeysHidden | Self::ReadOnly | Self::RoleRequired => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::VersionChanged => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidRules | Self::InvalidValue => StatusCode::UNPROCESSABLE_ENTITY,
            Self::VersionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::TooManyChecks | Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::Timeout => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the title of this kind.
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
            Self::VersionChanged => "The rules have changed",
            Self::TooLarge => "The body is too large",
            Self::UnsupportedType => "Unsupported content type",
            Self::InvalidRules => "The rules have errors",
            Self::InvalidValue => "Invalid value",
            Self::VersionRequired => "If-Match is required",
            Self::TooManyChecks => "Too many checks",
            Self::TooManyStreams => "Too many event streams",
            Self::Unavailable => "Unavailable",
            Self::Timeout => "The answer took too long",
        }
    }
}
