//! Keeps a local copy of the last valid document and of the blocks, for a restart during an outage.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::blocks::Block;
use crate::files;
use crate::version::Version;

#[derive(Serialize, Deserialize)]
pub(super) struct LocalCopy {
    pub(super) version: Version,
    pub(super) blocks: Vec<Block>,
    /// The revision of the store that was copied. A store that began later has lost data.
    #[serde(default)]
    pub(super) revision: Option<u64>,
}

impl LocalCopy {
    pub(super) async fn write(&self, path: &Path) -> io::Result<()> {
        files::replace(path, serde_json::to_string(self)?).await
    }

    pub(super) async fn read(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        files::blocking(move || Ok(serde_json::from_slice(&std::fs::read(path)?)?)).await
    }
}
