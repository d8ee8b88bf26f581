//! Keeps a local copy of the last valid document and of the blocks, for a restart during an outage.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::blocks::Block;
use crate::files;
use crate::store::Point;
use crate::version::Version;

#[derive(Serialize, Deserialize)]
pub(super) struct LocalCopy {
    pub(super) version: Version,
    pub(super) blocks: Vec<Block>,
    /// The removed blocks that have not ended.
    pub(super) removed: HashMap<String, Block>,
    /// The identity of the copied store.
    pub(super) store: String,
    /// The points of the documents and of the blocks that were copied.
    pub(super) points: [Point; 2],
}

impl LocalCopy {
    /// Makes and writes a copy off the runtime's threads, because it may have thousands of blocks.
    pub(super) async fn write(
        make: impl FnOnce() -> Self + Send + 'static,
        path: &Path,
    ) -> io::Result<()> {
        let text = files::blocking(move || Ok(serde_json::to_string(&make())?)).await?;
        files::replace(path, text).await
    }

    pub(super) async fn read(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        files::blocking(move || Ok(serde_json::from_slice(&std::fs::read(path)?)?)).await
    }
}
