use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use tower_quota_live::{ChangeError, InForce, NewVersion, RuleStoreError, Version, VersionInfo};
use tower_quota_rules::Problems;

use crate::api::{Api, ChangePlace, CheckPlace};
use crate::body::DocumentBody;
use crate::change::Change;
use crate::extract::{Json, Query};
use crate::hide::{DocumentForm, without_problems};
use crate::precondition::{Expected, has, tag};
use crate::problem::{Problem, ProblemKind, Result};

#[derive(Serialize)]
pub(crate) struct PutVersion {
    #[serde(flatten)]
    version: VersionInfo,
    warnings: Problems,
}

#[derive(Deserialize)]
pub(crate) struct GetQuery {
    #[serde(default)]
    newest: bool,
}

/// Returns the text of the rules in force on this instance. The ETag is their version.
///
/// A caller who may not change the rules gets JSON with hashes instead of keys and without comments, unless the server
/// shows keys.
pub(crate) async fn get(
    State(api): State<Api>,
    form: DocumentForm,
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
        text(&api, form, version).await?
    })
}

pub(crate) fn in_force(api: &Api) -> Result<Arc<InForce>> {
    api.live.in_force().ok_or_else(no_rules)
}

fn no_rules() -> Problem {
    Problem::not_found("there are no rules yet: put the first")
}

pub(crate) async fn text(api: &Api, form: DocumentForm, version: Version) -> Result<Response> {
    let tag = tag(version.number, &version.hash);
    let (content_type, text) = match form {
        DocumentForm::AsPut => ("application/yaml", version.text),
        DocumentForm::Hidden(CheckPlace(place)) => {
            let live = api.live.clone();
            let hiding = async move { live.hidden_document(version.text).await };
            let hidden = place.hold(hiding).await?;
            ("application/json", hidden.map_err(without_problems)?)
        }
    };
    let content_type = HeaderValue::from_static(content_type);
    let fields = [(header::ETAG, tag), (header::CONTENT_TYPE, content_type)];
    Ok((fields, text).into_response())
}

/// Answers a change of the rules that expected the version `number`.
pub(crate) fn put_version(
    api: &Api,
    number: Option<u64>,
    before: Option<Arc<InForce>>,
    put: core::result::Result<Version, ChangeError>,
) -> Result<Response> {
    if let (Some(0), Err(ChangeError::Store(RuleStoreError::Conflict { current }))) = (number, &put)
    {
        let detail = "there are rules already: send If-Match with their ETag to replace them";
        return Err(Problem::new(ProblemKind::VersionChanged, detail).current(*current));
    }
    let version = put?;
    let mut warnings = Problems::default();
    if let Some(after) = api.live.in_force() {
        warnings = after.rules.warnings().clone();
        if let Some(before) = before {
            warnings = warnings.and(api.live.problems_of_change(&before.rules, &after.rules));
        }
    }
    let tag = tag(version.number, &version.hash);
    let version = version.info();
    Ok((
        [(header::ETAG, tag)],
        Json(PutVersion { version, warnings }),
    )
        .into_response())
}

/// Replaces the rules on all instances.
///
/// The history keeps your comment. A document with errors changes no rule, and the answer lists all
/// errors.
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
    ChangePlace(place): ChangePlace,
    DocumentBody(text): DocumentBody,
) -> Result<Response> {
    let new = NewVersion::new(text, change.author).comment(change.comment);
    let (number, before) = (expected.number(&api).await?, api.live.in_force());
    let live = api.live.clone();
    let put = place.hold(async move { live.put(number, new).await });
    put_version(&api, number, before, put.await?)
}
