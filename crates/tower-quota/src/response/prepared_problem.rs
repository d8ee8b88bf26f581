use http::StatusCode;
use tower_quota_core::Name;

use super::text::push_escaped;

pub(super) const QUOTA_EXCEEDED: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "Request cannot be satisfied as assigned quota has been exceeded",
);

const TYPICAL_LENGTH: usize = 384;

/// The body of a refusal by one limit, which the plan prepares up to the time to retry.
#[derive(Debug)]
pub(super) struct PreparedProblem {
    before: String,
    after: String,
}

impl PreparedProblem {
    pub(super) fn new(limit: Name) -> Self {
        let mut before = begin(QUOTA_EXCEEDED, StatusCode::TOO_MANY_REQUESTS);
        push_escaped(
            &mut before,
            &format!("Over the limit \"{limit}\": retry in "),
        );
        let mut after = String::from(".");
        end(&mut after, core::iter::once(limit));
        Self { before, after }
    }

    pub(super) fn json(&self, seconds: u64) -> String {
        let unit = if seconds == 1 { " second" } else { " seconds" };
        let mut digits = itoa::Buffer::new();
        [&self.before, digits.format(seconds), unit, &self.after].concat()
    }
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
