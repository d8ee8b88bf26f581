//! Tests that random documents are equal after printing and reading.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may panic"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use tower_quota::key::{self, ValueKey};
use tower_quota::settle::Settle;
use tower_quota::{Algorithm, Over, Quota};
use tower_quota_rules::{
    AbandonedText, AssignRule, CostText, Defaults, DegradedText, Document, DurationText, Grant,
    KeyPattern, KeyRule, KeyText, LimitRule, Many, Match, MissingRule, NameText, OverText,
    OverrideRule, PathMatch, PenaltyBlock, PenaltyRule, QuotaText, RouteRule, Rules, SettleText,
    StoreFailureRule, TierRule, TierText,
};

/// Returns any valid quota.
fn quota() -> impl Strategy<Value = Quota> {
    let holds = (1_u64..10_000, of(100_000_u64..9_000_000_000)).prop_map(|(units, ttl)| {
        let quota = Quota::concurrent(units);
        ttl.map_or(quota, |ttl| quota.ttl(Duration::from_micros(ttl)))
    });
    prop_oneof![8 => rate(), 1 => holds, 1 => calendar_quota()]
}

#[cfg(feature = "calendar")]
fn calendar_quota() -> impl Strategy<Value = Quota> {
    let zones = vec![
        "UTC",
        "Europe/Berlin",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT-14",
    ];
    let of_units: [fn(u64) -> Quota; 4] = [
        Quota::per_day,
        Quota::per_week,
        Quota::per_month,
        Quota::per_year,
    ];
    (1_u64..1_000_000, select(zones), 0_usize..4).prop_map(move |(units, zone, period)| {
        of_units[period](units).calendar(zone).expect("a zone")
    })
}

#[cfg(not(feature = "calendar"))]
fn calendar_quota() -> impl Strategy<Value = Quota> {
    rate()
}

/// Returns any valid quota with a period. Skips numbers that no quota can have.
fn rate() -> impl Strategy<Value = Quota> {
    let periods = prop_oneof![
        1_000_u64..1_000_000,
        (1_u64..100_000).prop_map(|seconds| seconds * 1_000_000)
    ];
    let numbers = (
        1_u64..100_000,
        periods,
        of(1_u64..1_000_000),
        of(0_u64..1_000_000_000),
    );
    (
        numbers,
        select(&Algorithm::ALL[..6]),
        any::<bool>(),
        1_u32..4,
    )
        .prop_filter_map(
            "not a quota",
            |((units, period, burst, offset), algorithm, first, instances)| {
                let mut quota = Quota::try_new(units, Duration::from_micros(period))
                    .ok()?
                    .try_algorithm(algorithm)
                    .ok()?;
                if let Some(burst) = burst.filter(|_| algorithm.is_bucket()) {
                    quota = quota.try_burst(burst).ok()?;
                }
                if algorithm == Algorithm::FixedWindow {
                    quota = match offset {
                        _ if first => quota.from_first_request(),
                        Some(offset) => quota.try_offset(Duration::from_micros(offset)).ok()?,
                        None => quota,
                    };
                }
                quota.try_divided(instances).ok()
            },
        )
}

fn name() -> impl Strategy<Value = NameText> {
    "[ -~]{1,64}".prop_map(|text| text.parse().expect("a name"))
}

/// Returns a random name, unlikely to repeat.
fn fresh_name() -> impl Strategy<Value = NameText> {
    "[ -~]{0,8}[a-z0-9]{12}".prop_map(|text| text.parse().expect("a name"))
}

fn key_text() -> impl Strategy<Value = KeyText> {
    let argument = "[a-zA-Z0-9_.~-][ -~]{0,10}[a-z]";
    let value = |key: ValueKey| KeyText::Value(key);
    prop_oneof![
        select(vec![
            KeyText::None,
            value(key::bearer()),
            value(key::basic_user()),
            value(key::path()),
            value(key::host()),
            value(key::method()),
            value(key::grpc_method()),
            value(key::grpc_service()),
        ]),
        (of(1_u8..=32), of(1_u8..=128)).prop_map(|(v4, v6)| KeyText::ClientIp { v4, v6 }),
        "[a-z][a-z0-9-]{0,20}".prop_map(move |name| value(key::header(&name))),
        "[a-z][a-z0-9-]{0,20}".prop_map(move |name| value(key::metadata(&name))),
        argument.prop_map(move |name| value(key::cookie(name))),
        argument.prop_map(move |name| value(key::query(name))),
        any::<usize>().prop_map(move |index| value(key::path_segment(index))),
    ]
}

fn key_rule() -> impl Strategy<Value = KeyRule> {
    key_text()
        .prop_map(KeyRule::One)
        .prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 1..4).prop_map(KeyRule::First),
                vec(inner, 1..4).prop_map(|all| KeyRule::All { all })
            ]
        })
}

fn pattern() -> impl Strategy<Value = KeyPattern> {
    "(\\PC|[\u{0}-\u{20}*?\u{85}\u{2028}\u{feff}\\\\]){0,8}[^\\\\]"
        .prop_map(|text| text.parse().expect("a pattern"))
}

fn matching() -> impl Strategy<Value = Match> {
    let path = prop_oneof![
        "/[a-z0-9._~-]{1,10}(/\\{[a-z]{1,5}\\})?"
            .prop_map(|text| PathMatch::Pattern(text.parse().expect("a pattern"))),
        "\\^/[a-z.]{1,10}\\$?".prop_map(|text| PathMatch::Regex {
            regex: text.parse().expect("an expression"),
        }),
    ];
    let method =
        select(vec!["GET", "POST", "M-SEARCH"]).prop_map(|text| text.parse().expect("a method"));
    (
        of(vec(path, 1..3)),
        of(vec(method, 1..3)),
        of(vec(pattern(), 1..3)),
        any::<bool>(),
    )
        .prop_map(|(path, method, key, cors_preflight)| Match {
            path: path.map(Many),
            method: method.map(Many),
            key: key.map(Many),
            cors_preflight,
            ..Match::default()
        })
}

fn duration() -> impl Strategy<Value = DurationText> {
    (0_u64..100_000_000_000).prop_map(|micros| Duration::from_micros(micros).into())
}

fn limit() -> impl Strategy<Value = LimitRule> {
    let cost = prop_oneof![
        (0_u64..1_000_000_000_000).prop_map(CostText::Constant),
        (1_u64..9_000, 0_u64..9_000)
            .prop_map(|(unit, default)| CostText::BodySize { unit, default }),
    ];
    let settle = select(vec![
        SettleText::Handler,
        SettleText::OnlyFailures,
        SettleText::BodyBytes { unit: 7, cut: true },
    ]);
    let abandoned = select(vec![
        AbandonedText::from(Settle::Keep),
        AbandonedText::from(Settle::Refund),
        AbandonedText::from(Settle::Cost(3)),
    ]);
    let missing = select(vec![
        MissingRule::Share,
        MissingRule::Skip,
        MissingRule::Refuse,
        MissingRule::Unauthenticated,
    ]);
    let failure = select(vec![
        StoreFailureRule::Allow,
        StoreFailureRule::Refuse,
        StoreFailureRule::Local,
    ]);
    let block = of(Just(PenaltyBlock::Everywhere));
    let penalty = (1_u64..99, of(duration()), of(duration()), block).prop_map(
        |(after, step, most, block)| PenaltyRule {
            after,
            step,
            most,
            block,
        },
    );
    let over = select(vec![
        OverText::from(Over::Refuse),
        OverText::from(Over::Flag),
        "delay 250ms up to 5s".parse().expect("a delay"),
    ]);
    let degraded = (quota(), of(key_text())).prop_map(|(quota, key)| DegradedText {
        quota: quota.into(),
        key,
    });
    let words = "[ -~é]{1,99}".prop_map(|text| text.parse().expect("words"));
    let newer = (of(over), of(duration()), of(degraded), of(words));
    let who = (
        fresh_name(),
        quota(),
        of(key_rule()),
        of(cost),
        of(name()),
        of(vec(matching(), 1..3)),
    );
    let how = (
        of(missing),
        of(duration()),
        any::<[bool; 5]>(),
        of(penalty),
        of(settle),
        of(abandoned),
        of(failure),
    );
    (who, how, newer).prop_map(
        |(
            (name, quota, key, cost, unit, when),
            (missing, max_wait, flags, penalty, settle, on_abandoned, on_store_failure),
            (over, longest_hold, when_degraded, describe_key),
        )| {
            LimitRule {
                key,
                cost,
                unit,
                when: when.map(Many),
                missing,
                max_wait,
                count_refusals: flags[0],
                exact: flags[1],
                shadow: flags[2],
                at_most: flags[3],
                hidden: flags[4],
                over,
                longest_hold,
                when_degraded,
                describe_key,
                penalty,
                settle,
                on_abandoned,
                on_store_failure,
                ..LimitRule::new(name, quota.into())
            }
        },
    )
}

fn grants() -> impl Strategy<Value = Vec<(NameText, Grant)>> {
    let grant = prop_oneof![
        Just(Grant::Unlimited),
        quota().prop_map(|quota| Grant::Quota(quota.into()))
    ];
    vec((fresh_name(), grant), 0..3)
}

fn document() -> impl Strategy<Value = Document> {
    let tier = (of(name()), grants()).prop_map(|(extends, limits)| TierRule {
        extends,
        limits: Arc::new(limits.into_iter().collect()),
    });
    let single = (of(name()), grants()).prop_map(|(tier, limits)| OverrideRule {
        tier,
        limits: Arc::new(limits.into_iter().collect()),
    });
    let route = (matching(), vec(limit(), 0..2))
        .prop_map(|(matching, limits)| RouteRule { matching, limits });
    let tier_text = (any::<bool>(), fresh_name()).prop_map(|(is_code, name)| match is_code {
        true => TierText::Code(name),
        false => TierText::Named(name),
    });
    let assigned = (of(vec(pattern(), 1..3)), of(vec(matching(), 1..3)));
    let assign = (assigned, tier_text).prop_map(|((key, when), tier)| AssignRule {
        key: key.map(Many),
        when: when.map(Many),
        tier,
    });
    let lists = (
        vec(limit(), 0..3),
        vec(route, 0..3),
        vec(assign, 0..3),
        vec(matching(), 0..2),
    );
    let maps = (
        vec((fresh_name(), tier), 0..3),
        vec(("\\PC{0,20}", single), 0..3),
    );
    let ends = (of(1_u32..99), of(any::<bool>()));
    (lists, maps, of(key_rule()), ends).prop_map(
        |((limits, routes, assign, skip), (tiers, overrides), key, (instances, end))| Document {
            defaults: Defaults {
                key,
                ..Defaults::default()
            },
            instances,
            limits,
            tiers: tiers.into_iter().collect(),
            assign,
            overrides: overrides
                .into_iter()
                .map(|(key, single)| (key.into(), single))
                .collect(),
            routes,
            skip,
            end,
            ..Document::default()
        },
    )
}

proptest! {
    #[test]
    fn quota_prints_and_reads_back(quota in quota()) {
        let text = QuotaText::from(quota).to_string();
        prop_assert_eq!(text.parse::<QuotaText>().map(Quota::from), Ok(quota), "{}", text);
    }

    #[test]
    fn key_prints_and_reads_back(key in key_text()) {
        let text = key.to_string();
        prop_assert_eq!(text.parse::<KeyText>(), Ok(key), "{}", text);
    }

    #[test]
    fn span_prints_and_reads_back(span in duration()) {
        let text = span.to_string();
        prop_assert_eq!(text.parse::<DurationText>(), Ok(span), "{}", text);
    }

    #[test]
    fn document_prints_and_reads_back(document in document()) {
        let text = document.to_text();
        let again = Document::parse(&text);
        prop_assert!(again.is_ok(), "{}\n{}", text, again.unwrap_err().render(&text, "printed"));
        prop_assert_eq!(again.as_ref(), Ok(&document), "{}", text);
    }

    #[test]
    fn json_says_what_json_reader_reads(document in document(), style in json_style()) {
        let text = style.print(&serde_json::to_value(&document).expect("JSON"));
        let read: Document = serde_json::from_str(&text).expect(&text);
        let parsed = Document::parse(&text);
        prop_assert_eq!(parsed.as_ref(), Ok(&read), "{}", text);
        prop_assert_eq!(read, document);
    }

    #[test]
    fn hostile_texts_are_answered(text in "\\PC{0,200}") {
        let _ = Rules::parse(&text).map_err(|problems| problems.render(&text, "hostile"));
    }

    #[test]
    fn damaged_documents_are_answered(
        text in base(),
        cuts in vec((any::<prop::sample::Index>(), 0_usize..12, "\\PC{0,3}|[\\[\\]{}:,#&*!|>'\"%@`\n -]{1,3}"), 1..6),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (at, length, inserted) in cuts {
            let start = at.index(characters.len().max(1));
            let end = (start + length).min(characters.len());
            characters.splice(start.min(end)..end, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        if let Err(problems) = Rules::parse(&text) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.render(&text, "damaged").contains("damaged"));
        }
        if let Ok(document) = Document::parse(&text) {
            let printed = document.to_text();
            let again = Document::parse(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&document), "{}", printed);
        }
    }
}

/// The way in which a program writes JSON.
#[derive(Clone, Debug)]
struct JsonStyle {
    /// Written between tokens.
    space: &'static str,
    /// Escapes slashes and characters outside ASCII.
    is_escaped: bool,
}

fn json_style() -> impl Strategy<Value = JsonStyle> {
    let space = select(vec!["", " ", "\n", "\n\t", "\r\n  "]);
    (space, any::<bool>()).prop_map(|(space, is_escaped)| JsonStyle { space, is_escaped })
}

impl JsonStyle {
    fn print(&self, value: &Value) -> String {
        let space = self.space;
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| {
                    let (name, value) = (self.text(name), self.print(value));
                    format!("{space}{name}{space}:{space}{value}{space}")
                });
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            Value::Array(elements) => {
                let elements = elements
                    .iter()
                    .map(|value| format!("{space}{}{space}", self.print(value)));
                format!("[{}]", elements.collect::<Vec<_>>().join(","))
            }
            Value::String(text) => self.text(text),
            other => other.to_string(),
        }
    }

    fn text(&self, text: &str) -> String {
        let quoted = Value::from(text).to_string();
        if !self.is_escaped {
            return quoted;
        }
        let escaped = quoted.chars().map(|c| match u32::from(c) {
            0x2f => r"\/".into(),
            number @ 0x7f..=0xffff => format!(r"\u{number:04x}"),
            _ => c.into(),
        });
        escaped.collect::<String>()
    }
}

#[test]
fn json_numbers_are_exact_or_refused() {
    for number in [
        "0",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "4294967296",
        "-1",
        "-0",
        "1.0",
        "1e3",
    ] {
        for text in [
            format!(r#"{{"instances": {number}}}"#),
            format!(r#"{{"limits": [{{"name": "a", "quota": "1/minute", "cost": {number}}}]}}"#),
        ] {
            let read = serde_json::from_str::<Document>(&text).ok();
            assert_eq!(Document::parse(&text).ok(), read, "{text}");
        }
    }
}

#[test]
fn json_key_given_twice_is_refused() {
    for text in [
        r#"{"limits": [], "limits": []}"#,
        r#"{"overrides": {"ann": {}, "\u0061nn": {}}}"#,
    ] {
        let problems = Document::parse(text).expect_err(text);
        assert!(
            problems.to_string().contains("is given twice"),
            "{problems}"
        );
    }
}

/// JSON escapes some characters by two numbers, and may have a tab before a number or a word. YAML does not.
#[test]
fn json_that_is_no_yaml_is_refused_with_place() {
    let pair = r#"{"overrides": {"\ud83d\ude00": {}}}"#;
    for (text, place, part) in [
        (pair, "a.json:1:16", r"\U0001F600"),
        (
            "{\"allow_empty\":\ttrue}",
            "a.json:1:",
            "':' must be followed by",
        ),
    ] {
        let problems = Document::parse(text).expect_err(text);
        let said = problems.render(text, "a.json");
        assert!(said.contains(place) && said.contains(part), "{said}");
    }
    let escaped = Document::parse(&pair.replace(r"\ud83d\ude00", r"\U0001F600"));
    let plain = Document::parse(&pair.replace(r"\ud83d\ude00", "\u{1f600}"));
    assert_eq!(escaped.expect("valid"), plain.expect("valid"));
}

/// Returns the texts of good and bad documents.
fn base() -> impl Strategy<Value = String> {
    let folders = ["tests/good", "tests/bad"]
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let entries = folders
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the folder"));
    let mut all = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.extension().is_some_and(|extension| extension != "txt") {
            all.push(fs::read_to_string(path).expect("a text"));
        }
    }
    select(all)
}
