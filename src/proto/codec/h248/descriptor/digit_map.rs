//! Digit maps (7.1.14, B.2 digitMapDescriptor): timers and alternatives.

use super::super::fault::{Fault, Refusal};
use super::super::lex::{self, Assigned, Body, Item};

/// A digit map descriptor: defines, changes or deletes a map, or is one without a name (DM-01).
#[derive(Clone, Debug)]
pub struct DigitMapDescriptor<'a> {
    /// The name; none for a bare value.
    pub name: Option<&'a [u8]>,
    /// The map; with a name and without a map the named one is meant, with empty braces it is deleted.
    pub map: Option<DigitMap<'a>>,
    /// Whether the braces are there and hold nothing.
    pub deleted: bool,
}

impl<'a> DigitMapDescriptor<'a> {
    pub(super) fn of_item(item: &Item<'a>) -> Result<DigitMapDescriptor<'a>, Refusal> {
        let (name, body) = match (item.value, item.body) {
            (Assigned::Word(name), body) if lex::is_name(name) => (Some(name), body),
            // `*` asks for every map of the gateway (AV-03).
            (Assigned::Word(b"*"), None) => (Some(&b"*"[..]), None),
            (Assigned::Braces(body), None) => (None, Some(body)),
            _ => return item.refuse(Fault::DigitMap),
        };
        let deleted = name.is_some() && body.is_some_and(|body| body.is_blank());
        let map = body.filter(|_| !deleted).map(DigitMap::of_body).transpose()?;
        Ok(DigitMapDescriptor { name, map, deleted })
    }
}

/// A digit map whose form was checked.
#[derive(Clone, Copy, Debug)]
pub struct DigitMap<'a> {
    /// T: before the first digit, in seconds; 0 switches it off (DM-05).
    pub start: Option<u8>,
    /// S: after a match that could go on, in seconds.
    pub short: Option<u8>,
    /// L: while more is needed, in seconds.
    pub long: Option<u8>,
    /// The alternatives, without the brackets around them.
    text: &'a [u8],
    /// All of it.
    source: &'a [u8],
}

impl<'a> DigitMap<'a> {
    pub(super) fn of_body(body: Body<'a>) -> Result<DigitMap<'a>, Refusal> {
        DigitMap::read(body.bytes().trim_ascii(), body.offset())
    }

    /// A map that was kept as [`DigitMap::source`] gave it.
    pub fn kept(source: &'a [u8]) -> Result<DigitMap<'a>, Refusal> {
        DigitMap::read(source, 0)
    }

    fn read(source: &'a [u8], offset: usize) -> Result<DigitMap<'a>, Refusal> {
        let refused = Refusal::new(Fault::DigitMap, offset);
        let mut map = DigitMap { start: None, short: None, long: None, text: source, source };
        for (letter, timer) in [(b'T', &mut map.start), (b'S', &mut map.short), (b'L', &mut map.long)] {
            if let [first, b':', rest @ ..] = map.text
                && first.eq_ignore_ascii_case(&letter)
            {
                let comma = rest.iter().position(|&byte| byte == b',').ok_or(refused)?;
                let (digits, rest) = rest.split_at(comma);
                *timer = Some(lex::number(digits.trim_ascii(), 2).ok_or(refused)? as u8);
                map.text = rest.get(1..).unwrap_or_default().trim_ascii();
            }
        }
        if let Some(inside) = map.text.strip_prefix(b"(") {
            map.text = inside.strip_suffix(b")").ok_or(refused)?.trim_ascii();
        }
        for string in map.strings() {
            let mut positions = 0;
            for position in string {
                position.ok_or(refused)?;
                positions += 1;
            }
            if positions == 0 {
                return Err(refused);
            }
        }
        Ok(map)
    }

    /// The alternatives.
    pub fn strings(&self) -> Strings<'a> {
        Strings { rest: Some(self.text) }
    }

    /// All of it as written, timers included.
    pub fn source(&self) -> &'a [u8] {
        self.source
    }

    /// The alternatives as written, without the brackets around them.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.text
    }
}

/// Iterator over the alternatives of a map.
#[derive(Clone, Debug)]
pub struct Strings<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Strings<'a> {
    type Item = Positions<'a>;

    fn next(&mut self) -> Option<Positions<'a>> {
        let rest = self.rest?;
        let bar = rest.iter().position(|&byte| byte == b'|');
        self.rest = bar.and_then(|bar| rest.get(bar + 1..));
        Some(Positions { rest: rest.get(..bar.unwrap_or(rest.len())).unwrap_or_default().trim_ascii() })
    }
}

/// What may come at one place of an alternative (DM-07).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Bit 0..=9 for the digits, 10..=20 for A to K.
    pub symbols: u32,
    /// `S` stands here: the short timer from here on.
    pub short: bool,
    /// `L` stands here: the long timer from here on.
    pub long: bool,
    /// `Z` stands here: what follows is held long.
    pub held: bool,
    /// `.` follows: none or more of it.
    pub repeated: bool,
}

/// Iterator over the places of an alternative. `None` as an item: malformed, and the end.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    rest: &'a [u8],
}

const DIGITS: u32 = 0x3ff;

impl Iterator for Positions<'_> {
    type Item = Option<Position>;

    fn next(&mut self) -> Option<Option<Position>> {
        let (&first, rest) = self.rest.trim_ascii_start().split_first()?;
        let mut position = Position { symbols: 0, short: false, long: false, held: false, repeated: false };
        let read = if first == b'[' { set(rest, &mut position) } else { letter(first, &mut position).map(|()| rest) };
        let Some(rest) = read else {
            self.rest = &[];
            return Some(None);
        };
        self.rest = match rest {
            [b'.', rest @ ..] => {
                position.repeated = true;
                rest
            }
            rest => rest,
        };
        Some(Some(position))
    }
}

/// One letter of a map.
fn letter(byte: u8, position: &mut Position) -> Option<()> {
    match byte.to_ascii_uppercase() {
        digit @ b'0'..=b'9' => position.symbols |= 1 << (digit - b'0'),
        letter @ b'A'..=b'K' => position.symbols |= 1 << (letter - b'A' + 10),
        b'X' => position.symbols |= DIGITS,
        b'S' => position.short = true,
        b'L' => position.long = true,
        b'Z' => position.held = true,
        _ => return None,
    }
    Some(())
}

/// Letters and ranges of digits up to `]`; what follows it. `[0-9ef]` is one set (field lists name it read as `[0-9]ef`).
fn set<'a>(mut rest: &'a [u8], position: &mut Position) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b']', behind @ ..] => return Some(behind),
            [low @ b'0'..=b'9', b'-', high @ b'0'..=b'9', behind @ ..] if low <= high => {
                (*low..=*high).for_each(|digit| position.symbols |= 1 << (digit - b'0'));
                rest = behind;
            }
            [b' ' | b'\t' | b'\r' | b'\n', behind @ ..] => rest = behind,
            [one, behind @ ..] => {
                letter(*one, position)?;
                rest = behind;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::codec::h248::{ActionPart, Content, Descriptor, Message, Shape, Transaction};

    /// The map of one digit map descriptor.
    fn with_map(text: &str, look: impl FnOnce(Option<&DigitMapDescriptor<'_>>)) {
        let message = format!("!/1 <a> T=1{{C=-{{MF=ROOT{{DM={text}}}}}}}");
        let mut shape = Shape::new();
        let Ok(Content::Transactions(mut list)) = Message::parse(message.as_bytes(), &mut shape).and_then(|m| m.content()) else {
            panic!()
        };
        let Some(Ok(Transaction::Request(request))) = list.next() else { panic!("{text}") };
        let Some(Ok(ActionPart::Command(command))) = request.actions().next().unwrap().unwrap().parts().next() else { panic!("{text}") };
        match command.descriptors().next() {
            Some(Ok((_, Descriptor::DigitMap(map)))) => look(Some(&map)),
            _ => look(None),
        }
    }

    #[test]
    fn the_dialling_plan_of_the_rfc() {
        // DM-05, DM-06, DM-07, DM-19
        with_map("p{T:10,L:16,(0|00|[1-7]xxx|8xxxxxxx|Fxxxxxxx|Exx|91xxxxxxxxxx|9011x.)}", |descriptor| {
            let descriptor = descriptor.unwrap();
            let map = descriptor.map.unwrap();
            assert_eq!((descriptor.name, map.start, map.short, map.long), (Some(&b"p"[..]), Some(10), None, Some(16)));
            let lengths: Vec<usize> = map.strings().map(Iterator::count).collect();
            assert_eq!(lengths, [1, 2, 4, 8, 8, 3, 12, 5]);
            let last = map.strings().last().unwrap().last().unwrap().unwrap();
            assert!(last.repeated && last.symbols == DIGITS);
            let star = map.strings().nth(5).unwrap().next().unwrap().unwrap();
            assert_eq!(star.symbols, 1 << 14);
        });
    }

    #[test]
    fn sets_switches_and_deletions() {
        // DM-01, DM-08, DM-12; a set that field stacks read as `[0-9]ef`
        with_map("p{[0-9ef]S Z1L}", |descriptor| {
            let positions: Vec<Position> = descriptor.unwrap().map.unwrap().strings().next().unwrap().flatten().collect();
            assert_eq!(positions[0].symbols, DIGITS | 1 << 14 | 1 << 15);
            assert!(positions[1].short && positions[2].held && positions[4].long);
        });
        with_map("p{ }", |descriptor| assert!(descriptor.unwrap().deleted));
        with_map("p", |descriptor| assert!(!descriptor.unwrap().deleted));
        for bad in ["{}", "{(1}", "{1||2}", "{[9-1]}", "{[1}", "{M}", "{T:1}", "{S:1,T:1,(1)}", "5{1}"] {
            with_map(bad, |descriptor| assert!(descriptor.is_none(), "{bad}"));
        }
    }
}
