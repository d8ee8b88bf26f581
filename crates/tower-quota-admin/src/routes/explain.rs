use axum::extract::State;
use serde::Serialize;
use tower_quota::explain::{self, ExplainedLimit};
use tower_quota::{ClientKey, HandleError, Key, RequestHead};
use tower_quota_live::Listing;
use tower_quota_rules::{Explanation, QuotaSource, SampleRequest, readable_key};

use super::document::in_force;
use super::end::invalid;
use crate::api::{Api, ShowKeys};
use crate::extract::Json;
use crate::problem::Result;
use crate::status::Status;

#[derive(Serialize)]
pub(crate) struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listing>,
    left: Vec<Status>,
}

/// Shows the limits and keys of a request, and the remaining units, and charges no units.
///
/// Uses the lists, tiers and blocks in force. `unknown` lists the unknown inputs.
pub(crate) async fn explain(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Json(sample): Json<SampleRequest>,
) -> Result<Json<Explained>> {
    let in_force = in_force(&api)?;
    let rules = &in_force.rules;
    let request = rules.request(&sample).map_err(invalid)?;
    let head = RequestHead::of(&request).of_sample();
    let explained = api.live.handle().explain(&head);
    let (overrides, keys) = (overrides(&api, &explained), keys(&explained));
    let mut explanation = rules.explain_as(&head, explained, &|key| match show {
        true => readable_key(key),
        false => api.live.key_hash(key),
    });
    for (limit, source) in explanation.limits.iter_mut().zip(overrides) {
        if let Some(source) = source {
            limit.source = source;
        }
    }
    let mut left = Vec::new();
    for (limit, key) in explanation.limits.iter().zip(&keys) {
        let handle = api.live.handle();
        let peeked = match handle.peek(&limit.name, ClientKey::Request(head)).await {
            // Requests without the key may share one, which no request has.
            Err(HandleError::UnreadableKey(_)) => handle.peek(&limit.name, key).await,
            peeked => peeked,
        };
        left.push(Status::of(&api, peeked?));
    }
    Ok(Json(Explained {
        explanation,
        listed: api.live.listing_of_request(&head),
        left,
    }))
}

fn keys(explained: &explain::Explained) -> Vec<Key<'static>> {
    match explained {
        explain::Explained::Limited(limits) => {
            limits.iter().map(|limit| limit.key.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the operator's override of each limit that decides, if any.
fn overrides(api: &Api, explained: &explain::Explained) -> Vec<Option<QuotaSource>> {
    let explain::Explained::Limited(limits) = explained else {
        return Vec::new();
    };
    let source = |limit: &ExplainedLimit| api.live.override_source(limit.name.as_str(), &limit.key);
    limits.iter().map(source).collect()
}
