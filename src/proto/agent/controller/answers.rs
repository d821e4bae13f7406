//! What a controller makes of replies, and what it answers to the gateway's own requests.

use super::{Settings, write};
use crate::proto::base::TransactionId;
use crate::proto::codec::h248::{
    ActionPart, Command, ContextId, Descriptor, MediaPart, MessageId, Method, Reply, ReplyPart, Request, RequestId, StreamPart, Style,
    TerminationId, Token, Verb, Writer,
};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Requests of the gateway that are known when they come again.
const REMEMBERED: usize = 8192;
/// The longest answer.
const ANSWER_MAX: usize = 1500;

/// What a reply says.
#[derive(Clone, Default, Debug)]
pub(super) struct Outcome {
    /// The first error in it.
    pub error: Option<u16>,
    /// The first context of it that has a number.
    pub context: u32,
    /// The RTP stream that was added.
    pub rtp: String,
    /// Whether it has a description of that.
    pub description: bool,
    /// Whether it has statistics.
    pub statistics: bool,
}

/// Reads a reply.
pub(super) fn outcome(reply: &Reply<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    for part in reply.actions() {
        match part {
            Ok(ReplyPart::Error(error)) => outcome.note(error.code),
            Ok(ReplyPart::Action(action)) => {
                if let ContextId::Number(number) = action.context
                    && outcome.context == 0
                {
                    outcome.context = number;
                }
                for part in action.parts() {
                    match part {
                        Ok(ActionPart::Command(command)) => outcome.command(&command),
                        Ok(ActionPart::Error(error)) => outcome.note(error.code),
                        Ok(_) => {}
                        Err(_) => outcome.note(UNREADABLE),
                    }
                }
            }
            Err(_) => outcome.note(UNREADABLE),
        }
    }
    outcome
}

/// What is counted where a reply cannot be read.
const UNREADABLE: u16 = 400;

impl Outcome {
    fn note(&mut self, code: u16) {
        self.error.get_or_insert(code);
    }

    fn command(&mut self, command: &Command<'_>) {
        let mut described = false;
        for descriptor in command.descriptors() {
            match descriptor {
                Ok((_, Descriptor::Error(error))) => self.note(error.code),
                Ok((_, Descriptor::Statistics(_))) => self.statistics = true,
                Ok((_, Descriptor::Media(media))) => {
                    described |= media.parts().flatten().any(|part| match part {
                        MediaPart::One(StreamPart::Local(local)) => is_usable(local.raw()),
                        MediaPart::Stream(stream) => {
                            stream.parts().flatten().any(|part| matches!(part, StreamPart::Local(local) if is_usable(local.raw())))
                        }
                        _ => false,
                    });
                }
                Ok(_) => {}
                Err(_) => self.note(UNREADABLE),
            }
        }
        if command.verb == Verb::Add && described {
            self.description = true;
            self.rtp = String::from_utf8_lossy(command.termination.text()).into_owned();
        }
    }
}

/// Whether a description has nothing left open.
fn is_usable(text: &[u8]) -> bool {
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    has(b"m=audio ") && has(b"c=IN ") && !text.contains(&b'$')
}

/// What became of a request of the gateway.
pub(super) enum Seen {
    /// It came before, and is answered as then.
    Repeat,
    /// How many of what it has.
    New { restarts: u32, notifies: u32, overloads: u32, taken_away: bool },
}

/// Answers that wait to be sent, and what is remembered of requests.
#[derive(Default)]
pub(super) struct Answers {
    waiting: Vec<(SocketAddr, Vec<u8>)>,
    seen: BTreeSet<TransactionId>,
    order: VecDeque<TransactionId>,
}

impl Answers {
    /// Answers a Notify or ServiceChange: everything the gateway says is taken.
    pub fn request(&mut self, settings: &Settings, request: &Request<'_>, from: SocketAddr) -> Seen {
        let (mut restarts, mut notifies, mut overloads, mut taken_away) = (0, 0, 0, false);
        let mut buffer = [0; ANSWER_MAX];
        let mut w = Writer::new(&mut buffer, Style::Compact);
        header(settings, &mut w);
        w.reply(request.id, false);
        for action in request.actions().flatten() {
            w.context(action.context);
            for part in action.parts().flatten() {
                let ActionPart::Command(command) = part else { continue };
                w.command(command.verb, command.termination);
                match command.verb {
                    Verb::ServiceChange => {
                        let root = command.termination == TerminationId::Root;
                        let out = forced(&command);
                        restarts += u32::from(root && !out);
                        taken_away |= out;
                        if root && !out {
                            w.begin(Token::Services);
                            w.number_item(Token::Version, 1);
                            w.end();
                        }
                    }
                    _ => {
                        notifies += 1;
                        overloads += overload_events(&command);
                    }
                }
                w.end();
            }
            w.end();
        }
        w.end();
        self.keep(w.finish().and_then(|length| buffer.get(..length)), from);
        if !self.seen.insert(request.id) {
            return Seen::Repeat;
        }
        self.order.push_back(request.id);
        if self.order.len() > REMEMBERED
            && let Some(old) = self.order.pop_front()
        {
            self.seen.remove(&old);
        }
        Seen::New { restarts, notifies, overloads, taken_away }
    }

    /// Acknowledges a reply that asked for it.
    pub fn acknowledge(&mut self, settings: &Settings, id: TransactionId, from: SocketAddr) {
        let mut buffer = [0; ANSWER_MAX];
        let mut w = Writer::new(&mut buffer, Style::Compact);
        header(settings, &mut w);
        w.acknowledge([(id, id)]);
        self.keep(w.finish().and_then(|length| buffer.get(..length)), from);
    }

    fn keep(&mut self, answer: Option<&[u8]>, to: SocketAddr) {
        if let Some(answer) = answer {
            self.waiting.push((to, answer.to_vec()));
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self, out: &mut impl FnMut(SocketAddr, &[u8])) {
        self.waiting.drain(..).for_each(|(to, answer)| out(to, &answer));
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

fn header(settings: &Settings, w: &mut Writer<'_>) {
    match MessageId::parse(settings.message_id.as_bytes()) {
        Some(id) => w.header(1, &id),
        None => w.end(),
    }
}

/// Whether terminations leave service.
fn forced(command: &Command<'_>) -> bool {
    command.descriptors().flatten().any(
        |(_, descriptor)| matches!(descriptor, Descriptor::Services(services) if matches!(services.method, Some(Method::Forced | Method::Graceful))),
    )
}

/// How many times a Notify says that the gateway is overloaded, in answer to this controller's request.
fn overload_events(command: &Command<'_>) -> u32 {
    let mut count = 0;
    for (_, descriptor) in command.descriptors().flatten() {
        if let Descriptor::ObservedEvents(observed) = descriptor
            && observed.request == RequestId::Number(write::ROOT_EVENTS)
        {
            count += observed.iter().flatten().filter(|event| event.name.is("ocp", "mg_overload")).count() as u32;
        }
    }
    count
}
