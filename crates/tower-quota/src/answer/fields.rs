//! The rate limit header fields: a pure function of a decision, the policy it was made on, and the styles chosen.

use std::sync::Arc;

use http::header::HeaderMap;
use tower_quota_core::Decision;

use super::particulars::Particulars;
use super::sheet::Sheet;
use super::style::{HeaderStyle, Style, write_degraded};
use super::telling::{Telling, is_first};
use super::usual::Usual;
use crate::limit::Limit;

/// The fields of a policy's limits in the styles of a layer. Whatever never changes is rendered when this is made.
#[derive(Debug)]
pub(crate) struct Fields {
    styles: Vec<Box<dyn Style>>,
    /// Makes the answers where there is no other style than the default one.
    usual: Option<Arc<Usual>>,
}

impl Fields {
    pub(crate) fn new<'a>(styles: &[HeaderStyle], limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let limits: Vec<Limit> = limits.into_iter().filter(|limit| !limit.is_shadow()).cloned().collect();
        let usual = if styles == HeaderStyle::DEFAULT { Usual::new(&limits).map(Arc::new) } else { None };
        Self { styles: styles.iter().map(|style| style.of(&limits)).collect(), usual }
    }

    /// What makes the answers where they are the usual ones.
    pub(crate) const fn usual(&self) -> Option<&Arc<Usual>> {
        self.usual.as_ref()
    }

    /// Whether there is no style.
    pub(super) const fn is_empty(&self) -> bool {
        self.styles.is_empty()
    }

    /// Adds what the store's decision has to say to the headers of its response.
    pub(super) fn write<'a>(
        &'a self,
        decision: &Decision,
        particulars: &Particulars,
        headers: &mut HeaderMap,
        sheet: &mut Sheet<'a>,
    ) {
        let telling = Telling { decision, particulars, is_first: is_first(headers) };
        for style in &self.styles {
            style.write(telling, headers, sheet);
        }
    }

    /// Adds what an instance has decided by its own counters, and marks the answer.
    pub(super) fn write_local<'a>(
        &'a self,
        decision: &Decision,
        particulars: &Particulars,
        headers: &mut HeaderMap,
        sheet: &mut Sheet<'a>,
    ) {
        if particulars.only_shadows {
            return;
        }
        if decision.enforced().next().is_none() {
            return self.write_uncounted(headers);
        }
        let telling = Telling { decision, particulars, is_first: is_first(headers) };
        for style in &self.styles {
            style.write_local(telling, headers, sheet);
        }
        self.mark_degraded(headers);
    }

    /// Says that nothing was counted, and marks the answer.
    pub(crate) fn write_uncounted(&self, headers: &mut HeaderMap) {
        for style in &self.styles {
            style.write_uncounted(headers);
        }
        self.mark_degraded(headers);
    }

    /// Says that the store had no part in an answer, if there is a style to say it in.
    pub(crate) fn mark_degraded(&self, headers: &mut HeaderMap) {
        if !self.styles.is_empty() {
            write_degraded(headers);
        }
    }
}
