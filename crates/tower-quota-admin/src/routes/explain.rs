use std::collections::BTreeMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::explain::{self, ExplainedLimit};
use tower_quota::{ClientKey, RequestHead};
use tower_quota_live::Listing;
use tower_quota_rules::{Explanation, QuotaSource, SampleRequest, readable_key};
use utoipa::ToSchema;

use super::document::in_force;
use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::Json;
use crate::problem::{Problem, ProblemKind, Result};
use crate::status::Status;

/// A request to explain. Defaults to `GET /` from 192.0.2.1, see `assumed_address` of the answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
#[schema(as = SampleRequest)]
struct Sample {
    /// The method.
    #[schema(pattern = "^[A-Z]{1,20}$")]
    method: Option<String>,
    /// The path with its query.
    #[schema(pattern = "^/[a-zA-Z0-9/._~-]*([?][a-zA-Z0-9=&._~-]*)?$")]
    path: Option<String>,
    /// The host.
    #[schema(pattern = "^[a-z0-9]{1,20}$")]
    host: Option<String>,
    /// The headers, with a value or a list of values.
    headers: Option<BTreeMap<String, OneOrMany>>,
    /// The address of the peer, IPv4 or IPv6.
    #[schema(pattern = "^([1-9][0-9]?[.]){3}[1-9][0-9]?$|^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$")]
    address: Option<String>,
    /// The route matched by axum. Defaults to the matching route of the rules.
    route: Option<String>,
    /// The keys from your code, by their names in the rules, such as `code tenant`.
    keys: Option<BTreeMap<String, String>>,
}

/// The values of a header.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The explanation of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    /// The entry that blocks or allows the request before any limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listing>,
    /// The status of each limit for this client.
    left: Vec<Status>,
}

/// Shows the limits and keys of a request, and the remaining units, and charges no units.
///
/// Uses the lists, tiers and blocks in force. `unknown` lists the unknown inputs.
#[utoipa::path(
    post, path = "/v1/explain", operation_id = "explain", params(ShowQuery), request_body = Sample,
    responses((status = 200, body = Explained), (status = 403), (status = 404), (status = 422)),
)]
pub(crate) async fn explain(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Json(sample): Json<SampleRequest>,
) -> Result<Json<Explained>> {
    let in_force = in_force(&api)?;
    let rules = &in_force.rules;
    let request = rules
        .request(&sample)
        .map_err(|error| Problem::new(ProblemKind::InvalidValue, error))?;
    let head = RequestHead::of(&request).of_sample();
    let explained = api.live.handle().explain(&head);
    let overrides = overrides(&api, &explained);
    let mut explanation = if show {
        rules.explain_as(&head, explained, &readable_key)
    } else {
        rules.explain_as(&head, explained, &|key| api.live.key_hash(key))
    };
    for (limit, source) in explanation.limits.iter_mut().zip(overrides) {
        if let Some(source) = source {
            limit.source = source;
        }
    }
    let mut left = Vec::new();
    for limit in &explanation.limits {
        left.push(
            api.live
                .handle()
                .peek(&limit.name, ClientKey::Request(head))
                .await?
                .into(),
        );
    }
    Ok(Json(Explained {
        explanation,
        listed: api.live.listing_of_request(&head),
        left,
    }))
}

/// Returns the operator's override of each limit that decides, if any.
fn overrides(api: &Api, explained: &explain::Explained) -> Vec<Option<QuotaSource>> {
    let explain::Explained::Limited(limits) = explained else {
        return Vec::new();
    };
    let source = |limit: &ExplainedLimit| api.live.override_source(limit.name.as_str(), &limit.key);
    limits.iter().map(source).collect()
}
