//! Types that a user can name, and choices at run time.

use http::{Request, StatusCode};
use tower::Layer;
use tower_quota::{BoxStore, MemoryStore, RateLimit, RateLimitLayer, key};

use crate::fixture::{Inner, slow_store};
use crate::shared::{answer_to, per_hour, policy_of};

struct App {
    layer: RateLimitLayer<BoxStore>,
    service: RateLimit<Inner, BoxStore>,
}

impl App {
    /// Makes an app from text values, as from a configuration file.
    fn configured(store: &str, by: &[&str]) -> Self {
        let store = match store {
            "memory" => BoxStore::new(MemoryStore::new()),
            _ => BoxStore::new(slow_store()),
        };
        let parts: Vec<Box<dyn key::KeyExtractor>> = by
            .iter()
            .map(|by| match *by {
                "method" => Box::new(key::method()) as Box<dyn key::KeyExtractor>,
                header => Box::new(key::try_header(header).unwrap()),
            })
            .collect();
        let policy = policy_of(per_hour(String::from("hour"), 1).by(key::all(parts)));
        let layer = RateLimitLayer::new(store, policy);
        Self {
            service: layer.layer(Inner::default()),
            layer,
        }
    }
}

#[tokio::test]
async fn store_and_extractor_are_chosen_at_runtime() {
    for store in ["memory", "slow"] {
        let app = App::configured(store, &["method", "x-user"]);
        let ask = async |method: &str, user: &str| {
            let request = Request::builder()
                .method(method)
                .header("x-user", user)
                .body(())
                .unwrap();
            answer_to(&app.service, request).await.status()
        };
        assert_eq!(ask("GET", "ann").await, StatusCode::OK);
        assert_eq!(ask("GET", "ann").await, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(ask("GET", "bob").await, StatusCode::OK);
        assert_eq!(ask("PUT", "ann").await, StatusCode::OK);

        // All services of a layer share their counters.
        let another = app.layer.clone().layer(Inner::default());
        let again = Request::get("/").header("x-user", "ann").body(()).unwrap();
        assert_eq!(answer_to(&another, again).await.status(), 429);
    }
}

#[test]
fn everything_can_be_shared_and_shown() {
    fn shareable<T: Clone + Send + Sync + std::fmt::Debug + 'static>(_: &T) {}

    let layer = RateLimitLayer::new(MemoryStore::new(), policy_of(per_hour("a", 1)));
    shareable(&layer);
    shareable(
        &layer.layer(tower::util::service_fn(async |_: Request<()>| {
            Ok::<_, ()>(())
        })),
    );
}
