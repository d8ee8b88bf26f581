//! Guides for single tasks and for moving from other limiters.
//!
//! Code blocks of the pages in `docs/guide` are doc tests.

/// Defines links to files of the repository, which the published documentation does not contain.
macro_rules! files {
    ($($name:literal: $path:literal;)*) => {
        macro_rules! file_links {
            () => {
                concat!($(
                    "[", $name, "]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/v", env!("CARGO_PKG_VERSION"), "/",
                    $path, "\n",
                )*)
            };
        }
    };
}

files! {
    "answers": "docs/reference/answers.md";
    "answers-grpc": "docs/reference/answers.md#grpc";
    "changelog": "CHANGELOG.md";
    "close_connection": "tests/stacks/close_connection.rs";
    "distributed-measurements": "docs/measurements/distributed.md";
    "code_and_documents": "docs/reference/code_and_documents.md";
    "crossings": "docs/reference/crossings.md";
    "exact_leases": "docs/reference/exact_leases.md";
    "examples-readme": "examples/README.md";
    "faults": "docs/reference/faults.md";
    "fetch_with_retry": "examples/clients/fetch_with_retry.mjs";
    "memory-measurements": "docs/measurements/memory.md";
    "layer-measurements": "docs/measurements/layer.md";
    "metrics": "docs/reference/metrics.md";
    "mistakes": "docs/reference/mistakes.md";
    "open_with_retry": "examples/clients/open_with_retry.py";
    "ops-readme": "ops/README.md";
    "outage-measurements": "docs/measurements/distributed.md#an-outage-of-redis";
    "page-block": "docs/images/page-block.png?raw=true";
    "page-redis-down": "docs/images/page-redis-down.png?raw=true";
    "peers": "docs/reference/peers.md";
    "redis-measurements": "docs/measurements/redis.md";
    "retry": "examples/clients/retry.go";
    "rules_in_consul": "examples/rules_in_consul/rules_in_consul.rs";
    "rules-end": "docs/reference/rules.md#end";
    "rules-include": "docs/reference/rules.md#include";
    "rules-limits": "docs/reference/rules.md#limits";
    "rules-paths": "docs/reference/rules.md#paths-that-your-service-treats-alike";
    "rules-penalty": "docs/reference/rules.md#penalty";
    "rules-reference": "docs/reference/rules.md";
    "rules-tiers": "docs/reference/rules.md#tiers-assignments-overrides";
    "security": "SECURITY.md";
    "server": "docs/reference/server.md";
    "server-readme": "crates/tower-quota-server/README.md";
    "servers": "docs/reference/servers.md";
    "simulation": "docs/reference/simulation.md";
    "sizing": "docs/measurements/sizing.md";
    "stacks": "docs/reference/stacks.md";
}

/// Tests a page only if the needed feature is enabled.
macro_rules! guides {
    ($($(#[$needs:meta])? $name:ident;)*) => {
        $(
            $(#[cfg(any(not(doctest), $needs))])?
            // The pages define the links again, as files, but the first definition counts.
            #[doc = include_str!("../guide/links.txt")]
            #[doc = file_links!()]
            // Published documentation has no separate files.
            #[doc = include_str!("../guide/drawing.txt")]
            #[doc = ""]
            #[doc = include_str!(concat!("../guide/", stringify!($name), ".md"))]
            pub mod $name {}
        )*
    };
}

guides! {
    from_governor;
    #[feature = "axum"] from_tower_governor;
    #[feature = "axum"] from_express_rate_limit;
    from_limitador_or_envoy;
    from_nginx;
    #[feature = "axum"] recipes;
    #[all(feature = "axum", feature = "calendar")] plans_and_usage;
    where_to_put_limits;
    why;
    production_checklist;
    upgrading;
    #[feature = "axum"] behind_a_proxy;
    #[feature = "axum"] nesting_in_axum;
    choosing_an_algorithm;
    #[feature = "axum"] holds_and_soft_limits;
    #[any()] shedding;
    #[all(feature = "axum", feature = "throttle")] without_http;
    clients;
    #[feature = "tonic"] grpc;
    #[all(feature = "axum", feature = "metrics", feature = "top")] operations;
    #[feature = "redis"] outages;
    #[all(feature = "lease", feature = "redis")] leases;
    #[all(feature = "lease", feature = "redis")] regions;
    // Crates that depend on tower-quota test the code.
    #[any()] live_rules;
    #[any()] admin;
    command_line;
    testing_your_limits;
    writing_a_store;
    server_with_envoy;
    server_with_nginx;
    server_with_caddy;
    server_with_python;
}
