use axum::extract::State;
use serde::Serialize;
use tower_quota::explain;
use tower_quota::{ClientKey, HandleError, RequestHead};
use tower_quota_live::Listing;
use tower_quota_rules::{Explanation, SampleRequest, readable_key};

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
    // Read the keys before their texts replace them.
    let limits = match &explained {
        explain::Explained::Limited(limits) => &limits[..],
        _ => &[],
    };
    let clients = limits.iter().map(|limit| {
        let source = api.live.override_source(limit.name.as_str(), &limit.key);
        (limit.key.clone(), source)
    });
    let clients: Vec<_> = clients.collect();
    let mut explanation = rules.explain_as(&head, explained, &|key| match show {
        true => readable_key(key),
        false => api.live.key_hash(key),
    });
    let mut left = Vec::new();
    for (limit, (key, source)) in explanation.limits.iter_mut().zip(clients) {
        if let Some(source) = source {
            limit.source = source;
        }
        let handle = api.live.handle();
        let peeked = match handle.peek(&limit.name, ClientKey::Request(head)).await {
            // Requests without the key may share one, which no request has.
            Err(HandleError::UnreadableKey(_)) => handle.peek(&limit.name, &key).await,
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
