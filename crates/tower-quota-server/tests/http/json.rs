//! `/json`, next to the answers of envoyproxy/ratelimit.

use serde_json::{Value, json};
use tower_quota_core::MemoryStore;
use tower_quota_server::check::json_router;
use tower_quota_server::envoy::{EnvoyConfig, EnvoyDoor, EnvoyOptions};
use tower_quota_server::http::HttpOptions;

use crate::server::{Server, detail, send, serve};

const RULES: &str = "limits: [{ name: minute, quota: 9/minute, key: none }]";

impl Server {
    /// Posts a text. Returns the status, the content type and the body.
    async fn json(&self, body: impl Into<String>) -> (u16, String, String) {
        let request = self
            .request(reqwest::Method::POST, "/json")
            .body(body.into());
        let response = send(request).await;
        let kind = response.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        (
            response.status().as_u16(),
            kind,
            response.text().await.unwrap(),
        )
    }

    async fn decided(&self, body: Value) -> (u16, Value) {
        let (status, kind, text) = self.json(body.to_string()).await;
        assert_eq!(kind, "application/json");
        (status, serde_json::from_str(&text).unwrap())
    }
}

#[tokio::test]
async fn undecidable_calls_get_400() {
    let server = Server::start(RULES).await;
    let many: Vec<Value> = (0..33)
        .map(|user| json!({ "entries": [{ "key": "user", "value": user.to_string() }] }))
        .collect();
    for body in [
        String::new(),
        "}".into(),
        "[]".into(),
        json!({ "domain": "shop" }).to_string(),
        json!({ "domain": "", "descriptors": [{}] }).to_string(),
        json!({ "domain": "shop", "descriptors": [{}], "unknown": 1 }).to_string(),
        json!({ "domain": "shop", "descriptors": [[null]] }).to_string(),
        json!({ "domain": "shop", "descriptors": [{ "limit": [1, "DAY"] }] }).to_string(),
        json!({ "domain": 1 }).to_string(),
        json!({ "domain": "shop", "hitsAddend": -1, "descriptors": [{}] }).to_string(),
        json!({ "domain": "shop", "hitsAddend": 1.5, "descriptors": [{}] }).to_string(),
        json!({ "domain": "shop", "hitsAddend": 4_294_967_296_u64, "descriptors": [{}] })
            .to_string(),
        json!({ "domain": "shop", "descriptors": [{ "limit": { "unit": "EON" } }] }).to_string(),
        json!({ "domain": "shop", "descriptors": many }).to_string(),
    ] {
        let answer = server.json(body.clone()).await;
        let expected = (
            400,
            "text/plain; charset=utf-8".into(),
            "Bad Request\n".into(),
        );
        assert_eq!(answer, expected, "{body}");
    }
}

#[tokio::test]
async fn page_of_a_browser_charges_no_limit() {
    let server = Server::start(RULES).await;
    let call = json!({ "domain": "shop", "descriptors": [{ "entries": [{ "key": "user", "value": "ann" }] }] });
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
    ] {
        let mut request = server
            .request(reqwest::Method::POST, "/json")
            .header("origin", "https://evil.example")
            .body(call.to_string());
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let problem = detail(request, 415).await;
        assert!(
            problem.contains("send `Content-Type: application/json`"),
            "{problem}"
        );
    }
    let (_, answer) = server.decided(call).await;
    assert_eq!(answer["statuses"][0]["limitRemaining"], 1);
}

#[tokio::test]
async fn answers_are_the_json_of_the_messages() {
    let server = Server::start(RULES).await;
    let user = json!({ "domain": "shop", "descriptors": [{ "entries": [{ "key": "user", "value": "ann" }] }] });
    let (status, first) = server.decided(user.clone()).await;
    assert_eq!((status, &first["overallCode"]), (200, &json!("OK")));
    let reset = first["statuses"][0]["durationUntilReset"]
        .as_str()
        .unwrap()
        .to_owned();
    let seconds: u64 = reset.strip_suffix('s').unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{reset}");
    let limit = json!({ "requestsPerUnit": 2, "unit": "MINUTE" });
    let expected = json!([{ "code": "OK", "currentLimit": limit, "limitRemaining": 1, "durationUntilReset": reset }]);
    assert_eq!(first["statuses"], expected);
    server.decided(user.clone()).await;
    let (status, over) = server.decided(user).await;
    assert_eq!((status, &over["overallCode"]), (429, &json!("OVER_LIMIT")));
    assert_eq!(over["statuses"][0]["code"], "OVER_LIMIT");
    assert!(over["statuses"][0].get("limitRemaining").is_none());

    let unknown = json!({ "domain": "nope", "descriptors": [{ "entries": [{ "key": "a" }] }] });
    let answer = json!({ "overallCode": "OK", "statuses": [{ "code": "OK" }] });
    assert_eq!(server.decided(unknown).await, (200, answer));
}

#[tokio::test]
async fn names_and_numbers_have_all_forms_of_protobuf() {
    let server = Server::start(RULES).await;
    for (number, call) in [
        json!({ "hits_addend": "2" }),
        json!({ "hitsAddend": 2.0 }),
        json!({ "hits": { "hits_addend": "2", "is_negative_hits": false } }),
        json!({ "hits": { "hitsAddend": 2, "isNegativeHits": null, "limit": null } }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut descriptor = call.get("hits").cloned().unwrap_or_else(|| json!({}));
        descriptor["entries"] = json!([{ "key": "user", "value": number.to_string() }]);
        let mut body = call.clone();
        body.as_object_mut().unwrap().remove("hits");
        (body["domain"], body["descriptors"]) = ("shop".into(), json!([descriptor]));
        let (status, answer) = server.decided(body.clone()).await;
        assert_eq!(status, 200, "{body}");
        assert!(
            answer["statuses"][0].get("limitRemaining").is_none(),
            "{body}: {answer}"
        );
    }
    for unit in [json!("DAY"), json!(4)] {
        let limit = json!({ "requests_per_unit": 5, "unit": unit });
        let own = json!({ "domain": "shop", "descriptors": [{ "entries": [{ "key": "x" }], "limit": limit }] });
        let (_, answer) = server.decided(own).await;
        assert_eq!(answer["statuses"][0]["currentLimit"]["unit"], "DAY");
    }
    let back = json!({ "entries": [{ "key": "user", "value": "0" }], "hitsAddend": "2", "isNegativeHits": true });
    let (_, answer) = server
        .decided(json!({ "domain": "shop", "descriptors": [back] }))
        .await;
    assert_eq!(answer["statuses"][0]["limitRemaining"], 2);
}

#[tokio::test]
async fn answer_has_fields_and_metadata() {
    let mut options = EnvoyOptions::default();
    options.headers = true;
    options.dynamic_metadata = true;
    let limits = "{ domain: d, descriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9, name: UNKNOWN } }] }";
    let config = EnvoyConfig::parse([("d.yaml", limits)], false).unwrap();
    let envoy = EnvoyDoor::new(config, MemoryStore::new(), options);
    let address = serve(json_router(envoy, &HttpOptions::default())).await;
    let call = json!({ "domain": "d", "descriptors": [{ "entries": [{ "key": "k", "value": "" }], "hitsAddend": "2" }] });
    let response = send(
        reqwest::Client::new()
            .post(format!("{address}/json"))
            .json(&call),
    )
    .await;
    let answer: Value = response.json().await.unwrap();
    assert_eq!(
        answer["statuses"][0]["currentLimit"],
        json!({ "name": "UNKNOWN", "requestsPerUnit": 9, "unit": "DAY" })
    );
    let fields = answer["responseHeadersToAdd"].as_array().unwrap();
    assert!(
        fields.contains(&json!({ "key": "RateLimit-Remaining", "value": "7" })),
        "{answer}"
    );
    let metadata = &answer["dynamicMetadata"];
    assert_eq!(metadata["domain"], "d");
    assert_eq!(metadata["descriptors"][0]["hitsAddend"], 2);
}
