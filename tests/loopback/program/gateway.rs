//! A running `tollgate run`, its tuning file, and the commands that speak with it.

use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tollgate::host::clock::Clock;
use tollgate::proto::base::Time;

/// What ought to happen at once happens within this, on a machine that is busy with other tests.
pub const SOON: Duration = Duration::from_secs(10);
/// How often something is looked at that tells nobody when it changes.
pub const LOOK: Duration = Duration::from_millis(20);
/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

/// Time for tests: since it was made.
pub struct Watch(Clock, Time);

impl Watch {
    pub fn start() -> Watch {
        let clock = Clock::new();
        Watch(clock, clock.now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.now().since(self.1)
    }
}

/// Waits until `look` finds something.
pub fn eventually<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Watch::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(watch.elapsed() < within, "{what}: not within {within:?}");
        pause(LOOK);
    }
}

/// Lets time pass. (`park_timeout` may return early; the callers look again.)
pub fn pause(time: Duration) {
    let watch = Watch::start();
    while let Some(left) = time.checked_sub(watch.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// Four loopback addresses no other test has: of the process in the middle, of the test at the end.
#[derive(Clone, Copy)]
pub struct Addresses(Ipv4Addr);

impl Addresses {
    fn new() -> Addresses {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let block = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(block < 255, "more gateways than there are addresses for");
        // Four networks of 64 blocks for each process.
        let network = (high % 63) * 4 + block / 64;
        Addresses(Ipv4Addr::new(127, network + 1, low, block % 64 * 4))
    }

    /// These four.
    pub fn from(first: Ipv4Addr) -> Addresses {
        Addresses(first)
    }

    fn nth(self, n: u8) -> Ipv4Addr {
        let [a, b, c, d] = self.0.octets();
        Ipv4Addr::new(a, b, c, d + n)
    }

    /// Where the gateway is.
    pub fn gateway(self) -> SocketAddr {
        (self.nth(0), 2427).into()
    }

    /// Its second address.
    pub fn gateway_too(self) -> SocketAddr {
        (self.nth(1), 2427).into()
    }

    /// Where the call agent is.
    pub fn agent(self) -> SocketAddr {
        (self.nth(2), 2727).into()
    }

    /// Where somebody is whom the gateway does not know.
    pub fn stranger(self) -> SocketAddr {
        (self.nth(3), 2727).into()
    }

    /// Where metrics are.
    pub fn metrics(self) -> SocketAddr {
        (self.nth(0), 9427).into()
    }
}

/// A tuning file: the one built into the program, with addresses of its own and without waits.
pub struct Tuning {
    pub addresses: Addresses,
    pub directory: PathBuf,
    document: toml_edit::DocumentMut,
}

impl Tuning {
    pub fn new() -> Tuning {
        Tuning::at(Addresses::new())
    }

    /// With these addresses.
    pub fn at(addresses: Addresses) -> Tuning {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("tollgate-program-{}-{nth}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let document = include_str!("../../../tuning/gateway.toml").parse().unwrap();
        let tuning = Tuning { addresses, directory, document };
        let socket = tuning.socket();
        tuning
            .set("gateway.listen", &format!("[{:?}]", addresses.gateway().to_string()))
            .set("agent.0.addresses", &format!("[{:?}]", addresses.agent().ip().to_string()))
            .set("agent.0.notify", &format!("[{:?}]", addresses.agent().to_string()))
            .set("metrics.address", &format!("{:?}", addresses.metrics().to_string()))
            .set("operator.socket", &format!("{:?}", socket.to_str().unwrap()))
            .set("timers.mwd", "\"0s\"")
            .set("timers.shutdown_grace", "\"300ms\"")
            // On a machine busy with other tests a core loses its CPU for longer than that: no reason to refuse calls here.
            .set("overload.enter", "\"2s\"")
            .set("overload.refuse", "\"8s\"")
            .set("overload.busy_enter", "101")
            .set("limits.history_rate", "2000")
            .set("cores.both", "1")
    }

    /// One key, such as `timers.mwd` or `agent.0.name`; the value as it stands in the file.
    pub fn set(mut self, path: &str, value: &str) -> Tuning {
        let (table, key) = path.rsplit_once('.').unwrap();
        let value: toml_edit::Value = value.parse().unwrap();
        let mut item = self.document.as_item_mut();
        for step in table.split('.') {
            item = match step.parse::<usize>() {
                Ok(place) => {
                    item = &mut item[place];
                    item
                }
                Err(_) => &mut item[step],
            };
        }
        item[key] = toml_edit::value(value);
        self
    }

    /// What calls count in: a list of tables in one line.
    pub fn scopes(self, list: &str) -> Tuning {
        self.list("scope", list)
    }

    /// Tables of this name: a list in one line, in place of what is there.
    pub fn list(mut self, name: &str, list: &str) -> Tuning {
        self.document[name] = toml_edit::value(list.parse::<toml_edit::Value>().unwrap());
        self
    }

    /// No tables of this name.
    pub fn without(mut self, name: &str) -> Tuning {
        self.document.remove(name);
        self
    }

    /// The layout of cores; on as many CPUs as there are, one after the other.
    pub fn layout(self, both: u8, transport: u8, shard: u8) -> Tuning {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let cores = usize::from(both + transport + shard);
        let list: Vec<_> = (0..cores).map(|core| (core % cpus).to_string()).collect();
        let tuning = self.set("cores.transport", &transport.to_string()).set("cores.shard", &shard.to_string());
        let both = if both == 0 { "\"auto\"".into() } else { both.to_string() };
        let tuning = tuning.set("cores.both", &both);
        if cores > cpus { tuning } else { tuning.set("cores.cpus", &format!("[{}]", list.join(", "))) }
    }

    /// The same tuning, to be changed.
    pub fn copy(&self) -> Tuning {
        Tuning { addresses: self.addresses, directory: self.directory.clone(), document: self.document.clone() }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("tollgate.sock")
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join("gateway.toml")
    }

    /// Writes the file, which a reload reads again.
    pub fn write(&self) {
        fs::write(self.path(), self.text()).unwrap();
    }
}

/// A gateway that has said it is ready; it is killed when dropped.
pub struct Gateway {
    pub tuning: Tuning,
    /// The line it said so with.
    pub ready: String,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Gateway {
    pub fn start(tuning: Tuning) -> Gateway {
        tuning.write();
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg("--config").arg(tuning.path());
        Gateway::spawn(tuning, command)
    }

    /// Starts `command`, which is to be a gateway.
    pub fn spawn(tuning: Tuning, mut command: Command) -> Gateway {
        let log = File::create(tuning.directory.join("log")).unwrap();
        let child = command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = child.unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // The first line, or the end of the process, on a thread of its own: a pipe has no deadline.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = sender.send((line, stdout));
        });
        let Ok((ready, stdout)) = receiver.recv_timeout(SOON * 2) else {
            let _ = child.kill();
            panic!("no gateway within {SOON:?}: {}", log_of(&tuning.directory));
        };
        let gateway = Gateway { tuning, ready, child, stdout };
        assert!(gateway.ready.contains(" ready: "), "no gateway: {}", gateway.log());
        gateway
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        signal_to(self.pid(), signal);
    }

    /// Waits for the end of the process, and returns how it ended and what it printed behind the ready line.
    pub fn wait(&mut self, within: Duration) -> (ExitStatus, String) {
        let status = eventually("the gateway ends", within, || self.child.try_wait().unwrap());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (status, rest)
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it logged.
    pub fn log(&self) -> String {
        log_of(&self.tuning.directory)
    }

    /// `tollgate ARGUMENTS` about this gateway.
    pub fn tollgate(&self, arguments: &[&str]) -> Output {
        Command::new(PROGRAM).arg("--socket").arg(self.tuning.socket()).args(arguments).output().unwrap()
    }

    /// The same; it must succeed. What it printed.
    pub fn order(&self, arguments: &[&str]) -> String {
        let output = self.tollgate(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same; it must fail. What it printed.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.tollgate(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// `tollgate show ARGUMENTS --json`.
    pub fn show(&self, arguments: &[&str]) -> Value {
        let text = self.order(&[&["show"], arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// The rows of `tollgate show KIND ...`.
    pub fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        self.show(arguments)[arguments[0]]["rows"].as_array().unwrap().clone()
    }

    /// The sum of a counter over the cores.
    pub fn counter(&self, name: &str) -> u64 {
        self.counter_by_core(name).iter().sum()
    }

    pub fn counter_by_core(&self, name: &str) -> Vec<u64> {
        let all = self.show(&["counters"]);
        let row = all["counters"]["counters"].as_array().unwrap().iter().find(|row| row["name"] == name);
        let values = row.unwrap_or_else(|| panic!("no counter {name}"))["by_core"].as_array().unwrap();
        values.iter().map(|value| value.as_u64().unwrap()).collect()
    }

    /// Nothing went wrong that only the log and a counter tell.
    pub fn assert_sound(&self) {
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
        assert_eq!(self.counter("core_panics") + self.counter("release_refused"), 0);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the gateway: {}", self.log());
        } else {
            let _ = fs::remove_dir_all(&self.tuning.directory);
        }
    }
}

/// A child that is killed when dropped.
pub struct Kept(pub Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process of this test.
pub fn signal_to(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).unwrap();
    // SAFETY: kill touches no memory of ours.
    let done = unsafe { libc::kill(pid, signal) };
    assert_eq!(done, 0, "signal {signal} to {pid}");
}

fn log_of(directory: &Path) -> String {
    fs::read_to_string(directory.join("log")).unwrap_or_default()
}
