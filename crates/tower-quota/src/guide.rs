//! Guides for single tasks and for moving from other limiters.
//!
//! Code blocks of the pages in `docs/guide` are doc tests.

/// Tests a page only if the needed feature is enabled.
macro_rules! guides {
    ($($(#[$needs:meta])? $name:ident;)*) => {
        $(
            $(#[cfg(any(not(doctest), $needs))])?
            // The pages define the links again, as files, but the first definition counts.
            #[doc = include_str!("../guide/links.txt")]
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
    recipes;
    where_to_put_limits;
    production_checklist;
    upgrading;
    #[feature = "axum"] behind_a_proxy;
    #[feature = "axum"] nesting_in_axum;
    choosing_an_algorithm;
    #[feature = "axum"] holds_and_soft_limits;
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
}
