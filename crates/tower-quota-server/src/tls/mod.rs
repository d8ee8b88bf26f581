//! TLS with certificates that are read again.

mod read;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;
use tower_quota_core::Lock;

use self::read::Texts;
use crate::options::TlsFiles;

/// The certificates of a port.
///
/// Connections keep the certificate that they began with.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsFiles,
    protocols: Vec<Vec<u8>>,
    current: ArcSwap<ServerConfig>,
    /// The contents of the files that were read last.
    last: Lock<Result<Texts, String>>,
}

impl Certificates {
    /// Reads the files. The connections speak one of the protocols, by ALPN.
    pub(crate) fn open(files: TlsFiles, protocols: &[&str]) -> Result<Self, String> {
        let protocols: Vec<Vec<u8>> = protocols.iter().map(|name| (*name).into()).collect();
        let texts = Texts::read(&files)?;
        let config = texts.config(&files, &protocols)?;
        Ok(Self {
            files,
            protocols,
            current: ArcSwap::from_pointee(config),
            last: Lock::new(Ok(texts)),
        })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }

    /// Reads the files again. Returns `None` if they are the same as before.
    ///
    /// After an error, the earlier certificates stay. The call blocks.
    pub(crate) fn poll(&self) -> Option<Result<(), String>> {
        let texts = Texts::read(&self.files);
        let mut last = self.last.lock();
        if texts == *last {
            return None;
        }
        let config = match &texts {
            Ok(texts) => texts.config(&self.files, &self.protocols),
            Err(error) => Err(error.clone()),
        };
        *last = texts;
        Some(config.map(|config| self.current.store(Arc::new(config))))
    }
}
