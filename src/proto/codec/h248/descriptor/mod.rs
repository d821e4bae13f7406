//! Descriptors: what commands and replies carry (7.1, B.2 mediaDescriptor to topologyDescriptor).
//!
//! A descriptor is recognised when its iterator comes to it; its inside is read by its own accessors. [`Command::check`] reads all of
//! it, so that a command is refused before anything is done for it.

mod check;
mod digit_map;
mod events;
mod media;
mod service_change;
mod signals;
mod small;

pub use check::Side;
pub use digit_map::{DigitMap, DigitMapDescriptor, Position, Positions, Strings};
pub use events::{Embedded, EventDigitMap, EventSpec, Events, EventsDescriptor, ObservedEvent, ObservedEvents, RequestId};
pub use media::{
    DEFAULT_STREAM, LocalControl, LocalParameter, Media, MediaPart, Octets, ServiceState, SessionTexts, Stream, StreamMode, StreamPart,
    TerminationState, TerminationStateParameter,
};
pub use service_change::{Extension, Method, Profile, ServiceAddress, Services};
pub use signals::{Completion, Signal, SignalPart, SignalParts, SignalType, Signals};
pub use small::{
    Audit, ErrorDescriptor, Modem, Mux, Package, Packages, Parameters, Statistic, Statistics, TerminationList, Topology, TopologyTriple,
    Way,
};

#[cfg(doc)]
use super::message::Command;

use super::fault::{Fault, Refusal};
use super::lex::{Body, Item, Items};
use super::token::{Token, is_later};

/// A descriptor of a command or of its reply.
#[derive(Clone, Debug)]
pub enum Descriptor<'a> {
    /// Streams and state (7.1.4).
    Media(Media<'a>),
    /// Modem (7.1.2): recognised, not done.
    Modem(Modem<'a>),
    /// Multiplex (7.1.3): recognised, not done.
    Mux(Mux<'a>),
    /// What to detect (7.1.9).
    Events(EventsDescriptor<'a>),
    /// What to keep while events are held (7.1.10).
    EventBuffer(Events<'a>),
    /// What to play (7.1.11).
    Signals(Signals<'a>),
    /// A digit map (7.1.14).
    DigitMap(DigitMapDescriptor<'a>),
    /// What to return (7.1.12).
    Audit(Audit),
    /// What was detected (7.1.17).
    ObservedEvents(ObservedEvents<'a>),
    /// Counters (7.1.15).
    Statistics(Statistics<'a>),
    /// Packages of a termination (7.1.16).
    Packages(Packages<'a>),
    /// Parameters of a service change (7.1.13).
    Services(Services<'a>),
    /// What went wrong (7.1.19).
    Error(ErrorDescriptor<'a>),
    /// A keyword alone: in a reply to an audit, a descriptor that is empty (PAR-04).
    Empty(Token),
}

/// Iterator over the descriptors of a command, in the order in which they are processed (PAR-05).
#[derive(Clone, Debug)]
pub struct Descriptors<'a> {
    items: Option<Items<'a>>,
}

impl<'a> Descriptors<'a> {
    pub(super) fn of_body(body: Option<Body<'a>>) -> Descriptors<'a> {
        Descriptors { items: body.map(|body| body.items(Fault::Command)) }
    }
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = Result<(Token, Descriptor<'a>), Refusal>;

    fn next(&mut self) -> Option<Result<(Token, Descriptor<'a>), Refusal>> {
        Some(self.items.as_mut()?.next()?.and_then(|item| descriptor(&item)))
    }
}

fn descriptor<'a>(item: &Item<'a>) -> Result<(Token, Descriptor<'a>), Refusal> {
    let token = Token::parse(item.name).filter(|_| !item.quoted && item.time.is_none());
    let Some(token) = token else {
        return item.refuse(if is_later(item.name) { Fault::LaterVersion } else { Fault::DescriptorUnknown });
    };
    let descriptor = match token {
        // Empty lists are written as the keyword alone, and in the field with braces that hold nothing (TXT-24).
        Token::Events => Descriptor::Events(EventsDescriptor::of_item(item)?),
        Token::EventBuffer => Descriptor::EventBuffer(Events::buffer(item)?),
        Token::Signals => Descriptor::Signals(Signals::of_item(item)?),
        Token::Media | Token::Modem | Token::Mux | Token::DigitMap | Token::ObservedEvents | Token::Statistics | Token::Packages
            if item.is_bare() =>
        {
            Descriptor::Empty(token)
        }
        Token::Media => Descriptor::Media(Media::of_item(item)?),
        Token::Modem => Descriptor::Modem(Modem::of_item(item)?),
        Token::Mux => Descriptor::Mux(Mux::of_item(item)?),
        Token::DigitMap => Descriptor::DigitMap(DigitMapDescriptor::of_item(item)?),
        Token::Audit => Descriptor::Audit(Audit::of_item(item)?),
        Token::ObservedEvents => Descriptor::ObservedEvents(ObservedEvents::of_item(item)?),
        Token::Statistics => Descriptor::Statistics(Statistics::of_item(item)?),
        Token::Packages => Descriptor::Packages(Packages::of_item(item)?),
        Token::Services => Descriptor::Services(Services::of_item(item)?),
        Token::Error => Descriptor::Error(ErrorDescriptor::of_item(item)?),
        _ => return item.refuse(Fault::DescriptorUnknown),
    };
    Ok((token, descriptor))
}
