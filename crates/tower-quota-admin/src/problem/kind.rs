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
    /// Status 429. Too many checks, comparisons or changes of documents are under way, in all or of your token.
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
        self.parts().0
    }

    /// Returns the title of this kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.parts().1
    }

    const fn parts(self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidRequest => (StatusCode::BAD_REQUEST, "The request cannot be read"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "A valid token is required"),
            Self::KeysHidden => (StatusCode::FORBIDDEN, "Keys are shown hashed only"),
            Self::ReadOnly => (StatusCode::FORBIDDEN, "The rules are read-only"),
            Self::RoleRequired => (StatusCode::FORBIDDEN, "Another role is required"),
            Self::NotFound => (StatusCode::NOT_FOUND, "Not found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::VersionChanged => (StatusCode::PRECONDITION_FAILED, "The rules have changed"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
            Self::UnsupportedType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported content type",
            ),
            Self::InvalidRules => (StatusCode::UNPROCESSABLE_ENTITY, "The rules have errors"),
            Self::InvalidValue => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid value"),
            Self::VersionRequired => (StatusCode::PRECONDITION_REQUIRED, "If-Match is required"),
            Self::TooManyChecks => (StatusCode::TOO_MANY_REQUESTS, "Too many checks"),
            Self::TooManyStreams => (StatusCode::TOO_MANY_REQUESTS, "Too many event streams"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable"),
            Self::Timeout => (StatusCode::SERVICE_UNAVAILABLE, "The answer took too long"),
        }
    }
}
