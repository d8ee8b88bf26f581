use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::path::PathBuf;

use tower_quota_admin::AdminError;
use tower_quota_live::RuleStoreError;

use crate::envoy::Problems;
use crate::store::StoreError;
use crate::tls::TlsError;

/// An error of the start, with the flag or the file, and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No limits at all.
    #[error("there are no limits to serve: give --rules PATH, --envoy PATH, or RUNTIME_ROOT")]
    NoLimits,
    /// Flags that contradict each other, or a variable that the server does not have.
    #[error("{0}")]
    Flags(String),
    /// Problems of the limits of Envoy.
    #[error("the limits in {} cannot be used\n{problems}", folder.display())]
    Limits {
        /// The folder.
        folder: PathBuf,
        /// The problems.
        problems: Problems,
    },
    /// A source of documents that cannot be used.
    #[error("--rules (TOWER_QUOTA_RULES): {0}")]
    Source(#[from] RuleStoreError),
    /// A document that cannot be used.
    #[error("--rules (TOWER_QUOTA_RULES): {store}: {reason}")]
    Rules {
        /// The file, or the Redis.
        store: String,
        /// The problems.
        reason: String,
    },
    /// Counters that cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An unusable secret of the admin API.
    #[error(
        "--admin-token (TOWER_QUOTA_ADMIN_TOKEN), --admin-tokens (TOWER_QUOTA_ADMIN_TOKENS): {0}"
    )]
    Admin(#[from] AdminError),
    /// A certificate that cannot be used.
    #[error("--{port}-tls-cert, --{port}-tls-key, --{port}-tls-client-ca: {error}")]
    Tls {
        /// The name of the port.
        port: &'static str,
        /// The file and the fix.
        error: TlsError,
    },
    /// An address that cannot be used.
    #[error("--{port} {address}: {error}: choose another address or port")]
    Address {
        /// The name of the port.
        port: &'static str,
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
}

impl From<tower_quota_live::StartError> for StartError {
    fn from(error: tower_quota_live::StartError) -> Self {
        use tower_quota_live::StartError::{Invalid, Unavailable};
        match error {
            Invalid { store, reason } => Self::Rules { store, reason },
            // The reason names the store.
            Unavailable { reason, .. } => Self::Flags(format!(
                "--rules (TOWER_QUOTA_RULES): {reason}: check the path and its permissions"
            )),
            other => Self::Flags(other.to_string()),
        }
    }
}

/// All errors of a start.
#[derive(Debug, Default)]
pub struct StartErrors(Vec<StartError>);

impl StartErrors {
    /// Returns the errors.
    pub fn iter(&self) -> core::slice::Iter<'_, StartError> {
        self.0.iter()
    }

    pub(super) fn add(&mut self, error: StartError) {
        self.0.push(error);
    }

    /// Keeps the error of a step, so that the next steps find more errors.
    pub(super) fn unless<T>(&mut self, step: Result<T, impl Into<StartError>>) -> Option<T> {
        match step {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(error.into());
                None
            }
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<StartError> for StartErrors {
    fn from(error: StartError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for StartErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl core::error::Error for StartErrors {}
