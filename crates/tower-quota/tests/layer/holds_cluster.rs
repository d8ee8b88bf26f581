//! Units that requests hold in a real Redis cluster.

use http::Request;
use tower::Layer;
use tower_quota::{Check, Key, Limit, Name, Quota, RateLimitLayer, RedisStore, key};
use tower_quota_dev::RedisCluster;

use crate::fixture::{Answer, Inner};
use crate::shared::{answer_to, policy_of, secs};

struct Cluster {
    layer: RateLimitLayer<RedisStore>,
    user: String,
    _servers: RedisCluster,
}

impl Cluster {
    /// Counts `streams` by API key, and another limit by a user on another partition.
    async fn new(by_user: Limit) -> Self {
        let servers = RedisCluster::start();
        let options = RedisStore::options().deadline(secs(5));
        let url = format!("redis+cluster://127.0.0.1:{}", servers.node(0).port());
        let store = options.connect(&url).await.unwrap();
        let partition = |scope, id: &str| {
            let key = store.key_of(&Key::owned(Name::new(scope), id));
            key.split(['{', '}']).nth(1).unwrap().to_owned()
        };
        let streams_at = partition("header x-api-key", "ann");
        let mut users = (0..).map(|number: u32| number.to_string());
        let is_elsewhere = |user: &String| partition("header x-user", user) != streams_at;
        let user = users.find(is_elsewhere).unwrap();
        let streams = Limit::new("streams", Quota::concurrent(2)).by(key::header("x-api-key"));
        let by_user = by_user.by(key::header("x-user"));
        let policy = policy_of(streams).limit(by_user);
        Self {
            layer: RateLimitLayer::new(store, policy),
            user,
            _servers: servers,
        }
    }

    async fn get(&self) -> Answer {
        let request = Request::get("/")
            .header("x-api-key", "ann")
            .header("x-user", &self.user);
        let service = self.layer.layer(Inner::default());
        answer_to(&service, request.body(()).unwrap()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_of_two_keys_are_a_mistake() {
    let uploads = Limit::new("uploads", Quota::concurrent(5));
    let cluster = Cluster::new(uploads).await;
    for failures in 1..3 {
        assert_eq!(cluster.get().await.status(), 500);
        let mistakes = cluster.layer.handle().mistakes();
        assert_eq!(mistakes.count(Check::Undecidable), failures);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_on_other_key_decides_nothing() {
    let uploads = Limit::new("uploads", Quota::concurrent(1)).shadow();
    let cluster = Cluster::new(uploads).await;
    let open = [cluster.get().await, cluster.get().await];
    assert_eq!(
        open.each_ref().map(|answer| answer.status().as_u16()),
        [200; 2]
    );
    assert_eq!(cluster.get().await.status(), 429);
    drop(open);
    let released = async { while cluster.get().await.status() != 200 {} };
    tokio::time::timeout(secs(5), released).await.unwrap();
    assert_eq!(
        cluster.layer.handle().mistakes().count(Check::Undecidable),
        0
    );
}
