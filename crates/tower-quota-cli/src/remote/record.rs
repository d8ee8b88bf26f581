//! Keeps the version that a file of rules was made from in `FILE.version`.

use std::fs;
use std::path::{Path, PathBuf};

use super::Api;
use crate::failure::Failure;

/// A file with the entity tag of a version, and the address of its service.
pub(super) struct Record(PathBuf);

impl Record {
    pub(super) fn of(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push(".version");
        Self(name.into())
    }

    /// Returns the recorded tag, if the record is of this service.
    pub(super) fn read(&self, api: &Api) -> Option<String> {
        let text = fs::read_to_string(&self.0).ok()?;
        let (tag, of) = text.trim_end().split_once(' ')?;
        (of == api.client.address).then(|| tag.to_owned())
    }

    pub(super) fn write(&self, tag: &str, api: &Api) -> Result<(), Failure> {
        fs::write(&self.0, format!("{tag} {}\n", api.client.address))
            .map_err(Failure::at(self.0.display()))
    }
}
