//! Costs of requests before they are served.

use http::{Request, StatusCode};
use tower_quota::{Limit, cost};

use crate::fixture::{LastRequest, Limited};
use crate::shared::{per_hour, policy_of};

/// Returns the cost of a request with these header lines.
async fn cost_of(limit: Limit, lines: &[(&str, &str)]) -> Result<u64, StatusCode> {
    let limited = Limited::new(policy_of(limit));
    let request = lines
        .iter()
        .fold(Request::get("/"), |request, (name, value)| {
            request.header(*name, *value)
        });
    let response = limited.send(request).await;
    match response.status() {
        StatusCode::OK => Ok(100 - limited.inner.last_seen().unwrap().statuses()[0].remaining()),
        status => Err(status),
    }
}

fn hundred() -> Limit {
    per_hour("hundred", 100)
}

#[tokio::test]
async fn numeric_header_is_the_cost() {
    for (lines, expected) in [
        (&["7"][..], Ok(7)),
        (&["0"], Ok(0)),
        (&["007"], Ok(7)),
        (&["7", "7"], Ok(7)),
        (&["100"], Ok(100)),
        (&["101"], Err(StatusCode::BAD_REQUEST)),
        (
            &["99999999999999999999999999"],
            Err(StatusCode::BAD_REQUEST),
        ),
        (&[], Ok(3)),
        (&[""], Ok(3)),
        (&["+7"], Ok(3)),
        (&["-7"], Ok(3)),
        (&["7.0"], Ok(3)),
        (&["7, 7"], Ok(3)),
        (&["seven"], Ok(3)),
        (&["7", "8"], Ok(3)),
    ] {
        let lines: Vec<_> = lines.iter().map(|value| ("x-cost", *value)).collect();
        assert_eq!(
            cost_of(hundred().cost_with(cost::header("X-Cost", 3)), &lines).await,
            expected,
            "{lines:?}"
        );
    }
    assert!(cost::try_header("two words", 1).is_err());
}

#[tokio::test]
async fn body_length_is_the_cost() {
    for (length, expected) in [
        ("0", 1),
        ("1", 1),
        ("1000", 1),
        ("1001", 2),
        ("99000", 99),
        ("many", 9),
    ] {
        let cost = cost_of(
            hundred().cost_with(cost::body_size(1_000, 9)),
            &[("content-length", length)],
        )
        .await;
        assert_eq!(cost, Ok(expected), "{length}");
    }
    assert_eq!(
        cost_of(hundred().cost_with(cost::body_size(1_000, 9)), &[]).await,
        Ok(9)
    );
    assert_eq!(
        cost_of(
            hundred().cost_with(cost::body_size(0, 9)),
            &[("content-length", "5")]
        )
        .await,
        Ok(5)
    );
    let smuggled = [("content-length", "1"), ("transfer-encoding", "chunked")];
    let cost = cost_of(hundred().cost_with(cost::body_size(1_000, 9)), &smuggled);
    assert_eq!(cost.await, Ok(9));
}
