use serde_json::Value;

/// Returns the OpenAPI document of the API, as in `/v1/openapi.json`.
///
/// ```
/// let document = tower_quota_admin::openapi();
/// assert!(document["paths"]["/v1/rules"]["get"].is_object());
/// ```
#[must_use]
pub fn openapi() -> Value {
    let text = include_str!("../openapi.json");
    // The tests read the document, so the text is JSON.
    let mut document: Value = serde_json::from_str(text).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document
}

/// Removes the tokens, for a router behind an authentication layer of the application.
pub(crate) fn remove_tokens(part: &mut Value) {
    if let Value::Object(parts) = part {
        parts.retain(|name, _| name != "security" && name != "securitySchemes");
        parts.values_mut().for_each(remove_tokens);
    }
}
