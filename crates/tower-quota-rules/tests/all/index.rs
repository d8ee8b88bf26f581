//! Compares the index with a matcher without an index, on random documents and requests.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;

use http::Request;
use http::header::HOST;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tower_quota::{Quota, RequestHead, when};
use tower_quota_rules::{
    AssignRule, Document, Grant, KeyPattern, LimitRule, Many, Match, OutcomeText, OverrideRule,
    PathMatch, QuotaText, RouteRule, Rules, TierRule, TierText,
};

/// A request in the form that the matcher without an index reads.
#[derive(Clone, Debug)]
struct Asked {
    method: &'static str,
    path: &'static str,
    hosts: Vec<&'static str>,
    keys: Vec<&'static str>,
    plans: Vec<&'static str>,
    address: Ipv4Addr,
}

const KEYS: [&str; 7] = [
    "sk_free_1",
    "sk_free_2",
    "sk_pro_1",
    "sk_pro",
    "sk",
    "other",
    "x-free",
];
const KEY_PATTERNS: [&str; 9] = [
    "sk_free_*",
    "sk_*",
    "sk_pro_1",
    "*",
    "*free*",
    "sk_pro?1",
    "s*_1",
    "other",
    "sk_pro*",
];
const PATHS: [&str; 10] = [
    "/{a/7",
    "//x",
    "/",
    "/v1/users",
    "/v1/users/7",
    "/v1/users/7/",
    "/v2/files/a/b",
    "/v2/files/",
    "/v3",
    "/v1",
];
const PATH_PATTERNS: [&str; 12] = [
    "/{{a/{id}",
    "//{x}",
    "/v1/{*rest}",
    "/v1/users/{id}",
    "/v1/{kind}",
    "/v2/files/{*rest}",
    "/{*rest}",
    "/v{n}",
    "/v1/users",
    "/{a}/{b}/{c}",
    "/",
    "/v1/users/{id}/",
];
const REGEXES: [&str; 6] = [
    "^/v1/users/",
    "^/v2/files/[a-c]",
    "^/v[12]/",
    "users$",
    "^/v3$",
    "files|users/7",
];
const SERVICES: [&str; 3] = ["v1", "v2", "v3"];
const METHODS: [&str; 3] = ["v1/users", "v2/files", "v3/x"];
const HOSTS: [&str; 5] = [
    "example.com",
    "api.example.com",
    "a.b.example.com",
    "other.org",
    "API.example.com:80",
];
const HOST_PATTERNS: [&str; 4] = [
    "example.com",
    "*.example.com",
    "api.example.com",
    "*.b.example.com",
];
const NETWORKS: [&str; 5] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "192.0.2.0/24",
    "0.0.0.0/0",
];

fn asked() -> impl Strategy<Value = Asked> {
    let address = select(vec![
        [10, 1, 2, 3],
        [10, 1, 9, 9],
        [10, 9, 9, 9],
        [192, 0, 2, 7],
        [203, 0, 113, 1],
    ]);
    let values = (
        vec(select(&KEYS[..]), 0..3),
        vec(select(vec!["pro", "pro-max", "free"]), 0..3),
    );
    let target = (
        select(vec!["GET", "POST", "PUT", "HEAD"]),
        select(&PATHS[..]),
        vec(select(&HOSTS[..]), 1..3),
    );
    (target, values, address).prop_map(|((method, path, hosts), (keys, plans), address)| Asked {
        method,
        path,
        hosts,
        keys,
        plans,
        address: address.into(),
    })
}

fn many<T: std::fmt::Debug + Clone>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<Many<T>>> {
    prop_oneof![3 => Just(None), 1 => vec(values, 1..3).prop_map(|values| Some(Many(values)))]
}

/// Returns values parsed from one of the texts.
fn parsed<T: std::str::FromStr + std::fmt::Debug + Clone>(
    texts: &'static [&'static str],
) -> impl Strategy<Value = T> {
    select(texts).prop_map(|text| text.parse().ok().unwrap())
}

fn path() -> impl Strategy<Value = PathMatch> {
    prop_oneof![
        3 => parsed(&PATH_PATTERNS).prop_map(PathMatch::Pattern),
        1 => parsed(&REGEXES).prop_map(|regex| PathMatch::Regex { regex }),
    ]
}

fn simple_match() -> impl Strategy<Value = Match> {
    let fields = (
        many(parsed(&["GET", "POST"])),
        many(parsed(&HOST_PATTERNS)),
        many(path()),
        many(parsed(&KEY_PATTERNS)),
        many(parsed(&NETWORKS)),
        many(parsed(&["pro*", "free", "*"])),
        many(parsed(&SERVICES)),
        many(parsed(&METHODS)),
    );
    fields.prop_map(
        |(method, host, path, key, network, plan, grpc_service, grpc_method)| {
            let header = plan.map(|plan| ("x-plan".parse().unwrap(), plan));
            Match {
                method,
                host,
                path,
                key,
                network,
                grpc_service,
                grpc_method,
                header: header.into_iter().collect(),
                ..Match::default()
            }
        },
    )
}

fn matching() -> impl Strategy<Value = Match> {
    (simple_match(), many(simple_match())).prop_map(|(matching, not)| Match { not, ..matching })
}

/// Returns matches for lists. Lists refuse a match for every request.
fn listed() -> impl Strategy<Value = Match> {
    let one = || Many(vec!["PUT".parse().unwrap()]);
    matching().prop_map(move |matching| Match {
        method: Some(matching.method.unwrap_or_else(one)),
        ..matching
    })
}

fn grants() -> impl Strategy<Value = BTreeMap<usize, Option<u64>>> {
    proptest::collection::btree_map(0..6_usize, of(1..9_u64), 0..4)
}

fn document() -> impl Strategy<Value = Document> {
    let limits = vec((many(matching()), many(matching())), 0..3);
    let routes = vec((matching(), many(simple_match())), 0..12);
    let tiers = vec((grants(), any::<bool>()), 0..3);
    let assign = vec(
        (many(parsed(&KEY_PATTERNS)), many(matching()), 0..3_usize),
        0..4,
    );
    let overrides = proptest::collection::btree_map(
        prop_oneof![select(&KEYS[..]), Just("10.1.2.3")],
        (of(0..3_usize), grants()),
        0..3,
    );
    let lists = (
        vec(listed(), 0..3),
        vec(listed(), 0..3),
        vec(listed(), 0..3),
    );
    ((limits, routes), (tiers, assign, overrides), lists).prop_map(
        |((limits, routes), (tiers, assign, overrides), lists)| {
            let mut names = 0..;
            let mut limit = |when, unless| {
                let name = format!("limit-{}", names.next().unwrap());
                LimitRule {
                    when,
                    unless,
                    ..LimitRule::new(name.parse().unwrap(), Quota::per_minute(100).into())
                }
            };
            let limits: Vec<LimitRule> = limits
                .into_iter()
                .map(|(when, unless)| limit(when, unless))
                .collect();
            let route = |(matching, when)| RouteRule {
                matching,
                limits: vec![limit(when, None)],
            };
            let routes: Vec<RouteRule> = routes.into_iter().map(route).collect();
            let count = limits.len() + routes.len();
            let grants = |grants: BTreeMap<usize, Option<u64>>| {
                let known = grants.into_iter().filter(|(limit, _)| *limit < count);
                let named = known.map(|(limit, units)| {
                    let grant = units.map_or(Grant::Unlimited, |units| {
                        Grant::Quota(Quota::per_hour(units).into())
                    });
                    (format!("limit-{limit}").parse().unwrap(), grant)
                });
                Arc::new(named.collect())
            };
            let (tier_count, tier) = (tiers.len(), |tier: usize| {
                format!("tier-{tier}").parse().unwrap()
            });
            let tiers = tiers
                .into_iter()
                .enumerate()
                .map(|(at, (limits, extends))| {
                    let extends = (extends && at > 0).then(|| tier(at - 1));
                    (
                        tier(at),
                        TierRule {
                            extends,
                            limits: grants(limits),
                        },
                    )
                });
            let assign = assign.into_iter().filter_map(|(key, mut when, of)| {
                // A document gives the key once.
                for matching in when.iter_mut().flat_map(|when| &mut when.0) {
                    matching.key.take_if(|_| key.is_some());
                }
                Some(AssignRule {
                    key,
                    when,
                    tier: (of < tier_count).then(|| TierText::Named(tier(of)))?,
                })
            });
            let overrides = overrides.into_iter().map(|(key, (of, limits))| {
                (
                    key.into(),
                    OverrideRule {
                        tier: of.filter(|of| *of < tier_count).map(tier),
                        limits: grants(limits),
                    },
                )
            });
            let mut document = Document {
                limits,
                routes,
                tiers: tiers.collect(),
                assign: assign.collect(),
                overrides: overrides.collect(),
                ..Document::default()
            };
            document.defaults = serde_json::from_str(
                r#"{ "key": ["header x-api-key", "client_ip"], "missing": "share" }"#,
            )
            .unwrap();
            (document.skip, document.allow, document.block) = lists;
            document
        },
    )
}

/// Returns whether any sent value matches. Without `in_doubt`, different values never match.
fn values_match(sent: &[&str], in_doubt: bool, matches: impl Fn(&[u8]) -> bool) -> bool {
    let is_one = sent.windows(2).all(|pair| pair[0] == pair[1]);
    (in_doubt || is_one) && sent.iter().any(|value| matches(value.as_bytes()))
}

/// Matches field by field, as the documentation describes.
fn matches(matching: &Match, asked: &Asked, head: &RequestHead<'_>, in_doubt: bool) -> bool {
    let on_host = |pattern: &str| {
        let mut hosts = asked
            .hosts
            .iter()
            .map(|host| host.to_ascii_lowercase().replace(":80", ""));
        let is_on = |host: String| match pattern.strip_prefix("*.") {
            Some(domain) => host.ends_with(&format!(".{domain}")),
            None => host == pattern,
        };
        if in_doubt {
            hosts.any(is_on)
        } else {
            hosts.all(is_on)
        }
    };
    let in_network = |network: &str| {
        let (net, bits) = network.split_once('/').unwrap_or((network, "32"));
        let (net, bits): (Ipv4Addr, u32) = (net.parse().unwrap(), bits.parse().unwrap());
        let shift = |address: Ipv4Addr| u64::from(address.to_bits()) >> (32 - bits);
        shift(net) == shift(asked.address)
    };
    let on_path = |path: &PathMatch| match path {
        PathMatch::Pattern(pattern) => when::path(pattern.as_str())(head),
        PathMatch::Regex { regex } => regex.regex().is_match(asked.path),
    };
    matching.method.as_ref().is_none_or(|many| {
        many.0.iter().any(|method| {
            method.as_str() == asked.method || (method.as_str(), asked.method) == ("GET", "HEAD")
        })
    }) && matching
        .host
        .as_ref()
        .is_none_or(|many| many.0.iter().any(|pattern| on_host(pattern.as_str())))
        && matching
            .path
            .as_ref()
            .is_none_or(|many| many.0.iter().any(on_path))
        && matching.grpc_service.as_ref().is_none_or(|many| {
            many.0
                .iter()
                .any(|name| asked.path.starts_with(&format!("/{name}/")))
        })
        && matching
            .grpc_method
            .as_ref()
            .is_none_or(|many| many.0.iter().any(|name| asked.path == format!("/{name}")))
        && matching
            .network
            .as_ref()
            .is_none_or(|many| many.0.iter().any(|network| in_network(network.as_str())))
        && matching.key.as_ref().is_none_or(|many| {
            values_match(&asked.keys, in_doubt, |value| {
                many.0.iter().any(|pattern| pattern.matches(value))
            })
        })
        && matching.header.values().all(|many| {
            values_match(&asked.plans, in_doubt, |value| {
                many.0.iter().any(|pattern| pattern.matches(value))
            })
        })
        && matching.not.as_ref().is_none_or(|many| {
            !many
                .0
                .iter()
                .any(|not| matches(not, asked, head, !in_doubt))
        })
}

/// Returns the outcome, the tier and the limits of a request, without an index.
fn expected(
    document: &Document,
    asked: &Asked,
    head: &RequestHead<'_>,
) -> (OutcomeText, Option<String>, Vec<(String, QuotaText)>) {
    let is_in = |list: &[Match], in_doubt| {
        list.iter()
            .any(|matching| matches(matching, asked, head, in_doubt))
    };
    let key = asked
        .keys
        .first()
        .filter(|first| asked.keys.iter().all(|key| key == *first));
    let address = asked.address.to_string();
    let own = if asked.keys.is_empty() {
        Some(&*address)
    } else {
        key.copied()
    };
    let own = own.and_then(|key| document.overrides.get(key));
    let assigned = || {
        let rules = document.assign.iter();
        rules
            .filter(|rule| {
                rule.key.as_ref().is_none_or(|many| {
                    let matches = |pattern: &KeyPattern| {
                        key.is_some_and(|key| pattern.matches(key.as_bytes()))
                    };
                    many.0.iter().any(matches)
                })
            })
            .filter(|rule| rule.when.as_ref().is_none_or(|many| is_in(&many.0, false)))
            .find_map(|rule| match &rule.tier {
                TierText::Named(name) => Some(name),
                TierText::Code(_) => None,
            })
    };
    let tier = own.and_then(|own| own.tier.as_ref()).or_else(assigned);
    let outcome = match () {
        () if is_in(&document.allow, false) => OutcomeText::Allowed,
        () if is_in(&document.block, true) => OutcomeText::Blocked,
        () if is_in(&document.skip, false) => OutcomeText::Skipped,
        () => OutcomeText::Counted,
    };
    let grant = |name: &str| {
        if let Some(grant) = own.and_then(|own| own.limits.get(name)) {
            return Some(*grant);
        }
        let mut next = tier;
        while let Some(tier) = next.and_then(|tier| document.tiers.get(tier)) {
            if let Some(grant) = tier.limits.get(name) {
                return Some(*grant);
            }
            next = tier.extends.as_ref();
        }
        None
    };
    let applies = |limit: &LimitRule| {
        limit.when.as_ref().is_none_or(|many| is_in(&many.0, true))
            && !limit
                .unless
                .as_ref()
                .is_some_and(|many| is_in(&many.0, false))
    };
    let routed = document
        .routes
        .iter()
        .filter(|route| matches(&route.matching, asked, head, true))
        .flat_map(|route| &route.limits);
    let limits = document
        .limits
        .iter()
        .chain(routed)
        .filter(|limit| applies(limit));
    let limits = limits.filter_map(|limit| match grant(limit.name.as_str()) {
        None => Some((limit.name.to_string(), limit.quota)),
        Some(Grant::Quota(quota)) => Some((limit.name.to_string(), quota)),
        Some(Grant::Unlimited) => None,
    });
    let limits = if outcome == OutcomeText::Counted {
        limits.collect()
    } else {
        Vec::new()
    };
    (outcome, tier.map(ToString::to_string), limits)
}

proptest! {
    #[test]
    fn index_finds_what_list_finds(document in document().prop_filter("valid", |document| Rules::new(document.clone()).is_ok()), requests in vec(asked(), 1..12)) {
        let rules = Rules::new(document.clone()).unwrap();
        for asked in requests {
            let mut request = Request::builder().method(asked.method).uri(asked.path);
            for host in &asked.hosts {
                request = request.header(HOST, *host);
            }
            for key in &asked.keys {
                request = request.header("x-api-key", *key);
            }
            for plan in &asked.plans {
                request = request.header("x-plan", *plan);
            }
            let request = request.extension(IpAddr::from(asked.address)).body(()).unwrap();
            let head = RequestHead::of(&request);
            let found = rules.explain(&head);
            let mut limits: Vec<_> = found.limits.into_iter().map(|limit| (limit.name, limit.quota)).collect();
            let (outcome, tier, mut expected) = expected(&document, &asked, &head);
            limits.sort_by_key(|(name, _)| name.clone());
            expected.sort_by_key(|(name, _)| name.clone());
            prop_assert_eq!((found.outcome, found.tier, limits), (outcome, tier, expected), "{:?}", asked);
        }
    }
}
