//! The rules in force: read, check, put.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use tower_quota_rules::live::{NewVersion, Rollout, Version, VersionInfo};
use tower_quota_rules::{Format, Problems};
use utoipa::ToSchema;

use crate::api::Api;
use crate::body::DocumentBody;
use crate::change::{Change, ChangeParams};
use crate::extract::Json;
use crate::precondition::{Expected, has, tag};
use crate::problem::{Problem, ProblemKind, Result};

/// A version that was put.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PutVersion {
    #[serde(flatten)]
    version: VersionInfo,
    /// The warnings: things that the document does not do although it seems to say so.
    warnings: Problems,
}

/// Returns the rules in force, as they were written. The ETag is their version.
#[utoipa::path(
    get, path = "/v1/rules", operation_id = "rules",
    responses(
        (status = 200, headers(("ETag" = String)), content(
            (Object = "application/yaml"), (Object = "application/json"),
        )),
        (status = 304),
        (status = 404),
    ),
)]
pub(crate) async fn get(State(api): State<Api>, headers: HeaderMap) -> Result<Response> {
    let version = api
        .live
        .current()
        .await?
        .ok_or_else(|| Problem::not_found("there are no rules yet: put the first"))?;
    Ok(if has(&headers, version.number) {
        (
            StatusCode::NOT_MODIFIED,
            [(header::ETAG, tag(version.number))],
        )
            .into_response()
    } else {
        text(version.number, version.format, version.text)
    })
}

/// Answers with the text of a version.
pub(crate) fn text(number: u64, format: Format, text: String) -> Response {
    let content_type = HeaderValue::from_static(format.media_type());
    (
        [
            (header::ETAG, tag(number)),
            (header::CONTENT_TYPE, content_type),
        ],
        text,
    )
        .into_response()
}

/// Answers with a version that was put, which is in force here by now.
pub(crate) fn put_version(api: &Api, version: &Version) -> Response {
    let warnings = api
        .live
        .in_force()
        .map(|in_force| match &in_force.candidate {
            Some((candidate, _, rules)) if candidate.number == version.number => {
                rules.warnings().clone()
            }
            _ => in_force.rules.warnings().clone(),
        });
    let body = PutVersion {
        version: version.info(),
        warnings: warnings.unwrap_or_default(),
    };
    ([(header::ETAG, tag(version.number))], Json(body)).into_response()
}

/// Replaces the rules, on all instances.
///
/// The comment is kept in the history. A document with errors changes nothing, and all of them are listed.
#[utoipa::path(
    put, path = "/v1/rules", operation_id = "put_rules",
    params(
        ("If-Match" = Option<String>, Header, pattern = "^(\"[0-9]{1,9}\"|[*])$", description = "The ETag of the rules that the change is made from, or `*`."),
        ("If-None-Match" = Option<String>, Header, pattern = "^[*]$", description = "`*` for the first rules of a source."),
        ChangeParams,
    ),
    request_body(content((Object = "application/yaml"), (Object = "application/json"))),
    responses(
        (status = 200, body = PutVersion, headers(("ETag" = String))),
        (status = 403), (status = 409), (status = 412), (status = 422), (status = 428),
    ),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
    document: DocumentBody,
) -> Result<Response> {
    replace(&api, change, expected, document, None).await
}

/// Puts a document in force, or beside the one in force.
pub(crate) async fn replace(
    api: &Api,
    change: Change,
    expected: Expected,
    DocumentBody { text, format }: DocumentBody,
    rollout: Option<Rollout>,
) -> Result<Response> {
    let mut new = NewVersion::new(text, format, change.author).comment(change.comment);
    if let Some(rollout) = rollout {
        new = new.rollout(rollout);
    }
    Ok(put_version(api, &put_expected(api, expected, new).await?))
}

/// Puts a document if the newest version is the expected one.
async fn put_expected(api: &Api, expected: Expected, new: NewVersion) -> Result<Version> {
    let number = match expected {
        Expected::Version(number) => Some(number),
        Expected::Any => None,
        // No version has this number.
        Expected::None => Some(0),
    };
    match api.live.put(number, new).await {
        Err(problem) if problem.kind() == ProblemKind::VersionChanged => {
            let stored = api.live.stored().await?;
            match stored.candidate {
                // The rules in force are as expected: what the put would end is a roll-out.
                Some(candidate) if stored.current == number => {
                    let detail = format_args!(
                        "version {} is being rolled out: promote or abandon it, or send its ETag to replace it",
                        candidate.number
                    );
                    Err(Problem::new(ProblemKind::Conflict, detail).current(Some(candidate.number)))
                }
                _ if number == Some(0) => {
                    let detail =
                        "there are rules already: send If-Match with their ETag to replace them";
                    Err(Problem::new(ProblemKind::VersionChanged, detail).current(stored.newest()))
                }
                _ => Err(problem),
            }
        }
        answer => answer,
    }
}
