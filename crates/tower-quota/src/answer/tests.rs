//! What is told of limits whose quota a request has chosen, and of limits that are tried out.

use core::time::Duration;
use std::sync::OnceLock;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::{Decision, Left, LimitStatus, Name, Operation, Outcome, Quota, Timestamp};

use super::sheet::{Sheet, Template};
use super::style::HeaderStyle::{self, Draft3, Draft6, Draft7, Draft11, PerWindow};
use super::{Fields, Particulars, shadow};
use crate::limit::Limit;

/// The headers of a request of which one limit counted by 500 an hour instead of its own 100 a minute.
fn headers(style: HeaderStyle) -> HeaderMap {
    let limits = [Limit::new("tier", Quota::per_minute(100)), Limit::new("burst", Quota::per_second(900))];
    let fields = Fields::new(&[style], &limits);
    let standing = |name, limit, remaining| LimitStatus {
        name: Name::new(name),
        limit,
        left: Left::new(remaining, Duration::from_secs(7)),
        outcome: Outcome::Allow,
        taken: 1,
        is_shadow: false,
    };
    let standings = [standing("tier", 500, 499), standing("burst", 900, 899)];
    let decision = Decision::from_statuses(Operation::Check, Timestamp::EPOCH, standings);
    let particulars =
        Particulars { overrides: vec![(Name::new("tier"), Quota::per_hour(500))], ..Particulars::default() };
    let mut headers = HeaderMap::new();
    let mut sheet = Sheet::new();
    fields.write(&decision, &particulars, &mut headers, &mut sheet);
    sheet.pour(&mut headers, &OnceLock::new());
    headers
}

#[test]
fn a_quota_of_the_request_is_told_instead_of_the_limits_own() {
    for (style, name, told) in [
        (Draft11, "ratelimit-policy", r#""tier";q=500;w=3600, "burst";q=900;w=1"#),
        (Draft11, "ratelimit", r#""tier";r=499;t=7, "burst";r=899;t=7"#),
        (Draft7, "ratelimit-policy", "500;w=3600, 900;w=1"),
        (Draft6, "ratelimit-policy", "500;w=3600, 900;w=1"),
        (Draft6, "ratelimit-limit", "500"),
        (Draft3, "x-ratelimit-limit", r#"500, 500;w=3600;name="tier", 900;w=1;name="burst""#),
        (PerWindow, "x-ratelimit-remaining-hour", "499"),
    ] {
        assert_eq!(headers(style)[name], told, "{style:?}");
    }
    assert!(!headers(PerWindow).contains_key("x-ratelimit-limit-minute"));
}

#[test]
fn shadows_are_a_list_of_names() {
    let mut headers = HeaderMap::new();
    shadow::write([].into_iter(), &mut headers);
    assert!(headers.is_empty());
    shadow::write(["a \"b\"", "c"].into_iter().map(Name::new), &mut headers);
    shadow::write([Name::new("outer")].into_iter(), &mut headers);
    let lines: Vec<_> = headers.get_all("x-ratelimit-shadow").iter().collect();
    assert_eq!(lines, [r#""a \"b\"", "c""#, r#""outer""#]);
}

static FIRST: HeaderName = HeaderName::from_static("x-first");
static SECOND: HeaderName = HeaderName::from_static("x-second");

/// The headers of an answer with a field that is the same in all, and if wanted one with a number.
fn poured(number: Option<u64>, mut headers: HeaderMap, template: &OnceLock<Template>) -> HeaderMap {
    let constant = HeaderValue::from_static("constant");
    let mut sheet = Sheet::new();
    sheet.add_constant(&FIRST, &constant);
    if let Some(number) = number {
        let digits = sheet.digits(number);
        sheet.text(&SECOND, digits);
    }
    sheet.pour(&mut headers, template);
    headers
}

#[test]
fn a_copy_of_an_earlier_answer_is_as_one_made_anew() {
    let template = OnceLock::new();
    for number in [Some(1), Some(22), None, Some(333), None] {
        let bare = poured(number, HeaderMap::new(), &template);
        assert_eq!(bare, poured(number, HeaderMap::new(), &OnceLock::new()), "{number:?}");
        assert_eq!(
            bare.get("x-second").map(HeaderValue::as_bytes),
            number.map(|number| number.to_string()).as_deref().map(str::as_bytes)
        );
    }
    assert!(template.get().is_some());
}

#[test]
fn what_is_there_is_replaced_or_added_to() {
    let template = OnceLock::new();
    poured(Some(1), HeaderMap::new(), &template);
    let inner = [(FIRST.clone(), "inner"), (SECOND.clone(), "inner"), (CONTENT_TYPE, "text/plain")];
    let inner: HeaderMap = inner.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect();
    let headers = poured(Some(2), inner, &template);
    let lines = |name| headers.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(lines("x-first"), ["inner", "constant"]);
    assert_eq!(lines("x-second"), ["2"]);
    assert_eq!(lines("content-type"), ["text/plain"]);
}

#[test]
fn a_number_is_written_once() {
    let mut sheet = Sheet::new();
    let digits = [7, 42, 7, 42, 1, 2, 3, 3, 999_999_999_999_999, u64::MAX].map(|number| sheet.digits(number));
    let text = sheet.pour(&mut HeaderMap::new(), &OnceLock::new());
    let told = digits.map(|piece| piece.of(&text));
    assert_eq!(
        told.map(|digits| String::from_utf8(digits.to_vec()).unwrap()).join(" "),
        "7 42 7 42 1 2 3 3 999999999999999 999999999999999"
    );
    // Only the first few are remembered.
    assert!(text.starts_with(b"742123"));
}
