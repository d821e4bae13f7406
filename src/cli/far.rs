//! Tells far ends what to do, for `tollgate load`: those of simulated channels over the operator socket, as `tollgate sim` does; those of
//! spans in pseudowires are played here.

use super::{Cli, ask, order, read};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tollgate::config::{Config, SpanKind};
use tollgate::host::control::orders::far_order;
use tollgate::host::control::protocol::{Request, Sim};
use tollgate::host::control::socket;
use tollgate::host::lines::signalling;
use tollgate::load::FarEnds;
use tollgate::load::far_end::played::{Played, Span};
use tollgate::load::far_end::trunk::{TrunkSettings, channel_numbers};
use tollgate::proto::circuit::Coding;
use tollgate::proto::trunk::FacilityKind;

/// An order is given so often before it counts as not given: a core may have lost its CPU for
/// a moment. One that was carried out all the same is carried out again, which matters for winks only.
const ATTEMPTS: usize = 3;
/// Before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Whoever runs the gateway.
pub struct Operator {
    config: Option<PathBuf>,
    /// The operator socket; found when it is needed.
    socket: OnceLock<PathBuf>,
}

impl Operator {
    /// By `socket`, or by the one the tuning file names.
    pub fn new(config: Option<&Path>, socket: Option<PathBuf>) -> Operator {
        Operator { config: config.map(Path::to_owned), socket: socket.map(OnceLock::from).unwrap_or_default() }
    }

    fn socket(&self) -> Result<&Path> {
        if let Some(socket) = self.socket.get() {
            return Ok(socket);
        }
        let found = socket::path(&read(self.config.as_deref())?);
        Ok(self.socket.get_or_init(|| found))
    }
}

/// What an order in the words of `tollgate sim` is.
fn request(endpoint: &str, words: &str) -> Result<Request> {
    let (verb, argument) = words.split_once(' ').unwrap_or((words, ""));
    let argument = Some(argument).filter(|argument| !argument.is_empty());
    let line = ["tollgate", "sim", verb, endpoint].into_iter().chain(argument);
    Ok(order(Cli::try_parse_from(line).with_context(|| format!("sim {words}"))?.verb))
}

/// Far ends that are played here.
pub struct Here(Played);

impl Here {
    /// Those of all spans in pseudowires of the gateway with this file, whose packets lose their way to it to this share.
    pub fn play(config: Option<&Path>, loss: f64) -> Result<Here> {
        let config = read(config)?;
        let spans = spans(&config, loss)?;
        if spans.is_empty() {
            bail!("--far-ends: no span of the gateway's file is in a pseudowire (--config FILE)");
        }
        Ok(Here(Played::start(&spans)?))
    }
}

/// The far ends of the spans in pseudowires, as the gateway's file has them.
fn spans(config: &Config, loss: f64) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    for span in &config.spans {
        let Some(first) = span.wire else { continue };
        let (signals, e1) = (signalling(span), span.kind == SpanKind::E1);
        let facility = if e1 { FacilityKind::E1 } else { FacilityKind::T1 };
        let coding = Coding::of(signals.kind, signals.ground_start, facility);
        for (line, place) in span.lines().zip(0..) {
            let wire = first.line(place);
            let layout = wire.layout().map_err(|why| anyhow::anyhow!("the pseudowire at {}: {why}", wire.local))?;
            let (listen, peer, jitter, framing) = (wire.peer, wire.local, wire.jitter, wire.framing);
            let trunk = TrunkSettings { listen, peer, layout, framing, e1, jitter, ppm: 0.0, loss };
            let channels = channel_numbers(e1, coding.is_some());
            spans.push(Span { name: line.name, trunk, kind: signals.kind, digits: signals.digits(), coding, channels });
        }
    }
    Ok(spans)
}

impl FarEnds for Here {
    fn order(&self, endpoint: &str, words: &str) -> Result<()> {
        let Request::Sim(Sim::Far { order, .. }) = request(endpoint, words)? else { bail!("{words}: no order to a far end") };
        let kind = self.0.digit_kind(endpoint).with_context(|| format!("{endpoint}: its far end is not played here"))?;
        self.0.order(endpoint, far_order(&order, kind).map_err(anyhow::Error::msg)?)
    }
}

impl FarEnds for Operator {
    fn order(&self, endpoint: &str, words: &str) -> Result<()> {
        let request = request(endpoint, words)?;
        let socket = self.socket()?;
        let mut done = ask::exchange(socket, &request);
        for _ in 1..ATTEMPTS {
            if done.is_ok() {
                break;
            }
            std::thread::park_timeout(PAUSE);
            done = ask::exchange(socket, &request);
        }
        done.map(drop)
    }
}
