//! The versions that a change expects, in `If-Match` (RFC 9110, section 13).

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use crate::problem::{Problem, ProblemKind, Result};

/// The version that a change of the rules is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// `If-Match: "7"`: this version.
    Version(u64),
    /// `If-Match: *`: any version.
    Any,
    /// `If-None-Match: *`: none, for the first document of a source.
    None,
}

impl<S: Send + Sync> FromRequestParts<S> for Expected {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let field = |name| one(&parts.headers, name);
        match (field(header::IF_MATCH)?, field(header::IF_NONE_MATCH)?) {
            (Some("*"), None) => Ok(Self::Any),
            (None, Some("*")) => Ok(Self::None),
            (Some(tag), None) => Ok(Self::Version(version_of(tag)?)),
            (None, None) => {
                let detail = "send If-Match with the ETag of the rules that the change is made from, `*` to replace any \
                              version, or `If-None-Match: *` to put the first";
                Err(Problem::new(ProblemKind::VersionRequired, detail))
            }
            _ => Err(Problem::invalid(
                "send either If-Match with a version or `If-None-Match: *`",
            )),
        }
    }
}

/// Returns the entity tag of a version.
pub(crate) fn tag(version: u64) -> HeaderValue {
    // Digits in quotes are a valid value.
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns whether the client has this version already: `If-None-Match` names it.
pub(crate) fn has(headers: &HeaderMap, version: u64) -> bool {
    let tags = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let tag = format!("\"{version}\"");
    tags.flat_map(|tags| tags.split(','))
        .any(|known| matches!(known.trim(), "*") || known.trim().trim_start_matches("W/") == tag)
}

fn one(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(Problem::invalid(format_args!(
                "the field {name} is not text"
            ))),
        },
        _ => Err(Problem::invalid(format_args!("send the field {name} once"))),
    }
}

fn version_of(tag: &str) -> Result<u64> {
    let digits = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            // Such a tag is of no version.
            let detail = format_args!(
                "If-Match: {tag} names no version: send one ETag as it was received, such as \"7\""
            );
            Problem::new(ProblemKind::VersionChanged, detail)
        })
}
