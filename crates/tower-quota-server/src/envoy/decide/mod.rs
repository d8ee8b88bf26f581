//! From a request to its answer.
//!
//! 1. [`plan`] finds the limit of each descriptor and the counters of the call.
//! 2. [`charges`] makes a charge for each counter, and lets the store decide all charges in one step.
//! 3. [`answer`], [`headers`] and [`metadata`] show the decision.
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

use tonic::Status;
use tower_quota_core::Store;

use self::plan::Plan;
use super::config::EnvoyConfig;
use super::options::EnvoyOptions;
use crate::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

/// Decides a call.
pub(super) async fn decide<S: Store>(
    config: &EnvoyConfig,
    options: &EnvoyOptions,
    store: &S,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    let plan = Plan::new(config, request)?;
    let decision = plan.decide(store, options.is_shadow);
    // The statistics of the store count the reasons of failures.
    let decided = match tokio::time::timeout(options.deadline, decision).await {
        Ok(Ok(decided)) => Some(decided),
        Ok(Err(_)) | Err(_) => plan.without_store(),
    };
    let Some(decided) = decided else {
        return Err(Status::unavailable(
            "the store of the limits has not answered",
        ));
    };
    let mut response = plan.answer(&decided, options.is_shadow);
    if let Some(names) = &options.headers {
        response.response_headers_to_add = headers::fields(names, &response.statuses);
    }
    if options.dynamic_metadata {
        response.dynamic_metadata = Some(metadata::of_call(request, &plan, &decided));
    }
    Ok(response)
}
