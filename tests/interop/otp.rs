//! A running `controller.erl`.

use crate::gateway::{Kept, SOON, Tuning};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};

/// The Erlang that talks as it is told; killed when dropped.
pub struct Otp {
    _child: Kept,
    orders: ChildStdin,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Otp {
    /// Listens where the gateway of `tuning` will register; `None`, and why is said: there is no Erlang here.
    pub fn start(tuning: &Tuning, transport: &str, encoding: &str) -> Option<Otp> {
        let Ok(directory) = compiled().inspect_err(|reason| eprintln!("skipped: {reason}")) else { return None };
        let log = tuning.directory.join("otp");
        let arguments = [&tuning.addresses.agent().ip().to_string(), transport, encoding].map(|word| format!("{word:?}")).join(",");
        let start = format!("controller:main([{arguments}])");
        let mut child = erl().arg("-pa").arg(directory).args(["-eval", &start]).stderr(File::create(&log).unwrap()).spawn().unwrap();
        let (orders, lines) = (child.stdin.take().unwrap(), lines(&mut child));
        let otp = Otp { _child: Kept(child), orders, lines, log };
        match otp.next().as_str() {
            "listening" => Some(otp),
            reason @ "no megaco in this Erlang" => {
                eprintln!("skipped: {reason}");
                None
            }
            other => panic!("it does not listen but says {other}: {}", otp.log()),
        }
    }

    /// The next line it says; it must be this one.
    pub fn hears(&self, wanted: &str) {
        assert_eq!(self.next(), wanted, "{}", self.log());
    }

    /// What it answers to an order.
    pub fn asks(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.next()
    }

    /// An order, and what it is to answer.
    pub fn tells(&mut self, order: &str, wanted: &str) {
        assert_eq!(self.asks(order), wanted, "{order}: {}", self.log());
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(SOON * 3).unwrap_or_else(|_| panic!("it says nothing more: {}", self.log()))
    }

    /// It could read all that came.
    pub fn reads_all(&mut self) {
        assert_eq!(self.asks("count syntax"), "0", "{}", self.log());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Its lines, by a thread of its own: a pipe has no deadline.
fn lines(child: &mut Child) -> Receiver<String> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

fn erl() -> Command {
    let mut command = Command::new("erl");
    command.args(["-noshell", "-boot", "start_clean", "+S", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Where the compiled controller is: compiled once in a process.
fn compiled() -> Result<PathBuf, String> {
    static PLACE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PLACE.get_or_init(compile).clone()
}

fn compile() -> Result<PathBuf, String> {
    let directory = std::env::temp_dir().join(format!("tollgate-otp-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/controller.erl");
    let output = Command::new("erlc").arg("-Werror").arg("-o").arg(&directory).arg(source).output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err("no erlc here".into()),
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(directory)
}
