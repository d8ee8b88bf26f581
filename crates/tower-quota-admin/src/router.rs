use core::time::Duration;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Json, Router};
use tower_quota_live::LiveRules;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::routes::{
    audit, blocks, check, clients, document, events, explain, health, history, overrides, refusals,
    top,
};
use crate::{AdminError, AdminOptions, auth, page, protect};

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
    let (routes, mut document) = routes().split_for_parts();
    let (public, public_document) = public().split_for_parts();
    document.merge(public_document);
    let document = Arc::new(crate::openapi::complete(document, !options.own_layer));
    let timeout = options.timeout.unwrap_or(Duration::from_secs(10));
    let follows_store = live.follows_store();
    let api = Api::new(live, &options);
    events::start(&api);
    let public = public.with_state(api.clone());
    let parameters = from_fn_with_state(Arc::clone(&document), protect::parameters);
    let router = routes
        .route(
            "/v1/openapi.json",
            get(move || async move { Json(OpenApi::clone(&document)) }),
        )
        .method_not_allowed_fallback(protect::unknown_method)
        .fallback(protect::unknown_path)
        .layer(DefaultBodyLimit::max(AdminOptions::LONGEST_BODY))
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
    let router = router.merge(public).merge(page);
    Ok(router.layer(from_fn(protect::headers)))
}

/// Returns the OpenAPI document of the API, as in `/v1/openapi.json`.
///
/// ```
/// let document = tower_quota_admin::openapi();
/// assert!(document.paths.paths.contains_key("/v1/rules"));
/// ```
#[must_use]
pub fn openapi() -> OpenApi {
    crate::openapi::complete(routes().merge(public()).into_openapi(), true)
}

fn public() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(health::ready))
}

fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(crate::openapi::frame())
        .routes(routes!(history::history))
        .routes(routes!(history::version))
        .routes(routes!(history::diff))
        .routes(routes!(history::rollback))
        .routes(routes!(clients::find))
        .routes(routes!(clients::peek))
        .routes(routes!(refusals::refusals))
        .routes(routes!(clients::reset))
        .routes(routes!(clients::grant))
        .routes(routes!(blocks::list, blocks::put))
        .routes(routes!(blocks::remove))
        .routes(routes!(overrides::list, overrides::put))
        .routes(routes!(overrides::remove))
        .routes(routes!(explain::explain))
        .routes(routes!(top::top))
        .routes(routes!(health::health))
        .routes(routes!(events::events))
        .routes(routes!(audit::audit))
        // Bound the bodies, because a long key takes the time of a thread for each limit.
        .layer(DefaultBodyLimit::max(AdminOptions::LONGEST_JSON))
        .routes(routes!(document::get, document::put))
        .routes(routes!(check::check))
}
