use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tower_quota_core::{Decision, Name, Quota};

use super::answers::Answers;
use super::fields::Fields;
use super::particulars::Particulars;
use super::partition::{PartitionKey, Partitions};
use super::refusal::{Refusal, Refused};
use super::style::HeaderStyle;
use crate::limit::Limit;
use crate::settle::Counted;

#[derive(Clone)]
pub(crate) struct ResponseSettings {
    pub(crate) styles: Vec<HeaderStyle>,
    pub(crate) refusal: Option<Arc<dyn Refusal>>,
    pub(crate) partitions: Option<Partitions>,
    pub(crate) grpc_domain: Name,
    pub(crate) tells_shadows: bool,
    pub(crate) most_jitter: Duration,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self {
            styles: HeaderStyle::DEFAULT.to_vec(),
            refusal: None,
            partitions: None,
            grpc_domain: const { Name::new("tower-quota") },
            tells_shadows: false,
            most_jitter: Duration::ZERO,
        }
    }
}

pub(crate) struct Responses(Answers);

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) decision: Option<Decision>,
    pub(crate) by: Counted,
    pub(crate) overrides: Vec<(Name, Quota)>,
    pub(crate) partitions: Box<[(Name, PartitionKey)]>,
    pub(crate) jitter: Duration,
    pub(crate) only_shadows: bool,
}

impl Report {
    fn particulars(&self) -> Particulars {
        Particulars {
            overrides: self.overrides.clone(),
            partitions: self.partitions.clone(),
            jitter: self.jitter,
            only_shadows: self.only_shadows,
        }
    }
}

impl Responses {
    pub(crate) fn new<'a>(settings: &ResponseSettings, limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let mut answers = Answers::new(Fields::new(&settings.styles, limits));
        answers.refusal = settings.refusal.clone();
        answers.partitions = settings.partitions.clone();
        answers.grpc_domain = settings.grpc_domain;
        answers.tells_shadows = settings.tells_shadows;
        answers.most_jitter = settings.most_jitter;
        Self(answers)
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.0.is_silent()
    }

    pub(crate) fn partitions(&self) -> Option<&Partitions> {
        self.0.partitions.as_ref()
    }

    pub(crate) fn draw_jitter(&self) -> Duration {
        self.0.draw_jitter()
    }

    pub(crate) fn admitted(&self, report: &Report, headers: &mut HeaderMap) {
        match &report.decision {
            Some(decision) => self.0.write(decision, &report.particulars(), report.by, headers),
            None if !report.only_shadows => self.0.fields.write_uncounted(headers),
            None => {}
        }
    }

    pub(crate) fn refuse(&self, refused: &Refused<'_>, report: Option<&Report>) -> Response<Bytes> {
        match report {
            Some(report) => {
                let particulars = report.particulars();
                let decided = report.decision.as_ref().map(|decision| (decision, &particulars, report.by));
                let mut response = self.0.refuse(refused, decided);
                if decided.is_none() {
                    self.0.fields.mark_degraded(response.headers_mut());
                }
                response
            }
            None => self.0.refuse(refused, None),
        }
    }
}
