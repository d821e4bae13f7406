//! Golden datagrams and properties of the codec, through its public interface only.

mod allocations;
mod field_bugs;
mod golden;
mod h248;
mod properties;
mod pseudowire;
mod replay;
mod tshark;
mod voice;

use std::path::{Path, PathBuf};

/// A directory of inputs that came from outside or are compared as files.
fn data(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(directory)
}

/// Every file of a data directory whose name ends so, by name.
fn files(directory: &str, ending: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data(directory)).expect("the data directory is there") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().expect("files have names").to_string_lossy().into_owned();
        if name.ends_with(ending) {
            found.push((name, std::fs::read(&path).expect("it can be read")));
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{directory} has no {ending}");
    found
}
