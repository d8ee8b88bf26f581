use std::fs;
use std::path::Path;

/// Reads a file of a flag.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| {
        let path = path.display();
        format!("{path}: {error}: check the path and its permissions")
    })
}
