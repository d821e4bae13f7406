//! Messages and what they carry: header, transactions, actions, commands (B.2 megacoMessage to commandReply).

use super::descriptor::{Descriptors, ErrorDescriptor, TerminationList, Topology};
use super::fault::{Fault, Refusal};
use super::lex::{self, Assigned, Body, Item, Items, Relation};
use super::name::{MessageId, TerminationId};
use super::shape::Shape;
use super::token::{Token, is_later};

/// The highest version that is read and spoken.
pub const VERSION_MAX: u8 = 3;

/// The interim authentication header (SEC-02): the hexadecimal digits behind each `0x`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Authentication<'a> {
    /// Security parameter index: 8 digits.
    pub index: &'a [u8],
    /// Sequence number: 8 digits.
    pub sequence: &'a [u8],
    /// Authentication data: 24 to 64 digits.
    pub data: &'a [u8],
}

/// What stands in front of the body. Readable also when the rest of a message is not: whoever answers 400 needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    /// The interim authentication header, if there is one.
    pub authentication: Option<Authentication<'a>>,
    /// 1..=[`VERSION_MAX`] in a message that was read; 1..=99 here.
    pub version: u8,
    /// Who sent the message, in its own words.
    pub from: MessageId<'a>,
    /// Where the body begins.
    body: usize,
}

impl<'a> Header<'a> {
    /// Reads the header of `text`.
    pub fn parse(text: &'a [u8]) -> Result<Header<'a>, Refusal> {
        let end = text.len();
        let mut at = lex::skip(text, 0, end);
        let mut word = text.get(at..lex::word_end(text, at, end)).unwrap_or_default();
        let mut authentication = None;
        if Token::parse(word) == Some(Token::Authentication) {
            let (read, behind) = authentication_header(text, at + word.len()).ok_or(Refusal::new(Fault::Authentication, at))?;
            authentication = Some(read);
            at = lex::skip(text, behind, end);
            word = text.get(at..lex::word_end(text, at, end)).unwrap_or_default();
        }
        let malformed = Refusal::new(Fault::Header, at);
        let slash = word.iter().position(|&byte| byte == b'/').ok_or(malformed)?;
        let (name, version) = word.split_at(slash);
        let is_megaco = Token::parse(name) == Some(Token::Megaco);
        let version = lex::number(version.get(1..).unwrap_or_default(), 2).filter(|_| is_megaco).ok_or(malformed)?;
        at += word.len();
        let start = lex::skip(text, at, end);
        if start == at {
            return Err(Refusal::new(Fault::Header, at));
        }
        let behind = message_id_end(text, start).ok_or(Refusal::new(Fault::MessageId, start))?;
        let from = text.get(start..behind).and_then(MessageId::parse).ok_or(Refusal::new(Fault::MessageId, start))?;
        Ok(Header { authentication, version: version as u8, from, body: lex::skip(text, behind, end) })
    }
}

/// `= 0x… : 0x… : 0x…`, and what follows it.
fn authentication_header(text: &[u8], at: usize) -> Option<(Authentication<'_>, usize)> {
    let mut at = lex::skip(text, at, text.len());
    let mut parts = [&[][..]; 3];
    for (part, (mark, digits)) in parts.iter_mut().zip([(b'=', 8..=8), (b':', 8..=8), (b':', 24..=64)]) {
        if text.get(at) != Some(&mark) {
            return None;
        }
        at = if mark == b'=' { lex::skip(text, at + 1, text.len()) } else { at + 1 };
        let end = lex::word_end(text, at, text.len());
        let hex = text.get(at..end)?;
        let hex = hex.strip_prefix(b"0x").or(hex.strip_prefix(b"0X"))?;
        if !digits.contains(&hex.len()) || !hex.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        *part = hex;
        at = end;
    }
    let [index, sequence, data] = parts;
    Some((Authentication { index, sequence, data }, at))
}

/// Behind the message identifier that begins at `at`.
fn message_id_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let close = match rest.first()? {
        b'[' => b']',
        b'<' => b'>',
        _ => {
            let end = lex::word_end(text, at, text.len());
            let mtp = text.get(at..end).is_some_and(|word| Token::parse(word) == Some(Token::Mtp)) && text.get(end) == Some(&b'{');
            let digits = mtp.then(|| lex::word_end(text, end + 1, text.len()) + 1);
            return Some(digits.unwrap_or(end)).filter(|end| *end > at);
        }
    };
    // No identifier of either form is longer.
    let close = at + rest.iter().take(80).position(|&byte| byte == close)? + 1;
    Some(if text.get(close) == Some(&b':') { lex::word_end(text, close + 1, text.len()) } else { close })
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Version and sender.
    pub header: Header<'a>,
    body: Body<'a>,
}

/// What a message carries.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// The whole message is an error (MSG-04).
    Error(ErrorDescriptor<'a>),
    /// Transactions.
    Transactions(Transactions<'a>),
}

impl<'a> Message<'a> {
    /// Reads header and shape; what is inside is read when it is wanted. An error concerns the whole message.
    pub fn parse(text: &'a [u8], shape: &'a mut Shape) -> Result<Message<'a>, Refusal> {
        let header = Header::parse(text)?;
        if header.version == 0 || header.version > VERSION_MAX {
            return Err(Refusal::new(Fault::Version, 0));
        }
        let blocks = shape.read(text)?;
        let body = Body::of_message(text, blocks, header.body);
        if body.is_blank() { Err(Refusal::new(Fault::Body, header.body)) } else { Ok(Message { header, body }) }
    }

    /// The body.
    pub fn content(&self) -> Result<Content<'a>, Refusal> {
        let mut items = self.body.sequence(Fault::Transaction);
        if let Some(Ok(item)) = items.next()
            && Token::parse(item.name) == Some(Token::Error)
        {
            return ErrorDescriptor::of_item(&item).map(Content::Error);
        }
        Ok(Content::Transactions(Transactions { items: self.body.sequence(Fault::Transaction) }))
    }
}

/// One of the parts of a message.
#[derive(Clone, Debug)]
pub enum Transaction<'a> {
    /// A request.
    Request(Request<'a>),
    /// The answer to one.
    Reply(Reply<'a>),
    /// A request is being worked on (PND-01).
    Pending(u32),
    /// Replies that have arrived (UDP-03).
    Acknowledgement(Acknowledgement<'a>),
}

/// Iterator over the transactions of a message. One that is malformed does not hide the next, unless its end is unclear.
#[derive(Clone, Debug)]
pub struct Transactions<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for Transactions<'a> {
    type Item = Result<Transaction<'a>, Refusal>;

    fn next(&mut self) -> Option<Result<Transaction<'a>, Refusal>> {
        Some(self.items.next()?.and_then(|item| transaction(&item)))
    }
}

fn transaction<'a>(item: &Item<'a>) -> Result<Transaction<'a>, Refusal> {
    let token = Token::parse(item.name).filter(|_| !item.quoted && item.time.is_none());
    if token == Some(Token::TransactionResponseAck) {
        return Acknowledgement::of_item(item).map(Transaction::Acknowledgement);
    }
    let Some(token @ (Token::Transaction | Token::Reply | Token::Pending)) = token else {
        return item.refuse(if is_later(item.name) { Fault::LaterVersion } else { Fault::Transaction });
    };
    let id = item.word(Fault::TransactionId).ok().and_then(lex::uint32).ok_or(Refusal::new(Fault::TransactionId, item.offset))?;
    let body = item.body.ok_or(Refusal::new(Fault::Transaction, item.offset))?;
    match token {
        Token::Transaction => Ok(Transaction::Request(Request { id, body })),
        Token::Reply => Reply::of_body(id, body).map(Transaction::Reply),
        _ if body.is_blank() && body.is_closed() => Ok(Transaction::Pending(id)),
        _ => item.refuse(Fault::Transaction),
    }
}

/// Identifiers of replies that have arrived: numbers and ranges.
#[derive(Clone, Debug)]
pub struct Acknowledgement<'a> {
    items: Items<'a>,
}

impl<'a> Acknowledgement<'a> {
    fn of_item(item: &Item<'a>) -> Result<Acknowledgement<'a>, Refusal> {
        let items = item.block(Fault::Transaction)?.items(Fault::Transaction);
        let mut count = 0;
        for part in items.clone() {
            let part = part?;
            if !part.is_bare() || acknowledged(part.name).is_none() {
                return part.refuse(Fault::TransactionId);
            }
            count += 1;
        }
        if count == 0 { item.refuse(Fault::Transaction) } else { Ok(Acknowledgement { items }) }
    }
}

/// `first` or `first-last`.
fn acknowledged(text: &[u8]) -> Option<(u32, u32)> {
    match text.iter().position(|&byte| byte == b'-') {
        Some(hyphen) => Some((lex::uint32(text.get(..hyphen)?)?, lex::uint32(text.get(hyphen + 1..)?)?)),
        None => lex::uint32(text).map(|id| (id, id)),
    }
}

impl Iterator for Acknowledgement<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        acknowledged(self.items.next()?.ok()?.name)
    }
}

/// A transaction request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its identifier, the sender's.
    pub id: u32,
    body: Body<'a>,
}

impl<'a> Request<'a> {
    /// What stands between its braces, as written.
    pub fn text(&self) -> &'a [u8] {
        self.body.bytes()
    }

    /// Its actions, at least one item.
    pub fn actions(&self) -> Actions<'a> {
        Actions { items: self.body.items(Fault::Action), closed: self.body.is_closed(), any: false, offset: self.body.offset() }
    }
}

/// Iterator over the actions of a request. The last item is an error when the request has none or no end (TXN-10, TXN-11).
#[derive(Clone, Debug)]
pub struct Actions<'a> {
    items: Items<'a>,
    closed: bool,
    any: bool,
    offset: usize,
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, Refusal>;

    fn next(&mut self) -> Option<Result<Action<'a>, Refusal>> {
        match self.items.next() {
            Some(item) => {
                self.any = true;
                Some(item.and_then(|item| Action::of_item(&item)))
            }
            None if !self.any => {
                self.any = true;
                Some(Err(Refusal::new(Fault::Action, self.offset)))
            }
            None if !self.closed => {
                self.closed = true;
                Some(Err(Refusal::new(Fault::TransactionOpen, self.offset)))
            }
            None => None,
        }
    }
}

/// The context that an action is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextId {
    /// `-`: none.
    Null,
    /// `$`: a new one.
    Choose,
    /// `*`: all but the null context (CTX-07).
    All,
    /// This one, 1..=4,294,967,293.
    Number(u32),
}

impl ContextId {
    /// Reads one; the reserved numbers are none in text (CTX-06, field bug O55).
    pub fn parse(text: &[u8]) -> Option<ContextId> {
        match text {
            b"-" => Some(ContextId::Null),
            b"$" => Some(ContextId::Choose),
            b"*" => Some(ContextId::All),
            _ => lex::uint32(text).filter(|number| (1..u32::MAX - 1).contains(number)).map(ContextId::Number),
        }
    }
}

/// An action, of a request or of a reply: commands on one context.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// Which context.
    pub context: ContextId,
    /// Where it begins in the message.
    pub offset: usize,
    body: Body<'a>,
}

impl<'a> Action<'a> {
    fn of_item(item: &Item<'a>) -> Result<Action<'a>, Refusal> {
        if item.quoted || item.time.is_some() || Token::parse(item.name) != Some(Token::Context) {
            return item.refuse(if is_later(item.name) { Fault::LaterVersion } else { Fault::Action });
        }
        let context = item.word(Fault::ContextId).ok().and_then(ContextId::parse).ok_or(Refusal::new(Fault::ContextId, item.offset))?;
        match item.body {
            Some(body) => Ok(Action { context, offset: item.offset, body }),
            None => item.refuse(Fault::Action),
        }
    }

    /// What it holds, properties first.
    pub fn parts(&self) -> ActionParts<'a> {
        ActionParts { items: self.body.items(Fault::Command), closed: self.body.is_closed(), offset: self.offset, any: false, seen: 0 }
    }
}

/// A part of an action.
#[derive(Clone, Debug)]
pub enum ActionPart<'a> {
    /// Priority 0..=15 of the context (CTX-05).
    Priority(u8),
    /// The context is an emergency call (CTX-05).
    Emergency,
    /// Who hears whom.
    Topology(Topology<'a>),
    /// Which of these three are asked for.
    Audit(ContextAudit),
    /// A command, or the reply to one.
    Command(Command<'a>),
    /// In a reply: the action or its last command failed (TXN-18).
    Error(ErrorDescriptor<'a>),
}

/// Which properties of a context are asked for (CA-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContextAudit {
    /// Topology.
    pub topology: bool,
    /// Emergency.
    pub emergency: bool,
    /// Priority.
    pub priority: bool,
}

/// Iterator over the parts of an action.
#[derive(Clone, Debug)]
pub struct ActionParts<'a> {
    items: Items<'a>,
    closed: bool,
    offset: usize,
    any: bool,
    /// Bits of the properties that were there, and [`COMMANDS`] from the first command on.
    seen: u8,
}

const COMMANDS: u8 = 0x80;

impl<'a> ActionParts<'a> {
    fn property(&mut self, item: &Item<'_>, bit: u8) -> Result<(), Refusal> {
        if self.seen & COMMANDS != 0 {
            return item.refuse(Fault::PropertyOrder);
        }
        if self.seen & bit != 0 {
            return item.refuse(Fault::PropertyRepeated);
        }
        self.seen |= bit;
        Ok(())
    }

    fn part(&mut self, item: &Item<'a>) -> Result<ActionPart<'a>, Refusal> {
        if item.quoted || item.time.is_some() {
            return item.refuse(Fault::Command);
        }
        match Token::parse(item.name) {
            Some(Token::Priority) => {
                self.property(item, 1)?;
                let value = item.word(Fault::Value)?;
                let value = lex::uint16(value).filter(|value| *value <= 15 && item.body.is_none());
                value.map(|value| ActionPart::Priority(value as u8)).ok_or(Refusal::new(Fault::Value, item.offset))
            }
            Some(Token::Emergency) if item.is_bare() => self.property(item, 2).map(|()| ActionPart::Emergency),
            Some(Token::Emergency) => item.refuse(Fault::LaterVersion),
            Some(Token::Topology) => {
                self.property(item, 4)?;
                Topology::of_item(item).map(ActionPart::Topology)
            }
            Some(Token::ContextAudit) => {
                self.property(item, 8)?;
                context_audit(item).map(ActionPart::Audit)
            }
            Some(Token::Error) => ErrorDescriptor::of_item(item).map(ActionPart::Error),
            _ if is_later(item.name) => item.refuse(Fault::LaterVersion),
            _ => {
                self.seen |= COMMANDS;
                Command::of_item(item).map(ActionPart::Command)
            }
        }
    }
}

impl<'a> Iterator for ActionParts<'a> {
    type Item = Result<ActionPart<'a>, Refusal>;

    fn next(&mut self) -> Option<Result<ActionPart<'a>, Refusal>> {
        match self.items.next() {
            Some(item) => {
                self.any = true;
                Some(item.and_then(|item| self.part(&item)))
            }
            None if !self.any => {
                self.any = true;
                Some(Err(Refusal::new(Fault::ActionEmpty, self.offset)))
            }
            None if !self.closed => {
                self.closed = true;
                Some(Err(Refusal::new(Fault::ActionOpen, self.offset)))
            }
            None => None,
        }
    }
}

fn context_audit(item: &Item<'_>) -> Result<ContextAudit, Refusal> {
    let mut audit = ContextAudit::default();
    for part in item.block(Fault::Descriptor)?.items(Fault::Descriptor) {
        let part = part?;
        let flag = match Token::parse(part.name).filter(|_| part.is_bare()) {
            Some(Token::Topology) => &mut audit.topology,
            Some(Token::Emergency) => &mut audit.emergency,
            Some(Token::Priority) => &mut audit.priority,
            _ => return part.refuse(Fault::LaterVersion),
        };
        if std::mem::replace(flag, true) {
            return part.refuse(Fault::PropertyRepeated);
        }
    }
    if audit == ContextAudit::default() { item.refuse(Fault::Descriptor) } else { Ok(audit) }
}

/// The commands (7.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// Puts a termination into a context.
    Add,
    /// Puts a termination into another context.
    Move,
    /// Changes a termination.
    Modify,
    /// Takes a termination out of its context.
    Subtract,
    /// Asks for what is.
    AuditValue,
    /// Asks for what could be.
    AuditCapability,
    /// Tells of events.
    Notify,
    /// Tells of, or orders, a change of service.
    ServiceChange,
}

impl Verb {
    /// Its keyword.
    pub const fn token(self) -> Token {
        match self {
            Verb::Add => Token::Add,
            Verb::Move => Token::Move,
            Verb::Modify => Token::Modify,
            Verb::Subtract => Token::Subtract,
            Verb::AuditValue => Token::AuditValue,
            Verb::AuditCapability => Token::AuditCapability,
            Verb::Notify => Token::Notify,
            Verb::ServiceChange => Token::ServiceChange,
        }
    }

    /// The command with this keyword.
    pub const fn of_token(token: Token) -> Option<Verb> {
        Some(match token {
            Token::Add => Verb::Add,
            Token::Move => Verb::Move,
            Token::Modify => Verb::Modify,
            Token::Subtract => Verb::Subtract,
            Token::AuditValue => Verb::AuditValue,
            Token::AuditCapability => Verb::AuditCapability,
            Token::Notify => Verb::Notify,
            Token::ServiceChange => Verb::ServiceChange,
            _ => return None,
        })
    }
}

/// A command, or the reply to one.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Which one.
    pub verb: Verb,
    /// `O-`: its failure does not end the transaction (TXN-04).
    pub optional: bool,
    /// `W-`: one reply for all matches (TRM-06).
    pub wildcarded: bool,
    /// Which termination. In a reply that lists the terminations of a context: all of them.
    pub termination: TerminationId<'a>,
    /// Where it begins in the message.
    pub offset: usize,
    body: Option<Body<'a>>,
    lists: bool,
}

impl<'a> Command<'a> {
    fn of_item(item: &Item<'a>) -> Result<Command<'a>, Refusal> {
        let mark = |name: &'a [u8], letter: u8| match name {
            [first, b'-', rest @ ..] if first.eq_ignore_ascii_case(&letter) => (true, rest),
            _ => (false, name),
        };
        // `O-` comes before `W-` (TXT-16).
        let (optional, name) = mark(item.name, b'O');
        let (wildcarded, name) = mark(name, b'W');
        let Some(token) = Token::parse(name).filter(|_| !item.quoted) else {
            let is_word = item.relation == Some(Relation::Equal) && name.iter().all(u8::is_ascii_alphabetic);
            return item.refuse(if is_word { Fault::CommandUnknown } else { Fault::Command });
        };
        let Some(verb) = Verb::of_token(token) else {
            return item.refuse(Fault::Command);
        };
        let name = match item.value {
            Assigned::Word(name) if item.relation == Some(Relation::Equal) => name,
            _ => return item.refuse(Fault::TerminationId),
        };
        if item.body.is_some_and(|body| !body.is_closed()) {
            return item.refuse(Fault::CommandOpen);
        }
        let audits = matches!(verb, Verb::AuditValue | Verb::AuditCapability);
        let lists = audits && Token::parse(name) == Some(Token::Context);
        let termination = if lists { Some(TerminationId::All) } else { TerminationId::parse(name) };
        let termination = termination.ok_or(Refusal::new(Fault::TerminationId, item.offset))?;
        Ok(Command { verb, optional, wildcarded, termination, offset: item.offset, body: item.body, lists })
    }

    /// Its descriptors, in order.
    pub fn descriptors(&self) -> Descriptors<'a> {
        Descriptors::of_body(self.body.filter(|_| !self.lists))
    }

    /// In the reply to an audit of a context: the terminations in it (AV-06), or the error.
    pub fn terminations(&self) -> Option<Result<TerminationList<'a>, Refusal>> {
        let body = self.body.filter(|_| self.lists)?;
        Some(TerminationList::of_body(body, self.offset))
    }

    /// In the reply to an audit of a context: the error that it failed with.
    pub fn terminations_error(&self) -> Option<ErrorDescriptor<'a>> {
        let item = self.body.filter(|_| self.lists)?.items(Fault::Descriptor).next()?.ok()?;
        if Token::parse(item.name) == Some(Token::Error) { ErrorDescriptor::of_item(&item).ok() } else { None }
    }

    /// Whether it is the reply `Audit… = Context { … }`.
    pub fn lists_terminations(&self) -> bool {
        self.lists
    }

    /// Whether it has braces.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }
}

/// A transaction reply.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The identifier of the request.
    pub id: u32,
    /// An acknowledgement is wanted at once (PND-03).
    pub immediate_ack: bool,
    body: Body<'a>,
}

impl<'a> Reply<'a> {
    fn of_body(id: u32, body: Body<'a>) -> Result<Reply<'a>, Refusal> {
        if !body.is_closed() {
            return Err(Refusal::new(Fault::TransactionOpen, body.offset()));
        }
        let first = body.items(Fault::Action).next().transpose()?;
        let immediate_ack = first.is_some_and(|item| item.is_bare() && Token::parse(item.name) == Some(Token::ImmAckRequired));
        if first.is_none() { Err(Refusal::new(Fault::Transaction, body.offset())) } else { Ok(Reply { id, immediate_ack, body }) }
    }

    /// The error of the whole transaction, or the replies of its actions.
    pub fn actions(&self) -> ReplyActions<'a> {
        let mut items = self.body.items(Fault::Action);
        if self.immediate_ack {
            items.next();
        }
        ReplyActions { items }
    }
}

/// A part of a reply.
#[derive(Clone, Debug)]
pub enum ReplyPart<'a> {
    /// The transaction failed.
    Error(ErrorDescriptor<'a>),
    /// What became of an action.
    Action(Action<'a>),
}

/// Iterator over the parts of a reply.
#[derive(Clone, Debug)]
pub struct ReplyActions<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for ReplyActions<'a> {
    type Item = Result<ReplyPart<'a>, Refusal>;

    fn next(&mut self) -> Option<Result<ReplyPart<'a>, Refusal>> {
        let item = match self.items.next()? {
            Ok(item) => item,
            Err(refusal) => return Some(Err(refusal)),
        };
        Some(match Token::parse(item.name) {
            Some(Token::Error) => ErrorDescriptor::of_item(&item).map(ReplyPart::Error),
            _ => Action::of_item(&item).map(ReplyPart::Action),
        })
    }
}
