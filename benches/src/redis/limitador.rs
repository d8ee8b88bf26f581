//! limitador with its Redis storage, as its server uses it: it reads counters in one command and updates them in a
//! pipeline of one script call per limit.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use limitador::AsyncRateLimiter;
use limitador::limit::{Context, Limit};
use limitador::storage::redis::AsyncRedisStorage;

use super::shape::{Request, Shape};

pub(super) async fn prepare(url: &str) -> Result<Arc<AsyncRateLimiter>, Box<dyn Error>> {
    let limiter = AsyncRateLimiter::new_with_storage(Box::new(AsyncRedisStorage::new(url).await?));
    // What limitador calls a namespace is a list of limits.
    for shape in [Shape::One, Shape::Three] {
        for ask in shape.request(0).asks {
            let variables = vec!["user".try_into()?];
            limiter.add_limit(Limit::new(
                shape.scope(),
                ask.units,
                ask.period / 1_000_000,
                vec![],
                variables,
            ));
        }
    }
    Ok(Arc::new(limiter))
}

/// Returns whether it answered. It asks one limit or three on one key.
pub(super) async fn decide(limiter: &AsyncRateLimiter, shape: Shape, draw: u64) -> bool {
    let Request { client, .. } = shape.request(draw);
    let namespace = if shape == Shape::One {
        shape
    } else {
        Shape::Three
    }
    .scope();
    let context = Context::from(HashMap::from([(
        "user".to_owned(),
        format!("{client:016}"),
    )]));
    limiter
        .check_rate_limited_and_update(&namespace.into(), &context, 1)
        .await
        .is_ok()
}
