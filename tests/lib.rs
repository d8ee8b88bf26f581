//! Tests across tower-quota's crates; what their READMEs show is compiled and run here.

/// Makes doc tests of a page's code blocks.
macro_rules! pages {
    ($($name:ident: $page:literal)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($page)]
            struct $name;
        )*
    };
}

pages! {
    Project: "../README.md"
    Layer: "../crates/tower-quota/README.md"
    Core: "../crates/tower-quota-core/README.md"
    Redis: "../crates/tower-quota-redis/README.md"
    Lease: "../crates/tower-quota-lease/README.md"
    Rules: "../crates/tower-quota-rules/README.md"
    Live: "../crates/tower-quota-live/README.md"
    Admin: "../crates/tower-quota-admin/README.md"
    AdminGuide: "../docs/guide/admin.md"
    Testkit: "../crates/tower-quota-testkit/README.md"
}
