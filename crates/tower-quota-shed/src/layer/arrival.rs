use core::time::Duration;
use std::hash::BuildHasher;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use tower_quota::response::RefusalBody;
use tower_quota::{Refused, RequestHead};

use crate::cause::Cause;
use crate::gate::{Entry, Gate};
use crate::priority::Priority;

static PRIORITY: HeaderName = HeaderName::from_static("tower-quota-shed-priority");
static CAUSE: HeaderName = HeaderName::from_static("tower-quota-shed-cause");

impl Gate {
    pub(super) fn arrive(self: &Arc<Self>, now: Duration, head: &RequestHead<'_>) -> Entry {
        self.enter(now, || {
            let key = self.settings.key.as_ref().and_then(|key| key.extract(head));
            // An empty key stands for conflicting values.
            let key = key.filter(|key| !key.as_bytes().is_empty());
            let digest = key.map(|key| self.hasher.hash_one(&key));
            (self.settings.priority_of(head), digest)
        })
    }

    pub(super) fn respond(
        &self,
        now: Duration,
        priority: Priority,
        cause: Cause,
        head: &RequestHead<'_>,
    ) -> Response<RefusalBody> {
        let retry_after = self.refuse(now, priority, cause);
        let respond = |refused: &Refused<'_>| (self.settings.respond)(refused);
        let refused = Refused::overloaded(*head, retry_after);
        let mut response = refused.respond(self.settings.protocol, respond);
        for (name, value) in [(&PRIORITY, priority.name()), (&CAUSE, cause.name())] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Answers with problem details (RFC 9457). The body is the same for every request, so that a refusal is cheap.
pub(crate) fn problem_details(_: &Refused<'_>) -> Response<RefusalBody> {
    const PROBLEM: &str = concat!(
        r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","#,
        r#""title":"Request cannot be satisfied due to temporary server capacity constraints","#,
        r#""status":503,"detail":"The service is overloaded."}"#,
    );
    let mut response = Response::new(Bytes::from_static(PROBLEM.as_bytes()).into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let problem = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, problem);
    response
}
