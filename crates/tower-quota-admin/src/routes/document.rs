use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use tower_quota_live::{ChangeError, InForce, NewVersion, RuleStoreError, Version, VersionInfo};
use tower_quota_rules::Problems;
use utoipa::{IntoParams, ToSchema};

use crate::api::Api;
use crate::body::DocumentBody;
use crate::change::{Change, ChangeHeaders};
use crate::extract::{Json, Query};
use crate::hide::SeesKeys;
use crate::precondition::{Expected, has, tag};
use crate::problem::{Problem, ProblemKind, Result};

/// A new version.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PutVersion {
    #[serde(flatten)]
    version: VersionInfo,
    /// The parts of the document without an effect, and the limits that the old rules had.
    warnings: Problems,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GetQuery {
    /// Returns the newest rules of the source, even if they are invalid and not in force.
    #[serde(default)]
    newest: bool,
}

/// Returns the text of the rules in force on this instance. The ETag is their version.
///
/// A caller who may not change the rules gets hashes instead of keys, unless the server shows keys.
#[utoipa::path(
    get, path = "/v1/rules", operation_id = "rules", params(GetQuery),
    responses(
        (status = 200, headers(("ETag" = String)), content_type = "application/yaml", body = Object),
        (status = 304),
        (status = 404),
    ),
)]
pub(crate) async fn get(
    State(api): State<Api>,
    sees_keys: SeesKeys,
    Query(GetQuery { newest }): Query<GetQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let version = if newest {
        let current = api.live.stored().await?.current;
        api.version(current.ok_or_else(no_rules)?).await?
    } else {
        in_force(&api)?.version.clone()
    };
    let tag = tag(version.number, &version.hash);
    Ok(if has(&headers, &tag) {
        (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response()
    } else {
        text(sees_keys.version(&api, version).await?)
    })
}

pub(crate) fn in_force(api: &Api) -> Result<Arc<InForce>> {
    api.live.in_force().ok_or_else(no_rules)
}

fn no_rules() -> Problem {
    Problem::not_found("there are no rules yet: put the first")
}

pub(crate) fn text(version: Version) -> Response {
    let content_type = HeaderValue::from_static("application/yaml");
    let fields = [
        (header::ETAG, tag(version.number, &version.hash)),
        (header::CONTENT_TYPE, content_type),
    ];
    (fields, version.text).into_response()
}

pub(crate) fn put_version(api: &Api, before: Option<&InForce>, version: &Version) -> Response {
    let warnings = api.live.in_force().map(|in_force| {
        let lost = before.map(|before| api.live.problems_of_change(&before.rules, &in_force.rules));
        let warnings = in_force.rules.warnings().clone();
        warnings.and(lost.unwrap_or_default())
    });
    let body = PutVersion {
        version: version.info(),
        warnings: warnings.unwrap_or_default(),
    };
    let tag = tag(version.number, &version.hash);
    ([(header::ETAG, tag)], Json(body)).into_response()
}

/// Replaces the rules on all instances.
///
/// The history keeps your comment. A document with errors changes no rule, and the answer lists all
/// errors.
#[utoipa::path(
    put, path = "/v1/rules", operation_id = "put_rules",
    params(
        ("If-Match" = Option<String>, Header, pattern = "^(\"[0-9]{1,9}-[0-9a-f]{32}\"|[*])$", description = "The ETag of the rules that the change is made from, or `*`."),
        ("If-None-Match" = Option<String>, Header, pattern = "^[*]$", description = "`*` for the first rules of a source."),
        ChangeHeaders,
    ),
    request_body(content((Object = "application/yaml"), (Object = "application/json"))),
    responses(
        (status = 200, body = PutVersion, headers(("ETag" = String))),
        (status = 403), (status = 412), (status = 422), (status = 428),
    ),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
    DocumentBody(text): DocumentBody,
) -> Result<Response> {
    let new = NewVersion::new(text, change.author).comment(change.comment);
    let (number, before) = (expected.number(&api).await?, api.live.in_force());
    let put = api.live.put(number, new).await;
    Ok(put_version(
        &api,
        before.as_deref(),
        &expecting(number, put)?,
    ))
}

/// Names the fix for a first document that is not the first.
pub(crate) fn expecting(
    number: Option<u64>,
    put: core::result::Result<Version, ChangeError>,
) -> Result<Version> {
    match put {
        Err(ChangeError::Store(RuleStoreError::Conflict { current })) if number == Some(0) => {
            let detail = "there are rules already: send If-Match with their ETag to replace them";
            Err(Problem::new(ProblemKind::VersionChanged, detail).current(current))
        }
        answer => Ok(answer?),
    }
}
