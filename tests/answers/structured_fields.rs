//! Tests that an independent parser of structured fields reads the fields of drafts 11 and 7.

use std::convert::Infallible;
use std::future::ready;

use http::{Request, Response};
use http_body_util::Empty;
use sfv::{BareItem, Dictionary, Integer, Item, List, ListEntry, Parameters, Parser};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

/// A name with all characters that a structured string must escape.
const ESCAPED_NAME: &str = r#"a "b" \c, d;e=f"#;

/// Returns a response under two limits, ten million a second for all clients and a hundred a day for a client.
async fn answer(style: HeaderStyle) -> Response<()> {
    let policy = Policy::new()
        .limit(Limit::new("many", Quota::per_second(10_000_000)))
        .limit(
            Limit::new(ESCAPED_NAME, Quota::per_day(100).sliding_log())
                .by(key::header("x-api-key")),
        );
    let layer = RateLimitLayer::new(MemoryStore::new(), policy).headers([style]);
    let service = layer.layer(service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(
            Empty::<bytes::Bytes>::new(),
        )))
    }));
    let request = Request::get("/")
        .header("x-api-key", "ann")
        .body(())
        .unwrap();
    service.oneshot(request).await.unwrap().map(|_| ())
}

fn text<'a>(answer: &'a Response<()>, name: &str) -> &'a str {
    answer.headers()[name].to_str().unwrap()
}

fn items(answer: &Response<()>, name: &str) -> Vec<(BareItem, Parameters)> {
    let list: List = Parser::new(text(answer, name)).parse().unwrap();
    let item = |entry| match entry {
        ListEntry::Item(Item { bare_item, params }) => (bare_item, params),
        ListEntry::InnerList(list) => panic!("{list:?}"),
    };
    list.into_iter().map(item).collect()
}

fn integer(params: &Parameters, name: &str) -> i64 {
    params[name].as_integer().map(i64::from).unwrap()
}

#[tokio::test]
async fn draft_11_fields_parse_as_lists() {
    let answer = answer(HeaderStyle::Draft11).await;
    let [(many, quota), (odd, daily)] = items(&answer, "ratelimit-policy").try_into().unwrap();
    assert_eq!(
        (
            many.as_string().unwrap().as_str(),
            odd.as_string().unwrap().as_str()
        ),
        ("many", ESCAPED_NAME)
    );
    assert_eq!(
        (integer(&quota, "q"), integer(&quota, "w")),
        (10_000_000, 1)
    );
    assert_eq!((integer(&daily, "q"), integer(&daily, "w")), (100, 86_400));

    let [(_, left), (odd, of_the_day)] = items(&answer, "ratelimit").try_into().unwrap();
    assert_eq!(odd.as_string().unwrap().as_str(), ESCAPED_NAME);
    assert_eq!(
        (integer(&left, "r"), integer(&of_the_day, "r")),
        (9_999_999, 99)
    );
    assert!((1..=86_400).contains(&integer(&of_the_day, "t")));
}

#[tokio::test]
async fn draft_7_fields_parse_as_dictionary() {
    let answer = answer(HeaderStyle::Draft7).await;
    let fields: Dictionary = Parser::new(text(&answer, "ratelimit")).parse().unwrap();
    for (name, value) in [("limit", 100), ("remaining", 99)] {
        let ListEntry::Item(item) = &fields[name] else {
            panic!("{fields:?}")
        };
        assert_eq!(item.bare_item, BareItem::Integer(Integer::from(value)));
    }
    let quotas = items(&answer, "ratelimit-policy");
    let quotas: Vec<(i64, i64)> = quotas
        .iter()
        .map(|(quota, params)| (quota.as_integer().unwrap().into(), integer(params, "w")))
        .collect();
    assert_eq!(quotas, [(10_000_000, 1), (100, 86_400)]);
}
