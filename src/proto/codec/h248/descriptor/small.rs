//! The descriptors that are a list of one kind of thing: errors, terminations, topology, audits, statistics, packages, modem, multiplex.

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Assigned, Body, Item, Items};
use super::super::name::TerminationId;
use super::super::token::Token;
use super::super::value::{PackagedName, Parameter, Property, Value};

/// What went wrong (TXT-23).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorDescriptor<'a> {
    /// The error code, 0..=9999.
    pub code: u16,
    /// The text, without its quotes.
    pub text: Option<&'a [u8]>,
}

impl<'a> ErrorDescriptor<'a> {
    pub(in super::super) fn of_item(item: &Item<'a>) -> Result<ErrorDescriptor<'a>, Refusal> {
        let malformed = Refusal::new(Fault::Descriptor, item.offset);
        let code = lex::number(item.word(Fault::Descriptor)?, 4).ok_or(malformed)?;
        let mut items = item.body.ok_or(malformed)?.items(Fault::Descriptor);
        let text = match items.next().transpose()? {
            None => None,
            Some(part) if part.quoted && part.relation.is_none() && part.time.is_none() && part.body.is_none() => Some(part.name),
            Some(part) => return part.refuse(Fault::Descriptor),
        };
        if items.next().is_some() { Err(malformed) } else { Ok(ErrorDescriptor { code: code as u16, text }) }
    }
}

/// Terminations in a list, checked when it was read.
#[derive(Clone, Debug)]
pub struct TerminationList<'a>(Items<'a>);

impl<'a> TerminationList<'a> {
    pub(in super::super) fn of_body(body: Body<'a>, offset: usize) -> Result<TerminationList<'a>, Refusal> {
        let items = body.items(Fault::Descriptor);
        let mut count = 0;
        for item in items.clone() {
            let item = item?;
            if !item.is_bare() || TerminationId::parse(item.name).is_none() {
                return item.refuse(Fault::TerminationId);
            }
            count += 1;
        }
        if count == 0 { Err(Refusal::new(Fault::Descriptor, offset)) } else { Ok(TerminationList(items)) }
    }
}

impl<'a> Iterator for TerminationList<'a> {
    type Item = TerminationId<'a>;

    fn next(&mut self) -> Option<TerminationId<'a>> {
        TerminationId::parse(self.0.next()?.ok()?.name)
    }
}

/// Which way media goes between two terminations (TOP-02).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Each hears the other.
    Bothway,
    /// Neither hears the other.
    Isolate,
    /// The second hears the first.
    Oneway,
}

/// One line of a topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopologyTriple<'a> {
    /// The first termination.
    pub from: TerminationId<'a>,
    /// The second one.
    pub to: TerminationId<'a>,
    /// Who hears whom.
    pub way: Way,
}

/// Who hears whom in a context, applied in order (TOP-07); checked when it was read.
#[derive(Clone, Debug)]
pub struct Topology<'a>(Items<'a>);

impl<'a> Topology<'a> {
    pub(in super::super) fn of_item(item: &Item<'a>) -> Result<Topology<'a>, Refusal> {
        let items = item.block(Fault::Descriptor)?.items(Fault::Descriptor);
        let mut rest = items.clone();
        let mut count = 0;
        while let Some(triple) = triple(&mut rest) {
            triple?;
            count += 1;
        }
        if count == 0 { item.refuse(Fault::Descriptor) } else { Ok(Topology(items)) }
    }
}

fn triple<'a>(items: &mut Items<'a>) -> Option<Result<TopologyTriple<'a>, Refusal>> {
    let first = match items.next()? {
        Ok(first) => first,
        Err(refusal) => return Some(Err(refusal)),
    };
    let mut read = || -> Result<TopologyTriple<'a>, Refusal> {
        let mut next = || items.next().unwrap_or(Err(Refusal::new(Fault::Descriptor, first.offset)));
        let (second, way) = (next()?, next()?);
        let termination = |item: &Item<'a>| {
            TerminationId::parse(item.name).filter(|_| item.is_bare()).ok_or(Refusal::new(Fault::TerminationId, item.offset))
        };
        let way = match Token::parse(way.name).filter(|_| way.is_bare()) {
            Some(Token::Bothway) => Way::Bothway,
            Some(Token::Isolate) => Way::Isolate,
            Some(Token::Oneway) => Way::Oneway,
            _ => return way.refuse(Fault::Descriptor),
        };
        Ok(TopologyTriple { from: termination(&first)?, to: termination(&second)?, way })
    };
    Some(read())
}

impl<'a> Iterator for Topology<'a> {
    type Item = TopologyTriple<'a>;

    fn next(&mut self) -> Option<TopologyTriple<'a>> {
        triple(&mut self.0)?.ok()
    }
}

/// Which descriptors to return (AUD-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    items: u16,
}

impl Audit {
    /// What can be asked for.
    pub const ITEMS: [Token; 10] = [
        Token::Mux,
        Token::Modem,
        Token::Media,
        Token::Events,
        Token::Signals,
        Token::DigitMap,
        Token::Statistics,
        Token::ObservedEvents,
        Token::Packages,
        Token::EventBuffer,
    ];

    /// These; what cannot be asked for is left out.
    pub fn of(tokens: &[Token]) -> Audit {
        let bits = tokens.iter().filter_map(|token| Audit::ITEMS.iter().position(|item| item == token));
        Audit { items: bits.fold(0, |items, bit| items | 1 << bit) }
    }

    /// Whether this descriptor is asked for.
    pub fn has(&self, token: Token) -> bool {
        Audit::ITEMS.iter().position(|item| *item == token).is_some_and(|bit| self.items & 1 << bit != 0)
    }

    /// Whether nothing is asked for (AUD-02).
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// What is asked for.
    pub fn iter(self) -> impl Iterator<Item = Token> {
        Audit::ITEMS.into_iter().filter(move |token| self.has(*token))
    }

    pub(super) fn of_item(item: &Item<'_>) -> Result<Audit, Refusal> {
        let mut audit = Audit::default();
        for part in item.block(Fault::Descriptor)?.items(Fault::Descriptor) {
            let part = part?;
            let bit = Token::parse(part.name).and_then(|token| Audit::ITEMS.iter().position(|item| *item == token));
            let Some(bit) = bit else { return part.refuse(Fault::DescriptorUnknown) };
            if !part.is_bare() {
                // Version 2 asks for single properties that way.
                return part.refuse(Fault::LaterVersion);
            }
            if audit.items & 1 << bit != 0 {
                return part.refuse(Fault::DescriptorRepeated);
            }
            audit.items |= 1 << bit;
        }
        Ok(audit)
    }
}

/// One counter (7.1.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistic<'a> {
    /// Which one.
    pub name: PackagedName<'a>,
    /// Its value; none when only names are told.
    pub value: Option<Value<'a>>,
}

/// Counters, checked when they were read. The descriptor may be empty: stacks of version 3 send it so (field bug O49).
#[derive(Clone, Debug)]
pub struct Statistics<'a>(Items<'a>);

impl<'a> Statistics<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Statistics<'a>, Refusal> {
        let items = item.block(Fault::Descriptor)?.items(Fault::Descriptor);
        for part in items.clone() {
            statistic(&part?)?;
        }
        Ok(Statistics(items))
    }
}

fn statistic<'a>(item: &Item<'a>) -> Result<Statistic<'a>, Refusal> {
    let name = PackagedName::of_item(item)?;
    let value = match item.value {
        _ if item.body.is_some() || item.time.is_some() => return item.refuse(Fault::Value),
        Assigned::Nothing => None,
        Assigned::Word(text) => Some(Value { text, quoted: false }),
        Assigned::Quoted(text) => Some(Value { text, quoted: true }),
        Assigned::Brackets { .. } | Assigned::Braces(_) => return item.refuse(Fault::Value),
    };
    Ok(Statistic { name, value })
}

impl<'a> Iterator for Statistics<'a> {
    type Item = Statistic<'a>;

    fn next(&mut self) -> Option<Statistic<'a>> {
        statistic(&self.0.next()?.ok()?).ok()
    }
}

/// A package and its version (TXT-20).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Package<'a> {
    /// Its name, as written; compared without letter case.
    pub name: &'a [u8],
    /// Its version.
    pub version: u16,
}

/// Packages, checked when they were read.
#[derive(Clone, Debug)]
pub struct Packages<'a>(Items<'a>);

impl<'a> Packages<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Packages<'a>, Refusal> {
        let items = item.block(Fault::Descriptor)?.items(Fault::Descriptor);
        for part in items.clone() {
            let part = part?;
            if package(part.name).filter(|_| part.is_bare()).is_none() {
                return part.refuse(Fault::PackageName);
            }
        }
        Ok(Packages(items))
    }
}

fn package(text: &[u8]) -> Option<Package<'_>> {
    let hyphen = text.iter().rposition(|&byte| byte == b'-')?;
    let name = text.get(..hyphen).filter(|name| lex::is_name(name))?;
    Some(Package { name, version: lex::uint16(text.get(hyphen + 1..)?)? })
}

impl<'a> Iterator for Packages<'a> {
    type Item = Package<'a>;

    fn next(&mut self) -> Option<Package<'a>> {
        package(self.0.next()?.ok()?.name)
    }
}

/// The parameters of an event or signal that have no keyword, checked when they were read.
#[derive(Clone, Debug)]
pub struct Parameters<'a>(pub(super) Option<Items<'a>>);

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    fn next(&mut self) -> Option<Parameter<'a>> {
        loop {
            let item = self.0.as_mut()?.next()?.ok()?;
            let keyword = matches!(
                Token::parse(item.name),
                Some(
                    Token::Stream
                        | Token::SignalType
                        | Token::Duration
                        | Token::NotifyCompletion
                        | Token::KeepActive
                        | Token::Embed
                        | Token::DigitMap
                )
            );
            if !keyword {
                return Parameter::of_item(&item).ok();
            }
        }
    }
}

/// A modem descriptor (MDM-01), checked when it was read.
#[derive(Clone, Debug)]
pub struct Modem<'a> {
    kinds: Kinds<'a>,
    properties: Option<Items<'a>>,
}

#[derive(Clone, Debug)]
enum Kinds<'a> {
    One(&'a [u8]),
    Several(Items<'a>),
}

impl<'a> Modem<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Modem<'a>, Refusal> {
        let kinds = match item.value {
            Assigned::Word(kind) => Kinds::One(kind),
            Assigned::Brackets { inside, .. } if item.relation.is_none() => Kinds::Several(inside.items(Fault::Descriptor)),
            _ => return item.refuse(Fault::Descriptor),
        };
        if let Kinds::Several(items) = &kinds {
            let mut count = 0;
            for kind in items.clone() {
                if !kind?.is_bare() {
                    return item.refuse(Fault::Descriptor);
                }
                count += 1;
            }
            if count == 0 {
                return item.refuse(Fault::Descriptor);
            }
        }
        let properties = item.body.map(|body| body.items(Fault::Descriptor));
        for part in properties.clone().into_iter().flatten() {
            Property::of_item(&part?)?;
        }
        Ok(Modem { kinds, properties })
    }

    /// The kinds of modem that may be used.
    pub fn kinds(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (one, several) = match &self.kinds {
            Kinds::One(kind) => (Some(*kind), None),
            Kinds::Several(items) => (None, Some(items.clone())),
        };
        one.into_iter().chain(several.into_iter().flatten().filter_map(|item| item.ok().map(|item| item.name)))
    }

    /// Its properties.
    pub fn properties(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        self.properties.clone().into_iter().flatten().filter_map(|item| Property::of_item(&item.ok()?).ok())
    }
}

/// A multiplex descriptor (MUX-01).
#[derive(Clone, Debug)]
pub struct Mux<'a> {
    /// The kind of multiplex.
    pub kind: &'a [u8],
    /// The terminations that carry it, in order.
    pub terminations: TerminationList<'a>,
}

impl<'a> Mux<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<Mux<'a>, Refusal> {
        let kind = item.word(Fault::Descriptor)?;
        let body = item.body.ok_or(Refusal::new(Fault::Descriptor, item.offset))?;
        Ok(Mux { kind, terminations: TerminationList::of_body(body, item.offset)? })
    }
}
