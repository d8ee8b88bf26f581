use proptest::prelude::*;

use super::*;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn refused(fields: &[(&'static str, &str)]) -> Option<u64> {
    pushback(StatusCode::TOO_MANY_REQUESTS, &headers(fields)).map(|pause| pause.as_secs())
}

fn answered(fields: &[(&'static str, &str)]) -> Option<u64> {
    pushback(StatusCode::OK, &headers(fields)).map(|pause| pause.as_secs())
}

#[test]
fn retry_after_is_seconds_or_date() {
    assert_eq!(refused(&[("retry-after", "120")]), Some(120));
    assert_eq!(
        refused(&[("retry-after", "120"), ("retry-after", "9")]),
        Some(120)
    );
    assert_eq!(
        refused(&[("retry-after", "99999999999999999999999")]),
        Some(u64::MAX)
    );
    for date in [
        "Sun, 06 Nov 1994 08:50:00 GMT",
        "Sunday, 06-Nov-94 08:50:00 GMT",
        "Sun Nov  6 08:50:00 1994",
    ] {
        assert_eq!(
            refused(&[("date", DATE), ("retry-after", date)]),
            Some(23),
            "{date}"
        );
    }
    assert_eq!(
        refused(&[
            ("date", "Sun, 06 Nov 1994 09:00:00 GMT"),
            ("retry-after", DATE)
        ]),
        Some(0)
    );
    assert_eq!(refused(&[("retry-after", DATE)]), Some(0));
}

#[test]
fn retry_after_counts_on_errors_only() {
    // With 202, the field is the time to poll for the result. With 301, the field is the time to
    // follow.
    let asked = headers(&[("retry-after", "120")]);
    for status in [
        StatusCode::OK,
        StatusCode::ACCEPTED,
        StatusCode::MOVED_PERMANENTLY,
    ] {
        assert_eq!(pushback(status, &asked), None);
    }
    for status in [StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE] {
        assert_eq!(pushback(status, &asked), Some(Duration::from_secs(120)));
    }
    assert_eq!(
        answered(&[("grpc-status", "8"), ("retry-after", "7")]),
        Some(7)
    );
    assert_eq!(
        answered(&[("grpc-status", "0"), ("retry-after", "7")]),
        None
    );
    assert_eq!(
        answered(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "7000")]),
        Some(7)
    );
    assert_eq!(
        answered(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")]),
        None
    );
}

#[test]
fn spent_quota_pushes_back() {
    for (fields, seconds) in [
        (&[("ratelimit", r#""minute";r=0;t=12"#)][..], Some(12)),
        (
            &[(
                "ratelimit",
                r#""a";r=0;t=12, "b"; r=0; t=30;pk=:YQ==:, "c";r=1;t=99"#,
            )],
            Some(30),
        ),
        (
            &[
                ("ratelimit", r#""a";r=1;t=12"#),
                ("ratelimit", r#""b";r=0;t=5"#),
            ],
            Some(5),
        ),
        (&[("ratelimit", r#""a, \";r=0;t=99";r=3;t=12"#)], None),
        (
            &[("ratelimit", "limit=100, remaining=0, reset=12")],
            Some(12),
        ),
        (&[("ratelimit", "limit=100, remaining=1, reset=12")], None),
        (
            &[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")],
            Some(12),
        ),
        (
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "12")],
            Some(12),
        ),
        (
            &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "12")],
            None,
        ),
        (
            &[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-remaining", "1"),
                ("x-ratelimit-reset", "12"),
            ],
            None,
        ),
        (&[("x-ratelimit-reset", "12")], None),
        (
            &[
                ("x-rate-limit-remaining", "0"),
                ("x-rate-limit-reset", "1000000012"),
            ],
            Some(0),
        ),
        (
            &[
                ("date", "Sun, 09 Sep 2001 01:46:40 GMT"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1000000012"),
            ],
            Some(12),
        ),
    ] {
        assert_eq!(answered(fields), seconds, "{fields:?}");
    }
}

#[test]
fn retry_after_takes_precedence() {
    assert_eq!(
        refused(&[("retry-after", "3"), ("ratelimit", r#""a";r=0;t=12"#)]),
        Some(3)
    );
    assert_eq!(
        refused(&[("retry-after", "soon"), ("ratelimit", r#""a";r=0;t=12"#)]),
        Some(12)
    );
}

/// `RetryInfo` of 300 ms, after `google.rpc.Status { code: 8 }`.
const RETRY_INFO: &str =
    "CAgaNAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIICgYQgMaGjwE";

#[test]
fn exact_wait_takes_precedence() {
    let whole_seconds = ("retry-after", "1");
    for (exact, millis) in [
        (&[("grpc-retry-pushback-ms", "100")][..], 100),
        (&[("grpc-status-details-bin", RETRY_INFO)], 300),
        (
            &[
                ("grpc-retry-pushback-ms", "100"),
                ("grpc-status-details-bin", RETRY_INFO),
            ],
            300,
        ),
        (&[("grpc-retry-pushback-ms", "1700")], 1_700),
        (&[("grpc-retry-pushback-ms", "soon")], 1_000),
    ] {
        let mut fields = headers(exact);
        fields.append(whole_seconds.0, whole_seconds.1.parse().unwrap());
        fields.append("grpc-status", "8".parse().unwrap());
        let wait = Some(Duration::from_millis(millis));
        assert_eq!(pushback(StatusCode::OK, &fields), wait, "{exact:?}");
        if !exact.contains(&("grpc-retry-pushback-ms", "soon")) {
            assert_eq!(refusal(StatusCode::OK, &fields), wait, "{exact:?}");
        }
    }
}

#[test]
fn cached_response_pushes_nothing_back() {
    assert_eq!(
        answered(&[("age", "3"), ("ratelimit", r#""a";r=0;t=12"#)]),
        None
    );
    assert_eq!(
        answered(&[("age", "0"), ("ratelimit", r#""a";r=0;t=12"#)]),
        Some(12)
    );
}

#[test]
fn garbage_is_ignored() {
    let long = "9".repeat(2_000);
    for value in [
        "",
        "-1",
        "1.5",
        "+7",
        "0x10",
        "1 2",
        "Sun, 32 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1960 08:49:37 GMT",
        &long,
    ] {
        assert_eq!(refused(&[("retry-after", value)]), None, "{value}");
        assert_eq!(
            refused(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", value)]),
            None,
            "{value}"
        );
    }
    for value in [
        r#""a";r=0"#,
        r#""a";t=9"#,
        r#""a";r=-0;t=9"#,
        r#""a";r=0;t=soon"#,
        r#"";r=0;t=9"#,
        ";;;,,,===",
        r#"\"#,
    ] {
        assert_eq!(answered(&[("ratelimit", value)]), None, "{value}");
    }
}

#[test]
fn refusals_are_distinguished_from_errors() {
    let asked = [("retry-after", "9")];
    for (status, fields, wait) in [
        (429, &[][..], Some(0)),
        (429, &asked, Some(9)),
        (503, &asked, Some(9)),
        (503, &[], None),
        (500, &asked, None),
        (200, &[("ratelimit", r#""a";r=0;t=12"#)], None),
        (429, &[("age", "3"), ("retry-after", "9")], None),
        (
            429,
            &[("grpc-retry-pushback-ms", "-1"), ("retry-after", "9")],
            None,
        ),
        (
            200,
            &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "9000")],
            Some(9),
        ),
        (
            200,
            &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "9000")],
            Some(9),
        ),
        (
            200,
            &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "soon")],
            None,
        ),
        (200, &[("grpc-status", "8")], None),
        (200, &[("grpc-status", "13"), ("retry-after", "9")], None),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let read = refusal(status, &headers(fields)).map(|wait| wait.as_secs());
        assert_eq!(read, wait, "{status} {fields:?}");
    }
}

proptest! {
    #[test]
    fn any_value_is_survived(value in "[ -~]{0,60}", status in 100_u16..600) {
        let status = StatusCode::from_u16(status).unwrap();
        for name in ["retry-after", "ratelimit", "x-ratelimit-reset", "date", "grpc-retry-pushback-ms", "grpc-status-details-bin", "age"] {
            let mut fields = headers(&[("x-ratelimit-remaining", "0")]);
            fields.append(name, value.parse().unwrap());
            let _ = pushback(status, &fields);
            let _ = refusal(status, &fields);
        }
    }
}
