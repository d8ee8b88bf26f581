//! From a request to its answer.
//!
//! 1. [`plan`] finds the limit of each descriptor and the counters of the call.
//! 2. [`charges`] makes a charge for each counter, and lets the store decide all charges in one step.
//! 3. [`answer`], [`headers`] and [`metadata`] show the decision, and [`record`] counts it.
//!
//! A call is over if a limit is exceeded, except for shadows. Limits in quota mode count together, and refuse only if all of
//! them are exceeded. A refused call takes no units, with two exceptions:
//!
//! | exception | takes units of refused calls |
//! |---|---|
//! | `compatible: true` of a domain | all limits |
//! | `post_charge: true` of a limit | this limit, into debt |

mod answer;
mod charges;
mod headers;
mod metadata;
mod plan;
mod record;

use tonic::Status;
use tower_quota_core::{RefusalCache, Store};

use self::plan::Plan;
use super::config::EnvoyConfig;
use super::counts::NamedCounts;
use super::options::EnvoyOptions;
use crate::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

/// The most descriptors of a call, most of which have no limit.
const MOST_DESCRIPTORS: usize = 1_024;

/// Decides a call.
pub(super) async fn decide<S: Store>(
    config: &EnvoyConfig,
    options: &EnvoyOptions,
    named: &NamedCounts,
    store: &RefusalCache<S>,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    if request.domain.is_empty() {
        return Err(Status::invalid_argument("the request has no domain"));
    }
    if request.descriptors.is_empty() {
        return Err(Status::invalid_argument("the request has no descriptors"));
    }
    if request.descriptors.len() > MOST_DESCRIPTORS {
        let message =
            format!("the request has more than {MOST_DESCRIPTORS} descriptors: send fewer");
        return Err(Status::invalid_argument(message));
    }
    let domain = config.domain(&request.domain);
    let own_rules = match domain {
        Some(_) => plan::own_rules(request)?,
        None => Vec::new(),
    };
    let plan = Plan::new(domain, &own_rules, options, request)?;
    // The statistics of the store count the reasons of failures.
    let mut known_refusal = None;
    let deciding = plan.decide(store, &mut known_refusal);
    let decided = match tokio::time::timeout(options.deadline, deciding).await {
        Ok(Ok(decided)) => Some(decided),
        Ok(Err(_)) | Err(_) => known_refusal.or_else(|| plan.without_store()),
    };
    let Some(decided) = decided else {
        return Err(Status::unavailable(
            "the store of the limits has not answered",
        ));
    };
    let mut response = plan.answer(&decided);
    if options.headers {
        response.response_headers_to_add = plan.headers(&response.statuses);
    }
    if options.dynamic_metadata {
        response.dynamic_metadata = Some(plan.metadata(&decided));
    }
    plan.record(&decided, named);
    Ok(response)
}
