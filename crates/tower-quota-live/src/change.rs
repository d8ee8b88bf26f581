/// The author of a change and the reason, for the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct By {
    pub(crate) author: String,
    pub(crate) comment: String,
}

impl By {
    /// Names the author, such as a person, a program or the subject of a token.
    pub fn new(author: impl Into<String>) -> Self {
        Self {
            author: author.into(),
            comment: String::new(),
        }
    }

    /// Sets the reason.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }
}

impl From<&str> for By {
    fn from(author: &str) -> Self {
        Self::new(author)
    }
}
