use std::path::{Path, PathBuf};

/// Certificates that cannot be used, with the file and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
#[non_exhaustive]
pub struct TlsError {
    /// The file.
    pub file: PathBuf,
    /// The reason, a colon and the fix.
    pub reason: String,
}

impl TlsError {
    pub(super) fn new(file: &Path, reason: String) -> Self {
        Self {
            file: file.to_owned(),
            reason,
        }
    }
}
