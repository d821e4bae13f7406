//! H.248.1 text messages: what is read and written, what is refused, and that nothing breaks the reader.

mod binary;
mod dissector;
mod field_bugs;
mod golden;
mod messages;
mod properties;
mod refusals;

use tollgate::proto::codec::h248::{Refusal, Shape, Style, exercise};

use crate::files;

/// The corpus: messages that are read whole.
fn corpus() -> Vec<(String, Vec<u8>)> {
    files("h248", ".txt").into_iter().filter(|(name, _)| !name.starts_with("refused")).collect()
}

/// The message, read and written anew.
fn transcribed(message: &[u8], style: Style) -> Result<Vec<u8>, Refusal> {
    let mut buffer = vec![0; 200_000];
    let length = exercise::transcribe(message, &mut Shape::new(), &mut buffer, style)?;
    buffer.truncate(length);
    Ok(buffer)
}
