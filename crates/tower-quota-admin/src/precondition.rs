//! The versions that a change expects, in `If-Match` (RFC 9110, section 13).

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use crate::api::Api;
use crate::problem::{Problem, ProblemKind, Result};

/// The version that a change of the rules is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// `If-Match: "7-0f3a.."`: the version with this number and hash.
    Version { number: u64, hash: String },
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
            (Some(tag), None) => version_of(tag),
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
    /// Returns the number that the newest version must have: `None` for any, 0 for no version.
    pub(crate) async fn number(self, api: &Api) -> Result<Option<u64>> {
        match self {
            Self::Any => Ok(None),
            Self::None => Ok(Some(0)),
            Self::Version { number, hash } => {
                // After a restart, a store may give the same number to another text.
                let detail = match api.live.version(number).await {
                    Ok(version) if version.hash == hash => return Ok(Some(number)),
                    Ok(_) => "this version is not the one that you have read: read it again".into(),
                    Err(problem) if problem.kind() != ProblemKind::NotFound => return Err(problem),
                    Err(_) => format!("version {number} is not kept any more: read the newest one"),
                };
                let current = api.live.stored().await?.newest();
                Err(Problem::new(ProblemKind::VersionChanged, detail).current(current))
            }
        }
    }
}

/// Returns the entity tag of a version.
pub(crate) fn tag(number: u64, hash: &str) -> HeaderValue {
    // Hexadecimal digits in quotes are a valid value.
    HeaderValue::from_str(&format!("\"{number}-{hash}\""))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns whether the client has this version already: `If-None-Match` has the entity tag.
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

fn version_of(tag: &str) -> Result<Expected> {
    let parts = tag
        .strip_prefix('"')
        .and_then(|tag| tag.strip_suffix('"')?.split_once('-'));
    if let Some((number, hash)) = parts
        && let Ok(number) = number.parse()
    {
        let hash = hash.to_owned();
        return Ok(Expected::Version { number, hash });
    }
    // Such a tag is of no version.
    let detail = format_args!(
        "If-Match: {tag} names no version: send one ETag as it was received, such as \"7-0f3a\" with all of its digits"
    );
    Err(Problem::new(ProblemKind::VersionChanged, detail))
}
