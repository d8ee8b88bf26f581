//! Each pair of layers that is a service without the limit is one with it, in each of its three places.

use std::marker::PhantomData;

use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer as TowerTimeoutLayer;
use tower::{BoxError, Layer, Service};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use crate::each_layer::{LONG, Once, SET};
use crate::handler::Handler;
use crate::limited::limited;

/// A service that hyper can serve.
trait Servable {}

impl<S, B> Servable for S
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
}

/// Asks whether a type is [`Servable`]: its own method is found before that of [`Otherwise`].
struct Probe<S>(PhantomData<S>);

impl<S: Servable> Probe<S> {
    fn is_servable(&self) -> bool {
        true
    }
}

trait Otherwise {
    fn is_servable(&self) -> bool {
        false
    }
}

impl<S> Otherwise for Probe<S> {}

/// Returns the type of a service behind a layer, without making it.
fn behind<L: Layer<S>, S>(_: &L, _: PhantomData<S>) -> PhantomData<L::Service> {
    PhantomData
}

/// Two layers around each other, and whether they are a service: alone, and with the limit outside, between, and inside.
struct Pair {
    outer: &'static str,
    inner: &'static str,
    alone: bool,
    limited: [bool; 3],
}

/// Probes each of these layers around each.
macro_rules! pairs {
    (@row $pairs:ident, $limit:ident, $outer:ident: $outer_layer:expr, [$($inner:ident: $inner_layer:expr;)*]) => {
        $({
            let (outer, inner, handler) = (&$outer_layer, &$inner_layer, PhantomData::<Handler>);
            let alone = behind(outer, behind(inner, handler));
            let outside = behind(&$limit, alone);
            let between = behind(outer, behind(&$limit, behind(inner, handler)));
            let inside = behind(outer, behind(inner, behind(&$limit, handler)));
            $pairs.push(Pair {
                outer: stringify!($outer),
                inner: stringify!($inner),
                alone: Probe(alone).is_servable(),
                limited: [
                    Probe(outside).is_servable(),
                    Probe(between).is_servable(),
                    Probe(inside).is_servable(),
                ],
            });
        })*
    };
    (@rows $pairs:ident, $limit:ident, $all:tt, $($outer:ident: $layer:expr;)*) => {
        $(pairs!(@row $pairs, $limit, $outer: $layer, $all);)*
    };
    ($($layers:tt)*) => {
        fn pairs() -> Vec<Pair> {
            let limit = limited();
            let mut pairs = Vec::new();
            pairs!(@rows pairs, limit, [$($layers)*], $($layers)*);
            pairs
        }
    };
}

pairs! {
    trace: TraceLayer::new_for_http();
    cors: CorsLayer::permissive();
    timeout: TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, LONG);
    compression: CompressionLayer::new();
    decompression: DecompressionLayer::new();
    request_decompression: RequestDecompressionLayer::new();
    request_body_limit: RequestBodyLimitLayer::new(1_000);
    catch_panic: CatchPanicLayer::new();
    set_request_header: SetRequestHeaderLayer::overriding(SET, HeaderValue::from_static("set"));
    set_response_header: SetResponseHeaderLayer::overriding(SET, HeaderValue::from_static("set"));
    normalize_path: NormalizePathLayer::trim_trailing_slash();
    concurrency_limit: ConcurrencyLimitLayer::new(8);
    load_shed: LoadShedLayer::new();
    tower_timeout: TowerTimeoutLayer::new(LONG);
    retry: RetryLayer::new(Once);
}

#[test]
fn limited_pair_is_servable_where_pair_is() {
    for pair in pairs() {
        let worse = pair.alone && pair.limited.contains(&false);
        assert!(
            !worse,
            "{} around {}: {:?}",
            pair.outer, pair.inner, pair.limited
        );
    }
}

/// Bodies without a default are what some layers lack of others; the limit's own body has one.
#[test]
fn pairs_without_default_bodies_need_limit_between() {
    let pairs = pairs();
    let missing: Vec<_> = pairs
        .iter()
        .filter(|pair| !pair.alone)
        .map(|pair| (pair.outer, pair.inner))
        .collect();
    let expected = [
        ("cors", "trace"),
        ("cors", "request_body_limit"),
        ("timeout", "trace"),
        ("timeout", "request_body_limit"),
    ];
    assert_eq!(missing, expected);
    for pair in pairs.iter().filter(|pair| !pair.alone) {
        assert_eq!(
            pair.limited,
            [false, true, false],
            "{} around {}",
            pair.outer,
            pair.inner
        );
    }
}
