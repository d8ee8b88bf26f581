//! Hides the keys of clients from callers who may not change the rules.

use core::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use tower_quota_live::{ChangeError, LiveState};

use crate::api::{Api, CheckPlace};
use crate::auth::Role;
use crate::problem::{HIDDEN_PROBLEMS, Problem, ProblemKind, Result};

/// Whether the caller may read the keys in documents and in their problems.
///
/// All callers may if the options allow it, otherwise those who may change the rules.
#[derive(Clone, Copy)]
pub(crate) struct ReadsKeys(pub(crate) bool);

impl FromRequestParts<Api> for ReadsKeys {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Api,
    ) -> core::result::Result<Self, Infallible> {
        let role = parts.extensions.get::<Role>();
        let is_author = role.is_none_or(|role| *role == Role::Rules);
        Ok(Self(api.show_keys || is_author))
    }
}

/// The form of a document for the caller.
pub(crate) enum DocumentForm {
    /// The text as it was put.
    AsPut,
    /// The document with hidden keys, which takes the place of a check.
    Hidden(CheckPlace),
}

impl FromRequestParts<Api> for DocumentForm {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Ok(ReadsKeys(reads_keys)) = ReadsKeys::from_request_parts(parts, api).await;
        if reads_keys {
            return Ok(Self::AsPut);
        }
        let place = CheckPlace::from_request_parts(parts, api).await?;
        Ok(Self::Hidden(place))
    }
}

/// Returns the error of an unreadable version without the problems, which quote keys.
pub(crate) fn without_problems(error: ChangeError) -> Problem {
    match error {
        ChangeError::Invalid(problems) => {
            let count = problems.iter().len() + problems.more();
            let detail = format_args!("a version is invalid: {count} problems, {HIDDEN_PROBLEMS}");
            Problem::new(ProblemKind::InvalidRules, detail)
        }
        error => error.into(),
    }
}

/// Replaces an error that may quote a document.
pub(crate) fn hide_error(rules: &mut LiveState) {
    if rules.quotes_document && rules.last_error.is_some() {
        rules.last_error = Some(HIDDEN_PROBLEMS.to_owned());
    }
}
