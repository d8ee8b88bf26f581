use std::sync::LazyLock;

use http::StatusCode;
use tower_quota_core::Name;

use super::text::push_escaped;

pub(super) const QUOTA_EXCEEDED: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "Request cannot be satisfied as assigned quota has been exceeded",
);

const TYPICAL_LENGTH: usize = 384;

/// Up to the names of the limits, the same text in each refusal over a quota.
static OVER_QUOTA: LazyLock<String> =
    LazyLock::new(|| begin(QUOTA_EXCEEDED, StatusCode::TOO_MANY_REQUESTS) + "Over the ");

/// Returns the body of a refusal by limits of these escaped names.
///
/// The detail is the text of [`Refused::detail`](super::Refused::detail).
pub(super) fn prepared_json(limits: &[&str], seconds: u64) -> String {
    let mut digits = itoa::Buffer::new();
    let unit = if seconds == 1 { " second" } else { " seconds" };
    let wait = [digits.format(seconds), unit];
    // With the exact length, the text becomes a body without another allocation.
    let mut length = 0;
    each_part(limits, wait, |part| length += part.len());
    let mut json = String::with_capacity(length);
    each_part(limits, wait, |part| json.push_str(part));
    json
}

#[inline]
fn each_part(limits: &[&str], wait: [&str; 2], mut add: impl FnMut(&str)) {
    add(&OVER_QUOTA);
    add(if limits.len() == 1 {
        "limit "
    } else {
        "limits "
    });
    for (position, limit) in limits.iter().enumerate() {
        if position > 0 {
            let is_last = position + 1 == limits.len();
            add(if is_last { " and " } else { ", " });
        }
        add("\\\"");
        add(limit);
        add("\\\"");
    }
    add(": retry in ");
    wait.into_iter().for_each(&mut add);
    add(".\",\"violated-policies\":[");
    for (position, limit) in limits.iter().enumerate() {
        add(if position > 0 { ",\"" } else { "\"" });
        add(limit);
        add("\"");
    }
    add("]}");
}

/// Begins problem details, up to the text of the detail.
pub(super) fn begin((kind, title): (&str, &str), status: StatusCode) -> String {
    let mut json = String::with_capacity(TYPICAL_LENGTH);
    for part in [
        r#"{"type":""#,
        kind,
        r#"","title":""#,
        title,
        r#"","status":"#,
        status.as_str(),
        r#","detail":""#,
    ] {
        json.push_str(part);
    }
    json
}

/// Ends the detail, and lists the refusing limits.
pub(super) fn end(json: &mut String, limits: impl Iterator<Item = Name>) {
    json.push_str("\",\"violated-policies\":[");
    let mut separator = "\"";
    for name in limits {
        json.push_str(separator);
        push_escaped(json, name.as_str());
        json.push('"');
        separator = ",\"";
    }
    json.push_str("]}");
}
