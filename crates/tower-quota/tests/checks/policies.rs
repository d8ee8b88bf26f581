//! Policies that refuse everything, and policies that limit nothing.

use tower_quota::{Charge, Check, Limit, Policy, Quota, RequestHead, key};

use crate::fixture::{Client, app, in_memory, is_silent, minute, proves};

#[tokio::test]
async fn policy_that_blocks_everything_is_reported() {
    let blocking = || in_memory(Policy::new().limit(minute()).block(|_| true));
    proves(Check::RefusesAll, 1_000, blocking, async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(1_000, "")
            .await;
    })
    .await;
}

#[tokio::test]
async fn cost_that_never_fits_is_reported() {
    let costly = || {
        Limit::new("minute", Quota::per_minute(10))
            .by(key::client_ip())
            .cost_with(|_| 11)
    };
    proves(
        Check::RefusesAll,
        1_000,
        || in_memory(Policy::new().limit(costly())),
        async |layer| {
            Client::of(app().layer(layer))
                .await
                .get_paths(1_000, "")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn one_admitted_request_disproves_refusals() {
    let one = Policy::new().limit(Limit::new("minute", Quota::per_hour(1)));
    is_silent(in_memory(one), async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(1_200, "")
            .await;
    })
    .await;
    let private = Policy::new()
        .limit(minute())
        .allow(|head| head.path() == "/0")
        .block(|_| true);
    is_silent(in_memory(private), async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(1_200, "")
            .await;
    })
    .await;
}

#[tokio::test]
async fn policy_without_limits_is_reported() {
    proves(
        Check::NoLimits,
        1_000,
        || in_memory(Policy::new()),
        async |layer| {
            Client::of(app().layer(layer))
                .await
                .get_paths(1_100, "")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn request_with_too_many_limits_is_reported() {
    let crowded = || {
        (0..=Charge::MOST).fold(Policy::new(), |policy, number| {
            let limit = Limit::new(format!("limit-{number}"), Quota::per_hour(1_000));
            policy.limit(limit.when(|head: &RequestHead<'_>| head.path() == "/0"))
        })
    };
    proves(
        Check::TooManyLimits,
        1,
        || in_memory(crowded()),
        async |layer| {
            Client::of(app().layer(layer)).await.get_paths(9, "").await;
        },
    )
    .await;
}

#[tokio::test]
async fn block_list_without_limits_is_silent() {
    is_silent(in_memory(Policy::new().block(|_| false)), async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(1_100, "")
            .await;
    })
    .await;
}

#[tokio::test]
async fn shadow_that_would_refuse_all_is_silent() {
    let shadow = Limit::new("minute", Quota::per_minute(10))
        .cost_with(|_| 11)
        .shadow();
    is_silent(in_memory(Policy::new().limit(shadow)), async |layer| {
        Client::of(app().layer(layer))
            .await
            .get_paths(1_100, "")
            .await;
    })
    .await;
}
