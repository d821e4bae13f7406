//! Signals: what to play (7.1.11).

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Assigned, Body, Item, Items};
use super::super::token::Token;
use super::super::value::{PackagedName, Parameter};
use super::events::stream;
use super::small::Parameters;

/// A Signals descriptor: what is not in it stops (SIG-01).
#[derive(Clone, Copy, Debug)]
pub struct Signals<'a>(Option<Body<'a>>);

impl<'a> Signals<'a> {
    /// `Signals`, `Signals { }` or with signals inside (TXT-24).
    pub(super) fn of_item(item: &Item<'a>) -> Result<Signals<'a>, Refusal> {
        if item.is_bare() {
            Ok(Signals(None))
        } else {
            item.block(Fault::Descriptor).map(|body| Signals(Some(body).filter(|b| !b.is_blank())))
        }
    }

    /// Whether everything stops.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Signals and lists, in order.
    pub fn parts(&self) -> SignalParts<'a> {
        SignalParts(self.0.map(|body| body.items(Fault::Descriptor)))
    }
}

/// A signal, or a list of signals that play one behind the other (SIG-06).
#[derive(Clone, Debug)]
pub enum SignalPart<'a> {
    /// One signal.
    Signal(Signal<'a>),
    /// A list.
    List {
        /// Its number (SIG-08).
        id: u16,
        /// Its signals.
        signals: SignalParts<'a>,
    },
}

/// Iterator over signals and lists; in a list there are only signals.
#[derive(Clone, Debug)]
pub struct SignalParts<'a>(Option<Items<'a>>);

impl<'a> Iterator for SignalParts<'a> {
    type Item = Result<SignalPart<'a>, Refusal>;

    fn next(&mut self) -> Option<Result<SignalPart<'a>, Refusal>> {
        Some(self.0.as_mut()?.next()?.and_then(|item| {
            if Token::parse(item.name) != Some(Token::SignalList) {
                return Signal::of_item(&item).map(SignalPart::Signal);
            }
            let malformed = Refusal::new(Fault::Descriptor, item.offset);
            let id = lex::uint16(item.word(Fault::Descriptor)?).ok_or(malformed)?;
            let body = item.body.filter(|body| !body.is_blank()).ok_or(malformed)?;
            Ok(SignalPart::List { id, signals: SignalParts(Some(body.items(Fault::Descriptor))) })
        }))
    }
}

/// How a signal ends (SIG-03).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalType {
    /// When it is switched off.
    OnOff,
    /// When its time is over.
    TimeOut,
    /// By itself.
    Brief,
}

impl SignalType {
    /// Its keyword.
    pub const fn token(self) -> Token {
        match self {
            SignalType::OnOff => Token::OnOff,
            SignalType::TimeOut => Token::TimeOut,
            SignalType::Brief => Token::Brief,
        }
    }
}

/// Which ends of a signal are to be told (SIG-11).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// Its time was over.
    pub time_out: bool,
    /// An event stopped it.
    pub by_event: bool,
    /// Another Signals descriptor stopped it.
    pub by_signals: bool,
    /// Anything else stopped it.
    pub other: bool,
}

/// One signal.
#[derive(Clone, Debug)]
pub struct Signal<'a> {
    /// Which one.
    pub name: PackagedName<'a>,
    /// Where it begins in the message.
    pub offset: usize,
    /// The stream it is tied to; 0 for none.
    pub stream: u16,
    /// How it ends, if not as its package says.
    pub kind: Option<SignalType>,
    /// How long it plays, in hundredths of a second (SIG-04).
    pub duration: Option<u16>,
    /// Which ends are told; none given: only the other reasons.
    pub completion: Option<Completion>,
    /// It goes on if it plays already (SIG-02).
    pub keep_active: bool,
    items: Option<Items<'a>>,
}

impl<'a> Signal<'a> {
    /// The parameters that have no keyword.
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters(self.items.clone())
    }

    fn of_item(item: &Item<'a>) -> Result<Signal<'a>, Refusal> {
        let name = PackagedName::single(item)?;
        if item.relation.is_some() || item.time.is_some() || !matches!(item.value, Assigned::Nothing) {
            return item.refuse(Fault::Descriptor);
        }
        let items = item.body.map(|body| body.items(Fault::Descriptor));
        let mut signal = Signal {
            name,
            offset: item.offset,
            stream: 0,
            kind: None,
            duration: None,
            completion: None,
            keep_active: false,
            items: items.clone(),
        };
        let mut seen = 0u8;
        for part in items.into_iter().flatten() {
            signal.parameter(&part?, &mut seen)?;
        }
        Ok(signal)
    }

    fn parameter(&mut self, part: &Item<'a>, seen: &mut u8) -> Result<(), Refusal> {
        match Token::parse(part.name) {
            Some(Token::Stream) => {
                part.once(seen, 1)?;
                self.stream = stream(part)?;
            }
            Some(Token::SignalType) => {
                part.once(seen, 2)?;
                self.kind = Some(match Token::parse(part.word(Fault::Value)?) {
                    Some(Token::OnOff) => SignalType::OnOff,
                    Some(Token::TimeOut) => SignalType::TimeOut,
                    Some(Token::Brief) => SignalType::Brief,
                    _ => return part.refuse(Fault::Value),
                });
            }
            Some(Token::Duration) => {
                part.once(seen, 4)?;
                self.duration = Some(stream(part)?);
            }
            Some(Token::NotifyCompletion) => {
                part.once(seen, 8)?;
                self.completion = Some(completion(part)?);
            }
            Some(Token::KeepActive) if part.is_bare() => {
                part.once(seen, 16)?;
                self.keep_active = true;
            }
            _ => {
                Parameter::of_item(part)?;
            }
        }
        Ok(())
    }
}

/// `NotifyCompletion = { TimeOut, … }`
fn completion(item: &Item<'_>) -> Result<Completion, Refusal> {
    let Assigned::Braces(body) = item.value else { return item.refuse(Fault::Value) };
    let mut completion = Completion::default();
    for part in body.items(Fault::Value) {
        let part = part?;
        match Token::parse(part.name).filter(|_| part.is_bare()) {
            Some(Token::TimeOut) => completion.time_out = true,
            Some(Token::IntByEvent) => completion.by_event = true,
            Some(Token::IntBySigDescr) => completion.by_signals = true,
            Some(Token::OtherReason) => completion.other = true,
            _ => return part.refuse(Fault::Value),
        }
    }
    if completion == Completion::default() { item.refuse(Fault::Value) } else { Ok(completion) }
}
