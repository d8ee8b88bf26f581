//! TLS with certificates that are read again.

mod error;
mod read;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

pub use self::error::TlsError;
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
}

/// The contents of the files that were read last.
#[derive(Debug)]
pub(crate) struct LastRead(Result<Texts, TlsError>);

impl Certificates {
    /// Reads the files. The connections speak one of the protocols, by ALPN.
    pub(crate) fn open(files: TlsFiles, protocols: &[&str]) -> Result<(Self, LastRead), TlsError> {
        let protocols: Vec<Vec<u8>> = protocols.iter().map(|name| (*name).into()).collect();
        let texts = Texts::read(&files)?;
        let config = texts.config(&files, &protocols)?;
        let certificates = Self {
            files,
            protocols,
            current: ArcSwap::from_pointee(config),
        };
        Ok((certificates, LastRead(Ok(texts))))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }

    /// Reads the files again. Returns `None` if they are the same as before.
    ///
    /// After an error, the earlier certificates stay. The call blocks.
    pub(crate) fn poll(&self, last: &mut LastRead) -> Option<Result<(), TlsError>> {
        let texts = Texts::read(&self.files);
        if texts == last.0 {
            return None;
        }
        let config = match &texts {
            Ok(texts) => texts.config(&self.files, &self.protocols),
            Err(error) => Err(error.clone()),
        };
        last.0 = texts;
        Some(config.map(|config| self.current.store(Arc::new(config))))
    }
}
