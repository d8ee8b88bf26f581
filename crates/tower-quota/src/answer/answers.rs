//! How a layer answers: what its builder was told.

use core::time::Duration;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Method, Response};
use tower_quota_core::{Decision, Name};

use super::fields::Fields;
use super::grpc::GrpcType;
use super::negotiated::Negotiated;
use super::particulars::Particulars;
use super::partition::Partitions;
use super::refusal::{Refusal, Refused};
use super::seconds::whole_seconds;
use super::shadow;
use super::sheet::{Piece, Sheet, Template};
use super::telling::shadows;
use crate::settle::Counted;

pub(super) static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// What a layer's answers are made by.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) fields: Arc<Fields>,
    /// `None` is [`Negotiated`], whose usual answer is put together without it.
    pub(crate) refusal: Option<Arc<dyn Refusal>>,
    /// Makes partition keys, if clients are told of them.
    pub(crate) partitions: Option<Partitions>,
    /// Who refuses, as gRPC clients are told.
    pub(crate) grpc_domain: Name,
    /// Whether clients are told of limits that would have refused.
    pub(crate) tells_shadows: bool,
    /// The most that is added to a client's wait.
    pub(crate) most_jitter: Duration,
    /// What answers look like.
    pub(crate) forms: Arc<Forms>,
}

/// The headers of earlier answers, to make others like them.
#[derive(Default)]
pub(crate) struct Forms {
    admitted: OnceLock<Template>,
    refused: OnceLock<Template>,
}

impl Answers {
    pub(crate) fn new(fields: Fields) -> Self {
        Self {
            fields: Arc::new(fields),
            refusal: None,
            partitions: None,
            grpc_domain: const { Name::new("tower-quota") },
            tells_shadows: false,
            most_jitter: Duration::ZERO,
            forms: Arc::default(),
        }
    }

    /// Whether there is never anything to add to the headers of an admitted request's response.
    pub(crate) fn is_silent(&self) -> bool {
        self.fields.is_empty() && !self.tells_shadows
    }

    /// Whether admitted requests are told nothing, or what is [usual](Fields::usual).
    pub(crate) fn are_plain(&self) -> bool {
        let is_usual = self.fields.is_empty() || self.fields.usual().is_some();
        is_usual && !self.tells_shadows && self.partitions.is_none()
    }

    /// Whether refusals are not only told what is usual, but are the usual ones.
    #[inline]
    pub(crate) fn refuses_as_usual(&self) -> bool {
        self.refusal.is_none() && self.most_jitter.is_zero()
    }

    /// Adds what a decision has to say to the headers of its request's response.
    pub(crate) fn write(&self, decision: &Decision, particulars: &Particulars, by: Counted, headers: &mut HeaderMap) {
        let mut sheet = Sheet::new();
        self.tell(decision, particulars, by, headers, &mut sheet);
        sheet.pour(headers, &self.forms.admitted);
    }

    fn tell<'a>(
        &'a self,
        decision: &Decision,
        particulars: &Particulars,
        by: Counted,
        headers: &mut HeaderMap,
        sheet: &mut Sheet<'a>,
    ) {
        match by {
            Counted::Shared => self.fields.write(decision, particulars, headers, sheet),
            Counted::Locally => self.fields.write_local(decision, particulars, headers, sheet),
        }
        if self.tells_shadows {
            shadow::write(shadows(decision).map(|standing| standing.name), headers);
        }
    }

    /// The answer to a refused request, with what a decision has to say if there was one.
    pub(crate) fn refuse(
        &self,
        refused: &Refused<'_>,
        decided: Option<(&Decision, &Particulars, Counted)>,
    ) -> Response<Bytes> {
        let mut sheet = Sheet::new();
        let body = self.usual(refused, &mut sheet);
        let mut response = match body {
            Some(_) => Response::new(Bytes::new()),
            None => self.unusual(refused),
        };
        if let Some((decision, particulars, by)) = decided {
            self.tell(decision, particulars, by, response.headers_mut(), &mut sheet);
        }
        let text = sheet.pour(response.headers_mut(), &self.forms.refused);
        if let Some(body) = body {
            *response.status_mut() = refused.status();
            *response.body_mut() = body.of(&text);
        }
        response
    }

    /// Puts the usual answer on a sheet, of which its body is this piece; `None` when another is due.
    fn usual<'a>(&'a self, refused: &Refused<'_>, sheet: &mut Sheet<'a>) -> Option<Piece> {
        let head = refused.head();
        if self.refusal.is_some() || head.method() == Method::HEAD || GrpcType::of(head).is_some() {
            return None;
        }
        let body = Negotiated::on_sheet(refused, sheet)?;
        sheet.constant(const { &CACHE_CONTROL }, &NO_STORE);
        if let Some(wait) = refused.retry_after() {
            let seconds = sheet.digits(whole_seconds(wait).max(1));
            sheet.text(const { &RETRY_AFTER }, seconds);
        }
        Some(body)
    }

    fn unusual(&self, refused: &Refused<'_>) -> Response<Bytes> {
        let head = refused.head();
        let mut response = match (GrpcType::of(head), &self.refusal) {
            (Some(grpc), _) => grpc.respond(refused, self.grpc_domain),
            (None, Some(refusal)) => refusal.respond(refused),
            (None, None) => Negotiated.respond(refused),
        };
        if head.method() == Method::HEAD {
            // What a GET would have brought, without bringing it.
            let length = core::mem::take(response.body_mut()).len();
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        let headers = response.headers_mut();
        headers.entry(CACHE_CONTROL).or_insert_with(|| NO_STORE.clone());
        if let Some(wait) = refused.retry_after() {
            headers.entry(RETRY_AFTER).or_insert_with(|| whole_seconds(wait).max(1).into());
        }
        response
    }

    /// What one refused client waits longer than it must.
    pub(crate) fn draw_jitter(&self) -> Duration {
        match u64::try_from(self.most_jitter.as_micros()) {
            Ok(0) => Duration::ZERO,
            most => Duration::from_micros(fastrand::u64(0..=most.unwrap_or(u64::MAX))),
        }
    }
}
