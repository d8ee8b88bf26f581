//! Tests across the crates of tower-quota. The doc tests compile and run the code of all READMEs.

/// Turns the code blocks of a page into doc tests.
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
