//! Finds earlier refusals, to answer complaints.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota_live::{RefusalFilter, RefusalList, Time};

use super::clients::HASH;
use super::count::count;
use super::end::invalid;
use crate::api::{Api, ShowKeys};
use crate::extract::Json;
use crate::problem::Result;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RefusalsBody {
    key: Option<String>,
    scope: Option<String>,
    limit: Option<String>,
    after: Option<Time>,
    before: Option<Time>,
    request: Option<String>,
    count: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct FoundRefusals {
    instance: String,
    #[serde(flatten)]
    list: RefusalList,
}

/// Finds the last refusals of this instance, the newest first.
///
/// An instance remembers its last 10,000 refusals. If `since` is after the time of a complaint, the instance has
/// forgotten the refusal.
pub(crate) async fn refusals(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Json(body): Json<RefusalsBody>,
) -> Result<Json<FoundRefusals>> {
    let most = count(body.count, 100, 1_000)?;
    let key = body.key.as_deref();
    let filter = RefusalFilter {
        hashes: key.map(|key| hashes(&api, key)).transpose()?,
        scope: body.scope,
        limit: body.limit,
        after: body.after,
        before: body.before,
        request: body.request,
    };
    let mut list = api.live.refusals(&filter, most);
    if !show {
        for refusal in &mut list.refusals {
            refusal.key = None;
        }
    }
    Ok(Json(FoundRefusals {
        instance: api.instance.clone(),
        list,
    }))
}

/// Returns the hashes of all clients that a text can name.
fn hashes(api: &Api, text: &str) -> Result<Vec<String>> {
    if let Some(hash) = text.strip_prefix(HASH) {
        let is_hash = hash.len() == 16
            && hash
                .bytes()
                .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return Err(invalid(
                "a hash has 16 hex digits in lower case: copy it from a list, a block or a log",
            ));
        }
        return Ok(vec![hash.to_owned()]);
    }
    let hashes = api.hashes(text);
    if hashes.is_empty() {
        return Err(invalid(format_args!(
            "no limit counts by a key that can be written so: they count by {}",
            api.live.scopes().join(", ")
        )));
    }
    Ok(hashes)
}
