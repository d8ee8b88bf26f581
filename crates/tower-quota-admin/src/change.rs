use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::request::Parts;
use tower_quota_live::By;

use crate::Author;
use crate::problem::{Problem, Result};

pub(crate) struct Change {
    pub(crate) author: String,
    pub(crate) comment: String,
}

const LONGEST_COMMENT: usize = 1_000;

impl Change {
    pub(crate) fn by(&self) -> By {
        By::new(&self.author).comment(&self.comment)
    }

    pub(crate) fn because(mut self, reason: &str) -> Result<By> {
        let reason = plain_comment(reason)?;
        if !reason.is_empty() {
            self.comment = reason;
        }
        Ok(self.by())
    }
}

/// Checks the length of a reason, and returns it as a line of plain text.
///
/// Control characters could reach a terminal, and direction characters could hide text.
pub(crate) fn plain_comment(comment: &str) -> Result<String> {
    if comment.chars().count() > LONGEST_COMMENT {
        return Err(Problem::invalid(format_args!(
            "a comment or reason has at most {LONGEST_COMMENT} characters"
        )));
    }
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let comment = comment.replace(turns, "").replace(char::is_control, " ");
    Ok(comment.trim().to_owned())
}

impl<S: Send + Sync> FromRequestParts<S> for Change {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let field = parts.headers.get("x-comment");
        let comment = core::str::from_utf8(field.map_or(b"", HeaderValue::as_bytes))
            .map_err(|_| Problem::invalid("the header X-Comment is not UTF-8"))?;
        let comment = plain_comment(comment)?;
        let author = parts
            .extensions
            .get::<Author>()
            .map_or_else(|| "unnamed".to_owned(), |author| author.0.clone());
        Ok(Self { author, comment })
    }
}
