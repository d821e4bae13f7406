//! What the ends of calls heard, in files that programs for sound play: WAV, 8 kHz, one channel, 16 bits linear, full scale 3.17 dBm0.
//!
//! A file for each end of a call, from its set-up to its end, until all of them together have as many octets as they may. What cannot be
//! written ends the recording and not the calls.

use crate::proto::voice::Law;
use anyhow::{Context, Result, ensure};
use hound::{SampleFormat, WavSpec, WavWriter};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Octets in front of the samples of a file.
const HEADER: u64 = 44;
/// Octets of a sample.
const SAMPLE: u64 = 2;
/// How a file begins.
const FORM: WavSpec = WavSpec { channels: 1, sample_rate: 8_000, bits_per_sample: 16, sample_format: SampleFormat::Int };

/// All recordings of a load.
pub struct Recorder {
    directory: PathBuf,
    /// Octets that may still be written.
    left: Rc<Cell<u64>>,
    files: u64,
    samples: u64,
    /// Files that end before their call, or were not begun, for want of room.
    cut: u64,
    not_made: u64,
    /// What could not be written, first.
    pub error: Option<String>,
}

/// One end of a call that is recorded.
pub struct Tape {
    path: PathBuf,
    /// Gone when it could not be written.
    writer: Option<WavWriter<BufWriter<File>>>,
    left: Rc<Cell<u64>>,
    samples: u64,
    is_cut: bool,
    error: Option<String>,
}

impl Recorder {
    /// Into this directory, which is made, with at most so many octets.
    ///
    /// # Errors
    /// It cannot be had, or has something in it.
    pub fn open(directory: &Path, limit: u64) -> Result<Recorder> {
        let what = || format!("--record {}", directory.display());
        std::fs::create_dir_all(directory).with_context(what)?;
        let is_empty = std::fs::read_dir(directory).with_context(what)?.next().is_none();
        ensure!(is_empty, "{}: has something in it, and no recording replaces another one", what());
        let (left, directory) = (Rc::new(Cell::new(limit)), directory.to_owned());
        Ok(Recorder { directory, left, files: 0, samples: 0, cut: 0, not_made: 0, error: None })
    }

    /// Begins to record what `end` of this call (`a` calls, `b` is called) hears at this endpoint; `None` when nothing more can be written.
    pub fn begin(&mut self, call: u64, end: char, endpoint: &str) -> Option<Tape> {
        if self.left.get() <= HEADER || self.error.is_some() {
            self.not_made += 1;
            return None;
        }
        let plain = |symbol: char| if symbol.is_ascii_alphanumeric() { symbol } else { '-' };
        let local: String = endpoint.split('@').next().unwrap_or_default().chars().map(plain).collect();
        let path = self.directory.join(format!("{call:05}-{end}-{local}.wav"));
        match WavWriter::create(&path, FORM) {
            Ok(writer) => {
                self.left.set(self.left.get() - HEADER);
                self.files += 1;
                Some(Tape { path, writer: Some(writer), left: Rc::clone(&self.left), samples: 0, is_cut: false, error: None })
            }
            Err(error) => {
                self.error = Some(format!("{}: {error}", path.display()));
                self.not_made += 1;
                None
            }
        }
    }

    /// The call has ended.
    pub fn end(&mut self, tape: Tape) {
        let Tape { path, writer, samples, is_cut, error, .. } = tape;
        let ended = writer.map_or(Ok(()), WavWriter::finalize).map_err(|error| error.to_string());
        self.samples += samples;
        self.cut += u64::from(is_cut);
        if let Some(error) = error.or(ended.err()) {
            self.error.get_or_insert(format!("{}: {error}", path.display()));
        }
    }

    /// What was recorded.
    pub fn report(&self) -> Value {
        json!({ "files": self.files, "seconds": self.samples as f64 / 8_000.0, "cut_short": self.cut, "not_made": self.not_made })
    }
}

impl Tape {
    /// Octets that came.
    pub fn take(&mut self, law: Law, octets: &[u8]) {
        let Some(writer) = &mut self.writer else { return };
        for &octet in octets {
            let Some(left) = self.left.get().checked_sub(SAMPLE) else {
                self.is_cut = true;
                return;
            };
            if let Err(error) = writer.write_sample(law.decode(octet)) {
                self.error = Some(error.to_string());
                self.writer = None;
                return;
            }
            self.left.set(left);
            self.samples += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("tollgate-record-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_came_is_in_the_file_of_its_end() {
        let directory = Directory::new("octets");
        let mut recorder = Recorder::open(&directory.0, 1 << 20).unwrap();
        let mut tapes = [('a', "ds/../1@gw"), ('b', "ds/ds1-1/1@gw")].map(|(end, name)| recorder.begin(7, end, name).unwrap());
        let octets: Vec<u8> = (0..=255).collect();
        tapes[0].take(Law::Mu, &octets);
        tapes[1].take(Law::A, &octets);
        tapes.into_iter().for_each(|tape| recorder.end(tape));
        for (name, law) in [("00007-a-ds----1.wav", Law::Mu), ("00007-b-ds-ds1-1-1.wav", Law::A)] {
            let mut reader = hound::WavReader::open(directory.0.join(name)).unwrap();
            assert_eq!(reader.spec(), FORM);
            let values: Vec<i16> = reader.samples().map(Result::unwrap).collect();
            assert_eq!(values, octets.iter().map(|&octet| law.decode(octet)).collect::<Vec<_>>());
        }
        assert_eq!(recorder.report(), json!({ "files": 2, "seconds": 0.064, "cut_short": 0, "not_made": 0 }));
        let again = Recorder::open(&directory.0, 1 << 20).err().unwrap();
        assert!(format!("{again:#}").contains("has something in it"), "{again:#}");
    }

    #[test]
    fn no_more_is_written_than_may_be() {
        let directory = Directory::new("limit");
        let limit = 2 * HEADER + SAMPLE * 1_000;
        let mut recorder = Recorder::open(&directory.0, limit).unwrap();
        let mut tapes = [1, 2].map(|call| recorder.begin(call, 'a', "x").unwrap());
        for _ in 0..100 {
            tapes.iter_mut().for_each(|tape| tape.take(Law::Mu, &[0x12; 8]));
        }
        assert!(recorder.begin(3, 'a', "x").is_none());
        tapes.into_iter().for_each(|tape| recorder.end(tape));
        assert_eq!(recorder.report(), json!({ "files": 2, "seconds": 0.125, "cut_short": 2, "not_made": 1 }));
        let size: u64 = std::fs::read_dir(&directory.0).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert_eq!(size, limit);
        assert_eq!(recorder.error, None);
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_nothing_more_is_tried() {
        let directory = Directory::new("gone");
        let mut recorder = Recorder::open(&directory.0, 1 << 20).unwrap();
        std::fs::remove_dir(&directory.0).unwrap();
        assert!(recorder.begin(1, 'a', "x").is_none() && recorder.begin(1, 'b', "x").is_none());
        assert!(recorder.error.as_ref().is_some_and(|error| error.contains("00001-a-x.wav")), "{:?}", recorder.error);
        assert_eq!(recorder.report()["not_made"], 2);
    }

    #[test]
    fn a_full_disk_ends_the_recording() {
        let directory = Directory::new("full");
        let mut recorder = Recorder::open(&directory.0, 1 << 20).unwrap();
        std::os::unix::fs::symlink("/dev/full", directory.0.join("00001-a-x.wav")).unwrap();
        let mut tape = recorder.begin(1, 'a', "x").unwrap();
        tape.take(Law::Mu, &[0; 20_000]);
        recorder.end(tape);
        assert!(recorder.error.as_ref().is_some_and(|error| error.contains("00001-a-x.wav")), "{:?}", recorder.error);
    }
}
