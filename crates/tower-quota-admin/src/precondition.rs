//! Reads the expected version of a change from `If-Match` (RFC 9110, section 13).

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use tower_quota_live::RuleStoreError;

use crate::api::Api;
use crate::problem::{Problem, ProblemKind, Result};

pub(crate) enum Expected {
    /// `If-Match: "7-0f3a.."` expects the version with this entity tag.
    Tag(String),
    /// `If-Match: *` accepts any version.
    Any,
    /// `If-None-Match: *` expects no version, for the first document.
    None,
}

impl<S: Send + Sync> FromRequestParts<S> for Expected {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let field = |name| one(&parts.headers, name);
        match (field(header::IF_MATCH)?, field(header::IF_NONE_MATCH)?) {
            (Some("*"), None) => Ok(Self::Any),
            (None, Some("*")) => Ok(Self::None),
            (Some(tag), None) => Ok(Self::Tag(tag.to_owned())),
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

impl Expected {
    /// Returns the expected number of the newest version, 0 for no version, or `None` for any
    /// version.
    ///
    /// Refuses the change if the rules are only read from their source.
    pub(crate) async fn number(self, api: &Api) -> Result<Option<u64>> {
        let store = api.live.store();
        if store.is_read_only() {
            return Err(RuleStoreError::ReadOnly(store.name()).into());
        }
        match self {
            Self::Any => Ok(None),
            Self::None => Ok(Some(0)),
            Self::Tag(sent) => {
                let number = sent.trim_start_matches('"').split('-').next();
                // Compare the hash too, because a store may reuse the number for another text after
                // a restart.
                if let Some(number) = number.and_then(|number| number.parse().ok())
                    && let Some(version) = api.live.version(number).await?
                    && tag(number, &version.hash) == sent
                {
                    return Ok(Some(number));
                }
                let detail = format!(
                    "If-Match: {sent} is the ETag of no version: read the rules again, and send their ETag as it was received"
                );
                let current = api.live.stored().await?.current;
                Err(Problem::new(ProblemKind::VersionChanged, detail).current(current))
            }
        }
    }
}

pub(crate) fn tag(number: u64, hash: &str) -> HeaderValue {
    // The conversion cannot fail, because hexadecimal digits in quotes are a valid value.
    HeaderValue::from_str(&format!("\"{number}-{hash}\""))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns whether `If-None-Match` contains the entity tag.
pub(crate) fn has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let tags = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
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
