//! Runs the admin API in this process, over the Redis of your services.

use core::time::Duration;
use std::env;

use axum::Router;
use axum::body::{Body, to_bytes};
use clap::Args;
use http::Response;
use tower_quota::{Policy, RateLimitLayer, RedisStore, redis::RedisStoreError};
use tower_quota_admin::{AdminOptions, Author};
use tower_quota_live::{LiveOptions, LiveRules, RedisRules, WithoutRules};
use tower_quota_rules::Rules;
use tower_service::Service;

use super::api::SendRequest;
use crate::failure::Failure;
use crate::rules::load::{LoadArguments, parts};

const SECRET_VARIABLE: &str = "TOWER_QUOTA_SECRET";
const KEY_SEED_VARIABLE: &str = "TOWER_QUOTA_KEY_SEED";

/// The options that your services use for their Redis.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RedisArguments {
    /// The name of the rules in Redis.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
    /// The prefix of the counters in Redis, if your services set a prefix. Their secrets are read
    /// from the variables `TOWER_QUOTA_SECRET` (of counters) and `TOWER_QUOTA_KEY_SEED` (of hashed
    /// keys, 32 hexadecimal digits).
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Stores the keys of blocks next to their hashes.
    #[arg(long)]
    pub(crate) readable_keys: bool,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

/// Creates the API over the Redis at a URL. `authorities` are trusted certificates in PEM.
pub(super) fn api(
    url: &str,
    authorities: Option<Vec<u8>>,
    arguments: &RedisArguments,
    timeout: Duration,
) -> Result<Box<SendRequest>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::usage)?;
    let (live, router) = runtime.block_on(router(url, authorities, arguments, timeout))?;
    let user = env::var("USER").ok().filter(|user| !user.is_empty());
    let author = Author(user.unwrap_or_else(|| "tower-quota".into()));
    Ok(Box::new(move |request| {
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(author.clone());
        let mut router = router.clone();
        runtime.block_on(async {
            // Read the rules before each request. The runtime pauses between requests, so no
            // background task follows them.
            live.refresh().await;
            let Ok(response) = router.call(request).await;
            let (head, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await;
            let body = body.map_err(|error| Failure::Unreachable(error.to_string()))?;
            let body = String::from_utf8_lossy(&body).into_owned();
            Ok(Response::from_parts(head, body))
        })
    }))
}

async fn router(
    url: &str,
    authorities: Option<Vec<u8>>,
    arguments: &RedisArguments,
    timeout: Duration,
) -> Result<(LiveRules, Router), Failure> {
    let mut options = RedisStore::options()
        .deadline(timeout)
        .connect_timeout(timeout);
    if let Some(prefix) = &arguments.prefix {
        options = options.prefix(prefix);
    }
    if let Some(pem) = authorities {
        options = options.root_certificates(pem);
    }
    if let Ok(secret) = env::var(SECRET_VARIABLE) {
        options = options.secret(secret);
    }
    let counters = options.connect(url).await.map_err(|error| match error {
        RedisStoreError::Config(error) => Failure::Usage(error.to_string()),
        error => Failure::Unreachable(error.to_string()),
    })?;
    let rules = RedisRules::from_store(&counters, &arguments.name).map_err(Failure::usage)?;
    let code = arguments.load.code.clone();
    let mut options = LiveOptions::new()
        .start_deadline(timeout)
        // Start without rules, because the command may put the first ones.
        .without_rules(WithoutRules::Refuse)
        .read_with(move |text| Rules::parse_with(text, &parts(&code)));
    if let Ok(seed) = env::var(KEY_SEED_VARIABLE) {
        options = options.key_seed(key_seed(&seed)?);
    }
    if arguments.readable_keys {
        options = options.readable_keys();
    }
    let layer = RateLimitLayer::new(counters, Policy::new());
    let live = LiveRules::start(layer.handle(), rules, options)
        .await
        .map_err(Failure::usage)?;
    let state = live.state();
    if !state.is_reachable {
        return Err(Failure::Unreachable(
            state
                .last_error
                .unwrap_or_else(|| format!("{} does not answer", state.store)),
        ));
    }
    let options = AdminOptions::new()
        .authenticated_by_own_layer()
        .allow_showing_keys()
        .timeout(timeout);
    let router = tower_quota_admin::router(live.clone(), options);
    Ok((live, router.map_err(Failure::usage)?))
}

/// Reads a seed of 16 bytes in hexadecimal digits.
fn key_seed(text: &str) -> Result<[u8; 16], Failure> {
    let number = u128::from_str_radix(text.trim(), 16)
        .ok()
        .filter(|_| text.trim().len() == 32);
    let number = number.ok_or_else(|| {
        Failure::Usage(format!("{KEY_SEED_VARIABLE} is not 32 hexadecimal digits"))
    })?;
    Ok(number.to_be_bytes())
}
