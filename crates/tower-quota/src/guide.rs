//! Guides: moving from other limiters, and one task each.
//!
//! These modules hold no items. Their pages are `docs/guide` in the repository, and their code blocks are doc tests.

/// Defines the links between the guides. In the pages the same names link to files; the first definition counts.
macro_rules! links {
    ($($name:literal)*) => {
        concat!($("[", $name, "]: crate::guide::", $name, "\n"),*)
    };
}

/// Makes a module of each page. A page whose code needs a feature is tested if that feature is enabled.
macro_rules! guides {
    ($($(#[$needs:meta])? $name:ident;)*) => {
        $(
            $(#[cfg(any(not(doctest), $needs))])?
            #[doc = links! {
                "from_governor" "from_tower_governor" "from_express_rate_limit" "from_limitador_or_envoy"
                "behind_a_proxy" "nesting_in_axum" "choosing_an_algorithm" "without_http" "clients" "grpc" "operations" "metrics"
                "outages" "leases" "regions" "live_rules" "admin" "command_line" "testing_your_limits" "writing_a_store"
                "adding_an_algorithm"
            }]
            // The picture is embedded as a link target, because published documentation has no separate files.
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
    #[feature = "axum"] behind_a_proxy;
    #[feature = "axum"] nesting_in_axum;
    choosing_an_algorithm;
    #[all(feature = "axum", feature = "throttle")] without_http;
    clients;
    #[feature = "tonic"] grpc;
    operations;
    #[all(feature = "axum", feature = "metrics", feature = "top")] metrics;
    #[feature = "redis"] outages;
    #[all(feature = "lease", feature = "redis")] leases;
    #[all(feature = "lease", feature = "redis")] regions;
    // Their code needs crates that depend on this one: their own tests, and those across crates, compile it.
    #[any()] live_rules;
    #[any()] admin;
    command_line;
    testing_your_limits;
    writing_a_store;
    adding_an_algorithm;
}
