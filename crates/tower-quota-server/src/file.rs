use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a file. A read of a pipe or a device may never end, so only files are read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("this is no file")),
    }
}

/// Reads a file of a flag.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| {
        let path = path.display();
        format!("{path}: {error}: check the path and its permissions")
    })?;
    Ok(bytes)
}
