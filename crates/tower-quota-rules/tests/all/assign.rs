//! Tests of assignments by header, claim and code.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use http::Request;
use tower_quota::{RequestHead, key};
use tower_quota_rules::{CodeParts, Rules, SampleRequest, Tier};

const BASE: &str = "
limits: [{ name: minute, quota: 5/minute }]
tiers: { pro: { limits: { minute: 50/minute } }, max: { limits: { minute: 500/minute } } }
";

fn parts() -> CodeParts {
    CodeParts::new()
        .claim("plan", key::from_fn("plan claim", |_| None::<String>))
        .tier("account", |head| {
            let name = head.extensions().get::<&'static str>()?;
            Some(Tier::new(*name))
        })
}

fn rules(assign: &str) -> Rules {
    Rules::parse_with(&format!("{BASE}{assign}"), &parts()).unwrap()
}

/// Returns the tier of a request, what has given it, the quota and what has given that.
fn explained(rules: &Rules, request: &Request<()>) -> [String; 4] {
    let explanation = rules.explain(&RequestHead::of(request));
    let limit = &explanation.limits[0];
    [
        explanation.tier.unwrap_or_default(),
        explanation.tier_from.unwrap_or_default(),
        limit.quota.to_string(),
        limit.source.to_string(),
    ]
}

fn request(name: &str, value: &str) -> Request<()> {
    let address = std::net::IpAddr::from([192, 0, 2, 7]);
    let request = Request::get("/").header(name, value).extension(address);
    request.body(()).unwrap()
}

#[test]
fn header_assigns_tier() {
    let rules = rules(
        "
trusted_headers: [x-plan]
assign: [{ when: { header: { x-plan: pro } }, tier: pro }, { when: { header: { x-plan: 'p*' } }, tier: max }]
",
    );
    assert!(rules.warnings().is_empty(), "{}", rules.warnings());
    for (plan, expected) in [
        ("pro", ["pro", "assign[0]", "50/minute", "tier pro"]),
        ("plus", ["max", "assign[1]", "500/minute", "tier max"]),
        ("free", ["", "", "5/minute", "limit"]),
    ] {
        assert_eq!(
            explained(&rules, &request("x-plan", plan)),
            expected,
            "{plan}"
        );
    }
    let mut two = request("x-plan", "free");
    two.headers_mut().append("x-plan", "pro".parse().unwrap());
    assert_eq!(
        explained(&rules, &two)[0],
        "",
        "a second header obtains no tier"
    );
}

#[test]
fn claim_assigns_tier() {
    let rules = rules("assign: [{ when: { claim: { plan: pro } }, tier: pro }]");
    let sample = |plan: &str| {
        let sample = SampleRequest {
            keys: [("claim plan".into(), plan.into())].into(),
            ..SampleRequest::default()
        };
        let request = rules.request(&sample).unwrap();
        let tier = rules.explain(&RequestHead::of(&request)).tier;
        tier.unwrap_or_default()
    };
    assert_eq!(
        (sample("pro").as_str(), sample("free").as_str()),
        ("pro", "")
    );
}

#[test]
fn code_assigns_tier_or_leaves_it_to_next() {
    let rules = rules("assign: [{ tier: code account }, { when: { path: / }, tier: pro }]");
    for (given, tier, from) in [
        (Some("max"), "max", "assign[0]"),
        (Some("unknown"), "pro", "assign[1]"),
        (None, "pro", "assign[1]"),
    ] {
        let mut request = request("x", "y");
        if let Some(given) = given {
            request.extensions_mut().insert(given);
        }
        let [found, by, ..] = explained(&rules, &request);
        assert_eq!((found.as_str(), by.as_str()), (tier, from), "{given:?}");
    }
}

#[test]
fn extension_and_override_are_named() {
    let rules = rules(
        "
defaults: { key: header x-api-key }
assign: [{ key: '*', tier: pro }]
overrides: { vip: { tier: max, limits: { minute: 7/minute } } }
",
    );
    let vip = explained(&rules, &request("x-api-key", "vip"));
    assert_eq!(vip, ["max", "override", "7/minute", "override"]);
    let mut attached = request("x-api-key", "ann");
    attached.extensions_mut().insert(Tier::new("max"));
    let attached = explained(&rules, &attached);
    assert_eq!(attached, ["max", "code", "500/minute", "tier max"]);
}

#[test]
fn assumed_address_is_named() {
    let rules = rules("");
    let assumed = |address: Option<&str>| {
        let sample = SampleRequest {
            address: address.map(|address| address.parse().unwrap()),
            ..SampleRequest::default()
        };
        let request = rules.request(&sample).unwrap();
        let explanation = rules.explain(&RequestHead::of(&request));
        explanation
            .assumed_address
            .map(|address| address.to_string())
    };
    assert_eq!(assumed(None).as_deref(), Some("192.0.2.1"));
    assert_eq!(assumed(Some("192.0.2.1")), None);
}

#[test]
fn header_of_clients_gives_no_larger_quota_silently() {
    let warned = |text: &str| {
        let text = format!("{BASE}{text}");
        let rules = Rules::parse_with(&text, &parts()).unwrap();
        rules.warnings().to_string()
    };
    let by_header = "assign: [{ when: { header: { x-plan: pro } }, tier: TIER }]\n";
    let pro = by_header.replace("TIER", "pro");
    let said = warned(&pro);
    assert!(
        said.contains("trusted_headers") && said.contains("\"x-plan\""),
        "{said}"
    );
    assert!(said.contains("\"minute\""), "{said}");
    for silent in [
        format!("trusted_headers: [X-Plan]\n{pro}"),
        // The header of the key makes another client of a forger.
        format!("defaults: {{ key: header x-plan }}\n{pro}"),
        "assign: [{ when: { header: { x-plan: pro }, claim: { plan: pro } }, tier: pro }]".into(),
    ] {
        assert_eq!(warned(&silent), "", "{silent}");
    }
    let smaller = "
limits: [{ name: minute, quota: 5/minute }]
tiers: { slow: { limits: { minute: 1/minute } } }
assign: [{ when: { header: { x-plan: slow } }, tier: slow }]
";
    assert!(Rules::parse(smaller).unwrap().warnings().is_empty());
}

#[test]
fn wrong_assignments_are_explained() {
    for (assign, expected) in [
        (
            "[{ when: { claim: { plann: pro } }, tier: pro }]",
            "code gives no claim \"plann\"",
        ),
        ("[{ tier: code acount }]", "code gives no tier \"acount\""),
        (
            "[{ when: { path: users }, tier: pro }]",
            "is not a pattern of paths",
        ),
        (
            "[{ key: a, when: { key: b }, tier: pro }]",
            "the key is given here and next to",
        ),
        ("[{ key: a }]", "the field \"tier\" is missing"),
    ] {
        let text = format!("{BASE}assign: {assign}");
        let problems = Rules::parse_with(&text, &parts()).unwrap_err();
        assert!(
            problems.to_string().contains(expected),
            "{assign}: {problems}"
        );
    }
    let unreachable = rules(
        "defaults: { key: header x-api-key }\nassign: [{ tier: pro }, { key: 'a*', tier: max }]",
    );
    let warnings = unreachable.warnings().to_string();
    assert!(
        warnings.contains("assign[0] takes every request"),
        "{warnings}"
    );
}
