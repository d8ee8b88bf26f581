//! The answers to requests that do not pass.

use core::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use tollgate_core::{Outcome, Store};

use super::gate::Gate;
use super::verdict::{Grounds, Ruling, Verdict};
use crate::answer::{GrpcType, Reason, Refused, whole_seconds};
use crate::head::RequestHead;

impl<S: Store> Gate<S> {
    /// Refuses a request by this ruling.
    pub(super) fn turn_down<B>(&self, mut ruling: Ruling, request: &Request<B>) -> Verdict {
        let jitter = self.answers.draw_jitter();
        ruling.particulars.jitter = jitter;
        let reason = match ruling.decision.outcome() {
            Outcome::Never => Reason::NeverFits(&ruling.decision),
            _ => Reason::OverQuota(&ruling.decision),
        };
        self.tell(Some(&ruling.decision), Some(reason), ruling.is_local(), request);
        let mut response = self.refuse(reason, jitter, request);
        self.report(Grounds::Ruling(ruling), &mut response);
        Verdict::Refuse(response)
    }

    /// The answer to a request that is refused without a decision.
    pub(super) fn turn_away<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<Bytes> {
        self.tell(None, Some(reason), false, request);
        self.refuse(reason, Duration::ZERO, request)
    }

    /// The answer to a refused request, whose wait this jitter makes longer, but for the rate limit headers.
    pub(super) fn refuse<B>(&self, reason: Reason<'_>, jitter: Duration, request: &Request<B>) -> Response<Bytes> {
        let head = RequestHead::of(request);
        let refused = Refused::new(reason, head, jitter);
        let mut response = match GrpcType::of(head) {
            Some(grpc) => grpc.respond(&refused, self.answers.grpc_domain),
            None => {
                let mut response = self.answers.refusal.respond(&refused);
                if head.method() == Method::HEAD {
                    // What a GET would have brought, without bringing it.
                    let length = core::mem::take(response.body_mut()).len();
                    response.headers_mut().insert(CONTENT_LENGTH, length.into());
                }
                response
            }
        };
        response.headers_mut().entry(CACHE_CONTROL).or_insert(const { HeaderValue::from_static("no-store") });
        if let Some(wait) = refused.retry_after() {
            response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| whole_seconds(wait).max(1).into());
        }
        response
    }
}
