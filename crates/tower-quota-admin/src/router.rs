use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use tower_quota_live::LiveRules;

use crate::api::Api;
use crate::openapi::{openapi, remove_tokens};
use crate::routes::{
    audit, blocks, check, clients, document, events, explain, health, history, overrides, refusals,
    top,
};
use crate::{AdminError, AdminOptions, auth, page, protect};

/// A route without authentication.
const READY: &str = "/v1/ready";

/// Builds the router of the admin API, for its own listener.
///
/// Pass [`LiveRules`], or the [handle](tower_quota::RateLimitHandle) of a layer with a policy from
/// your code. With a handle, the routes of rules and blocks answer with 404.
///
/// Serve the router with `into_make_service_with_connect_info::<SocketAddr>()`, to limit failed
/// authentications by address.
///
/// # Errors
/// Returns [`AdminError`] without an authentication, or for unusable tokens.
pub fn router(source: impl Into<LiveRules>, options: AdminOptions) -> Result<Router, AdminError> {
    let live: LiveRules = source.into();
    options.check()?;
    let mut document = openapi();
    if options.own_layer {
        remove_tokens(&mut document);
    }
    let document = Arc::new(document);
    let timeout = options.timeout.unwrap_or(Duration::from_secs(10));
    let follows_store = live.follows_store();
    let api = Api::new(live, &options);
    events::start(&api);
    let ready = Router::new().route(READY, get(health::ready));
    let ready = ready.with_state(api.clone());
    let parameters = from_fn_with_state(Arc::clone(&document), protect::parameters);
    let mut router = Router::new();
    for (path, methods) in routes() {
        router = router.route(path, methods);
    }
    let router = router
        .route(
            "/v1/openapi.json",
            get(move || async move { axum::Json(&*document).into_response() }),
        )
        .method_not_allowed_fallback(protect::unknown_method)
        .fallback(protect::unknown_path)
        .layer(DefaultBodyLimit::max(AdminOptions::LONGEST_JSON))
        .layer(parameters)
        .layer(from_fn_with_state(timeout, protect::timeout))
        .layer(from_fn_with_state(follows_store, protect::documents))
        .with_state(api)
        .layer(from_fn(auth::authorize));
    let router = if options.own_layer {
        router
    } else {
        let file = options.token_file.map(auth::TokenFile::open).transpose()?;
        let tokens = Arc::new(auth::Tokens {
            fixed: options.tokens,
            file: file.map(Arc::new),
        });
        // Add the outermost layer last, because the last layer sees a request first.
        router
            .layer(from_fn(auth::require))
            .layer(auth::failures(options.client_ip))
            .layer(from_fn_with_state(tokens, auth::identify))
    };
    let router = router.layer(from_fn(auth::count));
    let page = page::route(options.own_layer);
    let router = router.merge(ready).merge(page);
    Ok(router.layer(from_fn(protect::headers)))
}

/// The routes of the OpenAPI document, without [`READY`].
fn routes() -> [(&'static str, MethodRouter<Api>); 20] {
    // The other bodies are bounded further, because a long key takes the time of a thread for each limit.
    let long = DefaultBodyLimit::max(AdminOptions::LONGEST_BODY);
    [
        (
            "/v1/rules",
            get(document::get).put(document::put).layer(long),
        ),
        ("/v1/rules/check", post(check::check).layer(long)),
        ("/v1/rules/history", get(history::history)),
        ("/v1/rules/diff", get(history::diff)),
        ("/v1/rules/rollback", post(history::rollback)),
        ("/v1/rules/{version}", get(history::version)),
        ("/v1/clients/find", post(clients::find)),
        ("/v1/clients/peek", post(clients::peek)),
        ("/v1/clients/refusals", post(refusals::refusals)),
        ("/v1/clients/reset", post(clients::reset)),
        ("/v1/clients/grant", post(clients::grant)),
        ("/v1/blocks", get(blocks::list).put(blocks::put)),
        ("/v1/blocks/remove", post(blocks::remove)),
        ("/v1/overrides", get(overrides::list).put(overrides::put)),
        ("/v1/overrides/remove", post(overrides::remove)),
        ("/v1/explain", post(explain::explain)),
        ("/v1/top", get(top::top)),
        ("/v1/health", get(health::health)),
        ("/v1/events", get(events::events)),
        ("/v1/audit", get(audit::audit)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn document_has_the_routes() {
        let document = openapi();
        let described = document["paths"].as_object().unwrap().keys();
        let described: BTreeSet<&str> = described.map(String::as_str).collect();
        let routes = routes().map(|(path, _)| path).into_iter();
        assert_eq!(described, routes.chain([READY]).collect());
    }
}
