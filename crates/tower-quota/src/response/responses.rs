use core::time::Duration;
use std::sync::Arc;

use http::header::{
    CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use tower_quota_core::{Decision, Name, Outcome};

use super::grpc::{self, GrpcStatus};
use super::prepared::is_unreported;
use super::problem::{TYPICAL_FIELDS, add_missing, problem_details};
use super::reason::Reason;
use super::refusal_body::RefusalBody;
use super::refused::{DEFAULT_DOMAIN, Refused};
use super::report::{HeaderReport, Report};
use super::style::HeaderStyle;
use super::text::{field_text, members, number_value, push_separator, push_string, text_value};
use super::write_headers::WriteHeaders;
use crate::head::RequestHead;
use crate::limit::Over;
use crate::policy::Plan;
use crate::protocol::{GRPC_STATUS, Protocol};

const X_POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");

const X_SHADOW: HeaderName = HeaderName::from_static("x-ratelimit-shadow");

pub(crate) type OnRefused = dyn Fn(&Refused<'_>) -> Response<RefusalBody> + Send + Sync;

pub(crate) type OnRefusedGrpc = dyn Fn(&Refused<'_>) -> GrpcStatus + Send + Sync;

#[derive(Clone)]
pub(crate) struct ResponseSettings {
    pub(crate) writers: Vec<Arc<dyn WriteHeaders>>,
    /// Whether the layer writes `X-RateLimit-Policy: degraded`. Custom styles have their own marks.
    pub(crate) marks_degraded: bool,
    /// Your own answer, instead of problem details.
    pub(crate) on_refused: Option<Arc<OnRefused>>,
    pub(crate) on_refused_grpc: Arc<OnRefusedGrpc>,
    pub(crate) grpc_domain: Name,
    pub(crate) protocol: Protocol,
    pub(crate) reports_shadows: bool,
    pub(crate) max_jitter: Duration,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self {
            writers: HeaderStyle::DEFAULT
                .iter()
                .map(HeaderStyle::writer)
                .collect(),
            marks_degraded: true,
            on_refused: None,
            on_refused_grpc: Arc::new(GrpcStatus::without_details),
            grpc_domain: DEFAULT_DOMAIN,
            protocol: Protocol::default(),
            reports_shadows: false,
            max_jitter: Duration::ZERO,
        }
    }
}

impl ResponseSettings {
    pub(crate) fn fields(&self) -> Vec<HeaderName> {
        let mut fields = vec![RETRY_AFTER, WWW_AUTHENTICATE];
        for writer in &self.writers {
            fields.extend(writer.fields().iter().cloned());
        }
        if self.marks_degraded {
            fields.push(X_POLICY);
        }
        if self.reports_shadows {
            fields.push(X_SHADOW);
        }
        if self.protocol.may_be_grpc() {
            fields.extend(grpc::FIELDS);
        }
        fields
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.writers.is_empty() && !self.reports_shadows
    }

    pub(crate) fn admitted(
        &self,
        plan: &Plan,
        report: &Report,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) {
        // An inner limiter or service that failed may have its own time to retry.
        if !(headers.contains_key(RETRY_AFTER) && has_failed(status, headers)) {
            self.write_fields(plan, report, headers);
        }
        self.write_marks(plan, report, headers);
    }

    pub(crate) fn refuse(
        &self,
        plan: &Plan,
        reason: Reason<'_>,
        head: RequestHead<'_>,
        report: Option<&Report>,
    ) -> Response<RefusalBody> {
        let refused = &Refused {
            reason,
            head,
            jitter: report.map_or(Duration::ZERO, |report| report.jitter),
            oversized: report.map_or(&[], |report| &report.oversized),
            grpc_domain: self.grpc_domain,
            plan: Some(plan),
        };
        let content_type = self.protocol.grpc_content_type(head);
        let mut response = match (content_type, &self.on_refused) {
            (Some(content_type), _) => {
                grpc::respond((self.on_refused_grpc)(refused), content_type, refused)
            }
            (None, Some(respond)) => respond(refused),
            (None, None) => problem_details(refused),
        };
        drop_body_for_head(head, &mut response);
        let headers = response.headers_mut();
        if content_type.is_some() || self.on_refused.is_some() {
            headers.reserve(TYPICAL_FIELDS.saturating_sub(headers.len()));
            add_missing(refused, headers);
        }
        if let (None, Some(challenge)) = (content_type, refused.challenge()) {
            headers.entry(WWW_AUTHENTICATE).or_insert(challenge);
        }
        match (reason, report) {
            // Write no limits here, because the next instance would contradict the figures.
            (Reason::StoreFailure(_), _) => self.mark_degraded(headers),
            (_, Some(report)) => {
                self.write_fields(plan, report, headers);
                self.write_marks(plan, report, headers);
            }
            (_, None) => {}
        }
        response
    }

    fn write_fields(&self, plan: &Plan, report: &Report, headers: &mut HeaderMap) {
        if report.is_degraded() && report.only_shadows || is_refused_by_hidden(plan, report) {
            return;
        }
        let report = HeaderReport { report, plan };
        for writer in &self.writers {
            writer.write(&report, headers);
        }
    }

    fn write_marks(&self, plan: &Plan, report: &Report, headers: &mut HeaderMap) {
        if report.is_degraded() && !report.only_shadows {
            self.mark_degraded(headers);
        }
        if let (true, Some(decision)) = (self.reports_shadows, &report.decision) {
            write_shadows(plan, decision, headers);
        }
    }

    fn mark_degraded(&self, headers: &mut HeaderMap) {
        for writer in &self.writers {
            writer.mark_degraded(headers);
        }
        if self.marks_degraded {
            headers.insert(X_POLICY, const { HeaderValue::from_static("degraded") });
        }
    }
}

impl Refused<'_> {
    /// Responds in gRPC if the request is a gRPC call of this protocol, otherwise by your closure.
    ///
    /// Use this method in your own layers, with [`problem_details`] for the default response.
    pub fn respond(
        &self,
        protocol: Protocol,
        http: impl FnOnce(&Self) -> Response<RefusalBody>,
    ) -> Response<RefusalBody> {
        let mut response = match protocol.grpc_content_type(self.head) {
            Some(content_type) => {
                grpc::respond(GrpcStatus::without_details(self), content_type, self)
            }
            None => http(self),
        };
        drop_body_for_head(self.head, &mut response);
        add_missing(self, response.headers_mut());
        response
    }
}

/// Replaces the body of a response to `HEAD` by its length, which is the length for `GET`.
fn drop_body_for_head(head: RequestHead<'_>, response: &mut Response<RefusalBody>) {
    if head.method() == Method::HEAD
        && let Some(length) = core::mem::take(response.body_mut()).size_hint().exact()
    {
        let length = number_value(length);
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
}

/// Returns whether a response is an error of HTTP or gRPC.
fn has_failed(status: StatusCode, headers: &HeaderMap) -> bool {
    let grpc_status = headers.get(GRPC_STATUS);
    status.is_client_error()
        || status.is_server_error()
        || grpc_status.is_some_and(|status| status != "0")
}

/// Adds `X-RateLimit-Shadow: "new", "challenge";flag, "tarpit";wait`.
fn write_shadows(plan: &Plan, decision: &Decision, headers: &mut HeaderMap) {
    let mut list = field_text();
    for status in decision.statuses().iter().filter(|status| status.is_shadow) {
        if is_hidden(plan, status.name) {
            continue;
        }
        let limit = plan.limit(status.name);
        let effect = match status.outcome {
            Outcome::Allow => continue,
            Outcome::Wait(_) => ";wait",
            _ if limit.is_some_and(|limit| limit.over == Over::Flag) => ";flag",
            _ => "",
        };
        let mut name = field_text();
        push_string(&mut name, status.name.as_str());
        name.push_str(effect);
        // An inner layer may have written the name.
        if !members(headers, &X_SHADOW).any(|inner| inner == name) {
            push_separator(&mut list);
            list.push_str(&name);
        }
    }
    if let Some(value) = text_value(&list) {
        headers.append(X_SHADOW, value);
    }
}

/// Returns whether a hidden limit has the longest wait, in which case fields would show shorter
/// waits.
fn is_refused_by_hidden(plan: &Plan, report: &Report) -> bool {
    if !plan.texts.hides {
        return false;
    }
    let refusal = report.decision.as_ref().filter(|it| !it.is_allowed());
    let longest = refusal.and_then(Decision::tightest);
    longest.is_some_and(|status| is_hidden(plan, status.name))
}

fn is_hidden(plan: &Plan, limit: Name) -> bool {
    plan.limit(limit).is_some_and(is_unreported)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use http::header::HeaderMap;
    use http::{Request, StatusCode};
    use tower_quota_core::{
        Decision, Left, LimitStatus, Name, Operation, Outcome, Quota, Timestamp,
    };

    use super::ResponseSettings;
    use crate::head::RequestHead;
    use crate::key::MissingPart;
    use crate::limit::Limit;
    use crate::policy::{Plan, Policy};
    use crate::protocol::Protocol;
    use crate::response::style::HeaderStyle::{self, Draft7, Draft11};
    use crate::response::{Reason, Report};

    fn fields(style: HeaderStyle) -> HeaderMap {
        let plan = Plan::new(
            Policy::new()
                .limit(Limit::new("tier", Quota::per_minute(100)))
                .limit(Limit::new("burst", Quota::per_second(900))),
        );
        let settings = ResponseSettings {
            writers: vec![style.writer()],
            ..ResponseSettings::default()
        };
        let status = |name, limit, remaining| LimitStatus {
            name: Name::new(name),
            limit,
            left: Left::new(remaining, Duration::from_secs(7)),
            outcome: Outcome::Allow,
            taken: 1,
            is_shadow: false,
        };
        let statuses = [status("tier", 500, 499), status("burst", 900, 899)];
        let decision = Decision::from_statuses(Operation::Check, Timestamp::EPOCH, statuses);
        let overrides = vec![(Name::new("tier"), Quota::per_hour(500))];
        let mut headers = HeaderMap::new();
        let report = Report {
            overrides,
            decision: Some(decision),
            ..Report::default()
        };
        settings.admitted(&plan, &report, StatusCode::OK, &mut headers);
        headers
    }

    #[test]
    fn quota_of_the_request_is_reported() {
        for (style, name, expected) in [
            (
                Draft11,
                "ratelimit-policy",
                r#""tier";q=500;w=3600, "burst";q=900;w=1"#,
            ),
            (
                Draft11,
                "ratelimit",
                r#""tier";r=499;t=3593, "burst";r=899;t=1"#,
            ),
            (Draft7, "ratelimit-policy", "500;w=3600, 900;w=1"),
            (Draft7, "ratelimit", "limit=500, remaining=499, reset=7"),
        ] {
            assert_eq!(fields(style.clone())[name], expected, "{style:?}");
        }
    }

    fn refusal(reason: Reason<'_>, protocol: Protocol) -> (u16, Option<String>, Option<String>) {
        let settings = ResponseSettings {
            protocol,
            ..ResponseSettings::default()
        };
        let request = Request::new(());
        let plan = Plan::new(Policy::new());
        let response = settings.refuse(&plan, reason, RequestHead::of(&request), None);
        let field = |name| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        (
            response.status().as_u16(),
            field("www-authenticate"),
            field("grpc-status"),
        )
    }

    #[test]
    fn missing_credentials_are_challenged() {
        for (scope, challenge) in [
            ("bearer token", "Bearer"),
            ("claim sub of bearer token", "Bearer"),
            ("basic user", "Basic realm=\"api\", charset=\"UTF-8\""),
            ("header x-api-key", "ApiKey"),
        ] {
            let part = MissingPart::new(Name::new(scope), None, false);
            let reason = Reason::Unauthenticated(part);
            assert_eq!(
                refusal(reason, Protocol::Http),
                (401, Some(challenge.to_owned()), None)
            );
            assert_eq!(
                refusal(reason, Protocol::Grpc),
                (200, None, Some("16".to_owned()))
            );
        }
    }

    #[test]
    fn missing_peer_address_is_an_internal_error() {
        assert_eq!(
            refusal(Reason::NoPeerAddress, Protocol::Http),
            (500, None, None)
        );
        assert_eq!(
            refusal(Reason::NoPeerAddress, Protocol::Grpc),
            (200, None, Some("13".to_owned()))
        );
    }
}
