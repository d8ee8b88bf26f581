//! Tests of the page that compares code with documents, and of the documents in `examples/rules`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may panic"
)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{MemoryStore, RateLimitLayer, RequestHead, key, settle};
use tower_quota_rules::{CodeParts, Document, QuotaText, Rules};
use tower_quota_testkit::ManualClock;

const PAGE: &str = include_str!("../../../../docs/reference/code_and_documents.md");
const GUIDE: &str = include_str!("../../../../docs/guide/where_to_put_limits.md");
const INTERFACES: [&str; 2] = [
    include_str!("../../../../docs/api/tower-quota.txt"),
    include_str!("../../../../docs/api/tower-quota-core.txt"),
];
const MISTAKES: &str = include_str!("../../../../docs/reference/mistakes.md");
const STARTING_POINT: &str = include_str!("../../../../examples/rules/starting_point.yaml");
const CODE_ONLY: &str = "in code only";

/// Returns the rows of the page, as two cells.
fn rows() -> Vec<(&'static str, &'static str)> {
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = lines.filter_map(|line| line.split_once(" | "));
    rows.filter(|(code, _)| *code != "in code").collect()
}

/// Returns the texts in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The types and modules whose functions make or change a limit, a quota, a penalty or a policy.
const OWNERS: [&str; 8] = [
    "Limit", "Policy", "Quota", "Penalty", "key", "when", "cost", "settle",
];

/// Returns the functions of the owners.
fn settings() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in INTERFACES.iter().flat_map(|interface| interface.lines()) {
        let line = line.replace("pub const fn", "pub fn");
        let Some((path, signature)) = line
            .strip_prefix("pub fn ")
            .and_then(|line| line.split_once('('))
        else {
            continue;
        };
        let path = path.split('<').next().unwrap_or_default();
        let mut parts = path.rsplit("::");
        let (Some(method), Some(owner)) = (parts.next(), parts.next()) else {
            continue;
        };
        let is_setting = !signature.starts_with("&self") && method != "default";
        if is_setting && OWNERS.contains(&owner) {
            found.insert(format!("{owner}::{method}"));
        }
    }
    found
}

#[test]
fn each_setting_of_code_has_a_row() {
    let settings = settings();
    assert!(settings.len() > 120, "{}", settings.len());
    let rows = rows();
    let named: BTreeSet<&str> = rows.iter().flat_map(|(code, _)| quoted(code)).collect();
    for setting in &settings {
        let plain = setting.replace("::try_", "::");
        let is_named = |name: &str| named.contains(name);
        assert!(
            is_named(setting) || settings.contains(&plain) && is_named(&plain),
            "docs/reference/code_and_documents.md has no row for {setting}"
        );
    }
}

#[test]
fn each_field_of_documents_has_a_row() {
    let schema = tower_quota_rules::schema();
    let schema = schema.as_value();
    let definitions = &schema["$defs"];
    let maps = [
        schema,
        &definitions["LimitRule"],
        &definitions["PenaltyRule"],
        &definitions["Match"],
        &definitions["ClientIpRule"],
        &definitions["Defaults"],
    ];
    let mut fields = 0;
    for map in maps {
        for field in map["properties"].as_object().expect("fields").keys() {
            fields += 1;
            let is_shown = rows().iter().any(|(_, document)| {
                quoted(document).any(|text| {
                    text.starts_with(&format!("{field}:")) || text.contains(&format!(" {field}:"))
                })
            });
            assert!(
                is_shown,
                "docs/reference/code_and_documents.md has no row for {field}"
            );
        }
    }
    assert!(fields > 60, "{fields}");
}

#[test]
fn each_text_of_the_page_is_valid() {
    let tenant = key::from_fn("tenant", |_| None::<String>);
    let parts = CodeParts::new()
        .key("tenant", tenant)
        .claim("plan", key::from_fn("plan", |_| None::<String>))
        .tier("plan", |_: &RequestHead<'_>| None)
        .cost("units", |_| 1)
        .condition("office", |_: &RequestHead<'_>| true)
        .settle("tokens", settle::by_handler());
    let mut texts = 0;
    for (code, document) in rows() {
        if document.starts_with(CODE_ONLY) {
            continue;
        }
        for text in quoted(document) {
            texts += 1;
            let needs_axum = ["key: route", "key: path_parameter", "when: { route:"];
            let needs_axum = needs_axum.iter().any(|start| text.starts_with(start));
            if cfg!(not(feature = "calendar")) && text.contains(" in ")
                || cfg!(not(feature = "axum")) && needs_axum
            {
                continue;
            }
            if code.starts_with("`Quota::") {
                text.parse::<QuotaText>()
                    .unwrap_or_else(|error| panic!("{text}: {error}"));
                continue;
            }
            let limit = match text.starts_with("name:") {
                true => text.to_owned(),
                false => format!("name: minute, quota: 100/minute, {text}"),
            };
            let limit = format!(
                "defaults: {{ key: [header x-api-key, client_ip] }}\nlimits: [{{ {limit} }}]"
            );
            let root = match text.starts_with("limits:") {
                true => format!("{{ {text} }}"),
                false => format!("{{ limits: [{{ name: minute, quota: 100/minute }}], {text} }}"),
            };
            let organisation = "limits: [{ name: everyone, quota: 9/second, key: none }]";
            let parsed = |text: &str| {
                let merged = Document::merged(text, 10_000, |_| Ok(organisation.into()))?;
                Rules::parse_with(merged.as_deref().unwrap_or(text), &parts)
            };
            if let (Err(limit), Err(root)) = (parsed(&limit), parsed(&root)) {
                panic!("{text} is neither a field of a limit: {limit}\nnor of a document: {root}");
            }
        }
    }
    assert!(texts > 100, "{texts}");
}

#[test]
fn documents_of_warnings_are_valid() {
    let rows = MISTAKES
        .lines()
        .filter(|line| line.starts_with("| `Check::"));
    let texts = rows.flat_map(quoted);
    let texts: Vec<&str> = texts
        .filter(|text| text.starts_with("client_ip:"))
        .collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    for text in texts {
        let text = format!("limits: [{{ name: minute, quota: 100/minute }}]\n{text}");
        Rules::parse(&text).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    }
}

fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rules");
    let files = fs::read_dir(folder).expect("the folder");
    let paths = files.map(|file| file.expect("a file").path());
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).expect("a text");
        (path.display().to_string(), text)
    };
    paths.map(read).collect()
}

#[test]
fn example_documents_pass_their_tests() {
    let examples = examples();
    assert!(examples.len() >= 2);
    for (name, text) in examples {
        let rules = Rules::parse(&text)
            .unwrap_or_else(|problems| panic!("{}", problems.render(&text, &name)));
        assert!(rules.warnings().is_empty(), "{name}: {}", rules.warnings());
        let report = rules.test();
        assert!(report.is_passed() && report.passed > 1, "{name}: {report}");
    }
}

/// Sends 200 requests at once, and returns the number of admitted requests.
async fn admitted(
    layer: &RateLimitLayer<MemoryStore>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> usize {
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    let service = layer.layer(inner);
    let mut admitted = 0;
    for _ in 0..200 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let balancer = IpAddr::from([10, 0, 0, 1]);
        let request = request.extension(balancer).body(()).expect("a request");
        let Ok(response) = service.clone().oneshot(request).await;
        admitted += usize::from(response.status() == StatusCode::OK);
    }
    admitted
}

#[tokio::test]
async fn starting_point_admits_what_it_says() {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(1_000, clock.clone());
    let rules = Rules::parse(STARTING_POINT).expect("valid");
    let layer = RateLimitLayer::new(store, rules.policy());
    let one = ("x-forwarded-for", "192.0.2.1");
    let other = ("x-forwarded-for", "192.0.2.2");
    let (ann, bob) = (
        ("authorization", "Bearer ann"),
        ("authorization", "Bearer bob"),
    );
    let orders = "/api/orders/7";
    for (method, path, headers, expected) in [
        ("POST", "/login", &[one][..], 5),
        ("POST", "/login", &[other], 5),
        ("GET", "/login", &[one], 200),
        ("GET", orders, &[one, ann], 120),
        // A user has the same counter on all paths and at all addresses.
        ("GET", "/api", &[other, ann], 0),
        ("GET", orders, &[one, bob], 120),
        ("GET", orders, &[one], 120),
        ("GET", "/search?q=rust", &[one, ann], 20),
        ("GET", "/search?q=axum", &[one, bob], 0),
        ("GET", "/search", &[other], 20),
        ("GET", "/healthz", &[one], 200),
    ] {
        let found = admitted(&layer, method, path, headers).await;
        assert_eq!(found, expected, "{method} {path} {headers:?}");
    }
    clock.advance(Duration::from_secs(1));
    assert_eq!(admitted(&layer, "GET", "/search", &[one]).await, 10);
    assert_eq!(admitted(&layer, "GET", orders, &[ann]).await, 2);
    clock.advance(Duration::from_secs(59));
    assert_eq!(admitted(&layer, "POST", "/login", &[one]).await, 5);
    assert_eq!(admitted(&layer, "GET", orders, &[ann]).await, 118);
}

#[test]
fn guide_shows_the_example_of_a_business_api() {
    let example = include_str!("../../../../examples/rules/business_api.yaml");
    let shown = format!("```yaml\n{example}```");
    assert!(
        GUIDE.contains(&shown),
        "copy examples/rules/business_api.yaml into the guide"
    );
}
