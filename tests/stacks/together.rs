//! All layers at once, with the limit outside of them, in their middle, and inside.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use tower::ServiceBuilder;
use tower::buffer::BufferLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer as TowerTimeoutLayer;
use tower::util::{BoxCloneService, BoxCloneSyncService};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::map_response_body::MapResponseBodyLayer;
use tower_http::normalize_path::NormalizePathLayer;

use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::sensitive_headers::SetSensitiveHeadersLayer;
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use crate::each_layer::{LONG, Once, SET, SameId, assert_holds};

/// Adds the layers that watch and guard a service.
macro_rules! guarded {
    ($builder:expr) => {
        $builder
            .layer(SetRequestIdLayer::x_request_id(SameId))
            .layer(PropagateRequestIdLayer::x_request_id())
            .layer(SetSensitiveHeadersLayer::new([SET]))
            .layer(TraceLayer::new_for_http())
            .layer(RequestBodyLimitLayer::new(1_000))
            .layer(MapRequestBodyLayer::new(axum::body::Body::new))
            .layer(CatchPanicLayer::new())
            .layer(CorsLayer::permissive())
            .layer(TimeoutLayer::with_status_code(
                StatusCode::REQUEST_TIMEOUT,
                Duration::from_secs(60),
            ))
            .layer(SetResponseHeaderLayer::overriding(
                SET,
                HeaderValue::from_static("set"),
            ))
            .layer(BoxCloneSyncService::layer())
    };
}

/// Adds the layers that change requests and responses, and those that hold requests up.
macro_rules! changed {
    ($builder:expr) => {
        $builder
            .layer(CompressionLayer::new())
            .layer(DecompressionLayer::new())
            .layer(RequestDecompressionLayer::new())
            .layer(NormalizePathLayer::trim_trailing_slash())
            .layer(ValidateRequestHeaderLayer::accept("text/html"))
            .layer(MapResponseBodyLayer::new(axum::body::Body::new))
            .layer(SetRequestHeaderLayer::overriding(
                SET,
                HeaderValue::from_static("set"),
            ))
            .layer(BufferLayer::new(8))
            .layer(LoadShedLayer::new())
            .layer(ConcurrencyLimitLayer::new(8))
            .layer(TowerTimeoutLayer::new(LONG))
            .layer(RetryLayer::new(Once))
            .layer(BoxCloneService::layer())
    };
}

#[tokio::test]
async fn all_layers_inside_compose() {
    assert_holds(|limited, handler| {
        changed!(guarded!(ServiceBuilder::new().layer(limited))).service(handler)
    })
    .await;
}

#[tokio::test]
async fn all_layers_around_compose() {
    assert_holds(|limited, handler| {
        changed!(guarded!(ServiceBuilder::new()).layer(limited)).service(handler)
    })
    .await;
}

#[tokio::test]
async fn all_layers_outside_compose() {
    assert_holds(|limited, handler| {
        changed!(guarded!(ServiceBuilder::new()))
            .layer(limited)
            .service(handler)
    })
    .await;
}
