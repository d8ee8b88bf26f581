//! The documents that are measured.

use std::fmt::Write as _;

/// The size of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Ten,
    Thousand,
    TenThousand,
    Million,
}

/// Single keys with a quota of their own.
pub(super) const OVERRIDES: usize = 1_000_000;

impl Size {
    pub(super) const ALL: [Self; 4] = [Self::Ten, Self::Thousand, Self::TenThousand, Self::Million];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ten => "10-rules",
            Self::Thousand => "1k-rules",
            Self::TenThousand => "10k-rules",
            Self::Million => "10k-rules-1m-overrides",
        }
    }

    /// Returns the number of limits, two of which every request meets.
    const fn rules(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Thousand => 1_000,
            Self::TenThousand | Self::Million => 10_000,
        }
    }

    const fn routes(self) -> usize {
        self.rules() - 2
    }
}

/// Returns the key of a client. Each is one of the overridden ones, if there are any.
pub(super) fn client(number: usize) -> String {
    format!("sk_prod_{:07}", number * 97 % OVERRIDES)
}

/// Returns the path of a client's requests, which meets one route.
pub(super) fn path(size: Size, number: usize) -> String {
    let route = number % size.routes();
    match route % 5 {
        0 => format!("/v1/service-{route}/items"),
        1 => format!("/v1/service-{route}/items/{number}"),
        2 => format!("/v1/service-{route}/files/a/{number}"),
        3 => format!("/v2/{number}/resource-{route}"),
        _ => format!("/v3/service-{route}"),
    }
}

fn pattern(route: usize) -> String {
    match route % 5 {
        0 => format!("\"/v1/service-{route}/items\""),
        1 => format!("\"/v1/service-{route}/items/{{id}}\""),
        2 => format!("\"/v1/service-{route}/files/{{*rest}}\""),
        3 => format!("\"/v2/{{tenant}}/resource-{route}\""),
        _ => format!("\"/v3/service-{route}\", method: [GET, POST]"),
    }
}

/// Writes the document as YAML. Every request meets three of its limits.
pub(super) fn document(size: Size) -> String {
    let mut text = String::from(
        "defaults: { key: [header x-api-key, client_ip] }\n\
         limits:\n\
         - { name: everyone, quota: 10000000/second, key: none }\n\
         - { name: minute, quota: 10000000/minute }\n\
         tiers:\n  \
         free: {}\n  \
         pro: { extends: free, limits: { minute: 20000000/minute } }\n\
         assign:\n\
         - { key: \"sk_free_*\", tier: free }\n\
         - { key: [\"sk_prod_*\", \"sk_live_*\"], tier: pro }\n\
         block:\n\
         - { key: \"sk_revoked_*\" }\n\
         - { network: 198.51.100.0/24 }\n\
         routes:\n",
    );
    for route in 0..size.routes() {
        let pattern = pattern(route);
        _ = writeln!(
            text,
            "- {{ match: {{ path: {pattern} }}, limits: [{{ name: route-{route}, quota: 9000000/minute }}] }}"
        );
    }
    if size == Size::Million {
        text += "overrides:\n";
        text += &overrides();
    }
    text
}

/// Writes a million overrides, with a hundred different quotas.
pub(super) fn overrides() -> String {
    let mut text = String::with_capacity(64 * OVERRIDES);
    for key in 0..OVERRIDES {
        let units = 30_000_000 + key % 100;
        _ = writeln!(
            text,
            "  sk_prod_{key:07}: {{ limits: {{ minute: {units}/minute }} }}"
        );
    }
    text
}
