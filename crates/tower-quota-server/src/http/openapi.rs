use serde_json::Value;

/// Returns the OpenAPI document of the HTTP doors, as in `/v1/openapi.json`.
///
/// ```
/// let document = tower_quota_server::http::openapi();
/// assert!(document["paths"]["/v1/check"]["post"].is_object());
/// ```
#[must_use]
pub fn openapi() -> Value {
    let text = include_str!("openapi.json");
    // The tests read the document, so the text is JSON.
    let mut document: Value = serde_json::from_str(text).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document
}
