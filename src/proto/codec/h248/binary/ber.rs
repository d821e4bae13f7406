//! Tags, lengths and contents (X.690): as much of BER as RFC 3525 Annex A needs.
//!
//! Read: definite and indefinite lengths, long forms with leading zeros, tags of several octets (of extensions, to skip them). Strings in
//! pieces are refused: nobody was seen to send them. Written: definite lengths in their shortest form.

/// What cannot be read: the octets are no BER, or not what Annex A has there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// Levels of nesting, at most: Annex A has 22 where it is deepest (a parameter of a signal embedded in an event of an Add).
const DEPTH_MAX: usize = 40;
/// The longest content that is read.
const LENGTH_MAX: usize = u16::MAX as usize;

/// Classes of tags, as their bits stand.
pub const UNIVERSAL: u8 = 0;
/// Components of Annex A's sequences and choices.
pub const CONTEXT: u8 = 0x80;

/// Universal tags.
pub mod tag {
    /// BOOLEAN
    pub const BOOLEAN: u8 = 1;
    /// INTEGER
    pub const INTEGER: u8 = 2;
    /// OCTET STRING
    pub const OCTETS: u8 = 4;
    /// ENUMERATED
    pub const ENUMERATED: u8 = 10;
    /// UTF8String
    pub const UTF8: u8 = 12;
    /// SEQUENCE
    pub const SEQUENCE: u8 = 16;
    /// IA5String
    pub const IA5: u8 = 22;
}

/// One element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a> {
    /// Its class: [`UNIVERSAL`], [`CONTEXT`], or another one.
    pub class: u8,
    /// Its tag number; above 30 all the same: 31.
    pub number: u8,
    /// Whether it holds elements.
    pub constructed: bool,
    /// Its content, without the end mark of an indefinite length.
    pub content: &'a [u8],
}

impl<'a> Element<'a> {
    /// The elements in it.
    pub fn elements(&self) -> Elements<'a> {
        Elements { rest: if self.constructed { self.content } else { &[] }, broken: !self.constructed && !self.content.is_empty() }
    }

    /// Its content as octets.
    pub fn octets(&self) -> Result<&'a [u8], Malformed> {
        if self.constructed { Err(Malformed) } else { Ok(self.content) }
    }

    /// Its content as a whole number of at most 8 octets.
    pub fn integer(&self) -> Result<i64, Malformed> {
        let octets = self.octets()?;
        let first = *octets.first().ok_or(Malformed)?;
        if octets.len() > 8 {
            return Err(Malformed);
        }
        let start = if first & 0x80 == 0 { 0 } else { -1 };
        Ok(octets.iter().fold(start, |value: i64, &octet| value << 8 | i64::from(octet)))
    }

    /// Its content as a whole number from 0 to `most`.
    pub fn number(&self, most: u32) -> Result<u32, Malformed> {
        u32::try_from(self.integer()?).ok().filter(|value| *value <= most).ok_or(Malformed)
    }

    /// Its content as a boolean.
    pub fn boolean(&self) -> Result<bool, Malformed> {
        match self.octets()? {
            [value] => Ok(*value != 0),
            _ => Err(Malformed),
        }
    }

    /// Its content as bits, the first one in bit 15.
    pub fn bits(&self) -> Result<u16, Malformed> {
        let (unused, bits) = self.octets()?.split_first().ok_or(Malformed)?;
        if *unused > 7 || (bits.is_empty() && *unused > 0) {
            return Err(Malformed);
        }
        let octet = |at: usize| {
            let last = at + 1 == bits.len();
            u16::from(bits.get(at).copied().unwrap_or(0) & if last { 0xff << unused } else { 0xff })
        };
        Ok(octet(0) << 8 | octet(1))
    }

    /// Whether it is a component with this number.
    pub fn is(&self, number: u8) -> bool {
        self.class == CONTEXT && self.number == number
    }

    /// The component with this number of a sequence; the first when there are several.
    pub fn field(&self, number: u8) -> Result<Option<Element<'a>>, Malformed> {
        for element in self.elements() {
            let element = element?;
            if element.is(number) {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    /// The component with this number, which must be there.
    pub fn needed(&self, number: u8) -> Result<Element<'a>, Malformed> {
        self.field(number)?.ok_or(Malformed)
    }

    /// What a choice with a tag of its own around it holds.
    pub fn chosen(&self) -> Result<Element<'a>, Malformed> {
        let mut elements = self.elements();
        let chosen = elements.next().ok_or(Malformed)??;
        if elements.next().is_some() || chosen.class != CONTEXT { Err(Malformed) } else { Ok(chosen) }
    }
}

/// Elements behind each other. The last item is an error when they end amid one.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Elements<'a> {
    /// Those in `octets`.
    pub fn of(octets: &'a [u8]) -> Elements<'a> {
        Elements { rest: octets, broken: false }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Result<Element<'a>, Malformed>> {
        if std::mem::take(&mut self.broken) {
            return Some(Err(Malformed));
        }
        if self.rest.is_empty() {
            return None;
        }
        let read = element(self.rest);
        self.rest = read.map_or(&[], |(_, rest)| rest);
        Some(read.map(|(element, _)| element).ok_or(Malformed))
    }
}

/// Whether all that is in `octets`, at every level, is elements that are whole: readers look for what they need and stop there.
pub fn is_whole(octets: &[u8]) -> bool {
    fn at(octets: &[u8], depth: usize) -> bool {
        let inside = |element: Element<'_>| !element.constructed || (depth < DEPTH_MAX && at(element.content, depth + 1));
        Elements::of(octets).all(|element| element.is_ok_and(inside))
    }
    at(octets, 0)
}

/// Class, number, whether constructed, and what follows.
fn identifier(octets: &[u8]) -> Option<(u8, u8, bool, &[u8])> {
    let (&first, mut rest) = octets.split_first()?;
    let mut number = first & 0x1f;
    if number == 0x1f {
        for length in 0.. {
            let (&next, behind) = rest.split_first()?;
            rest = behind;
            if next & 0x80 == 0 {
                break;
            }
            if length == 3 {
                return None;
            }
        }
        number = 31;
    }
    Some((first & 0xc0, number, first & 0x20 != 0, rest))
}

/// The length, `None` for an indefinite one, and what follows.
fn length(octets: &[u8]) -> Option<(Option<usize>, &[u8])> {
    let (&first, rest) = octets.split_first()?;
    if first & 0x80 == 0 {
        return Some((Some(usize::from(first)), rest));
    }
    let count = usize::from(first & 0x7f);
    if count == 0 {
        return Some((None, rest));
    }
    let (digits, rest) = rest.split_at_checked(count)?;
    let value = digits.iter().try_fold(0usize, |value, &digit| Some(value << 8 | usize::from(digit)).filter(|value| *value <= LENGTH_MAX));
    Some((Some(value?), rest))
}

fn element(octets: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (class, number, constructed, rest) = identifier(octets)?;
    let (content, rest) = match length(rest)? {
        (Some(length), rest) => rest.split_at_checked(length)?,
        (None, rest) if constructed => {
            let end = end_of(rest)?;
            (rest.get(..end)?, rest.get(end + 2..)?)
        }
        (None, _) => return None,
    };
    Some((Element { class, number, constructed, content }, rest))
}

/// Where the end mark of a content of indefinite length stands. One pass, whatever is nested: contents of definite length are skipped.
fn end_of(octets: &[u8]) -> Option<usize> {
    let (mut rest, mut open) = (octets, 1);
    loop {
        if let [0, 0, behind @ ..] = rest {
            open -= 1;
            if open == 0 {
                return Some(octets.len() - rest.len());
            }
            rest = behind;
            continue;
        }
        let (_, _, constructed, behind) = identifier(rest)?;
        rest = match length(behind)? {
            (Some(length), behind) => behind.get(length..)?,
            (None, behind) if constructed && open < DEPTH_MAX => {
                open += 1;
                behind
            }
            (None, _) => return None,
        };
    }
}

/// Writes elements into the caller's buffer. What does not fit sets a flag, and [`Writer::finish`] then gives nothing.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
    /// Where the contents of the open elements begin.
    open: [usize; DEPTH_MAX],
    depth: usize,
    failed: bool,
}

impl<'a> Writer<'a> {
    /// Nothing written yet; the limit is the length of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Writer<'a> {
        Writer { buffer, length: 0, open: [0; DEPTH_MAX], depth: 0, failed: false }
    }

    /// The number of octets written, or `None` when not everything fitted or was fit to be written.
    pub fn finish(self) -> Option<usize> {
        (!self.failed && self.depth == 0).then_some(self.length)
    }

    /// Something has no place in this encoding: nothing is sent.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    fn put(&mut self, octets: &[u8]) {
        match self.buffer.get_mut(self.length..self.length.saturating_add(octets.len())).filter(|_| !self.failed) {
            Some(room) => {
                room.copy_from_slice(octets);
                self.length += octets.len();
            }
            None => self.failed = true,
        }
    }

    /// Elements follow inside one with this component number, until [`Writer::end`].
    pub fn begin(&mut self, number: u8) {
        self.open(CONTEXT | 0x20 | number);
    }

    /// Elements follow inside a SEQUENCE.
    pub fn begin_sequence(&mut self) {
        self.open(0x20 | tag::SEQUENCE);
    }

    fn open(&mut self, identifier: u8) {
        self.put(&[identifier, 0]);
        match self.open.get_mut(self.depth) {
            Some(place) => {
                *place = self.length;
                self.depth += 1;
            }
            None => self.failed = true,
        }
    }

    /// Ends the last open element; its length gets its shortest form.
    pub fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let start = self.open.get(self.depth).copied().unwrap_or(0);
        let length = self.length.saturating_sub(start);
        let room = match length {
            0..0x80 => 0,
            0x80..0x100 => 1,
            _ => 2,
        };
        self.put([0; 2].get(..room).unwrap_or_default());
        if self.failed || length > LENGTH_MAX {
            self.failed = true;
            return;
        }
        self.buffer.copy_within(start..start + length, start + room);
        let [.., high, low] = (length as u64).to_be_bytes();
        let head: &[u8] = match room {
            0 => &[low],
            1 => &[0x81, low],
            _ => &[0x82, high, low],
        };
        if let Some(place) = self.buffer.get_mut(start - 1..start + room) {
            place.copy_from_slice(head);
        }
    }

    fn primitive(&mut self, identifier: u8, content: &[u8]) {
        self.open(identifier);
        self.put(content);
        self.end();
    }

    /// A component that is a string or octets.
    pub fn octets(&mut self, number: u8, content: &[u8]) {
        self.primitive(CONTEXT | number, content);
    }

    /// A component made of these octets behind each other.
    pub fn octets_of<const N: usize>(&mut self, number: u8, parts: [&[u8]; N]) {
        self.open(CONTEXT | number);
        parts.iter().for_each(|part| self.put(part));
        self.end();
    }

    /// A string without the `\\` that stands in front of a `}` in a text.
    pub fn unescaped(&mut self, tag: u8, text: &[u8]) {
        self.open(tag);
        let mut rest = text;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"\\}") {
            self.put(rest.get(..at).unwrap_or_default());
            self.put(b"}");
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        self.put(rest);
        self.end();
    }

    /// An element of a universal type.
    pub fn universal(&mut self, tag: u8, content: &[u8]) {
        self.primitive(tag, content);
    }

    /// A component that is a whole number or an enumeration.
    pub fn integer(&mut self, number: u8, value: i64) {
        with_integer(value, |octets| self.octets(number, octets));
    }

    /// The same of a universal type.
    pub fn universal_integer(&mut self, tag: u8, value: i64) {
        with_integer(value, |octets| self.universal(tag, octets));
    }

    /// A component that is a boolean.
    pub fn boolean(&mut self, number: u8, value: bool) {
        self.octets(number, &[if value { 0xff } else { 0 }]);
    }

    /// A component that is NULL.
    pub fn null(&mut self, number: u8) {
        self.octets(number, &[]);
    }

    /// A component that is bits, the first one in bit 15, so many of them.
    pub fn bits(&mut self, number: u8, bits: u16, count: u32) {
        let used = count.min(16) - (bits.trailing_zeros().min(16).saturating_sub(16 - count.min(16))).min(count.min(16));
        let octets = used.div_ceil(8);
        let [high, low] = bits.to_be_bytes();
        let content = [(octets * 8 - used) as u8, high, low];
        self.octets(number, content.get(..1 + octets as usize).unwrap_or_default());
    }

    /// An OCTET STRING that holds elements: the value of a package's item, wrapped twice (BIN-02).
    pub fn wrapped(&mut self, write: impl FnOnce(&mut Writer<'a>)) {
        self.open(tag::OCTETS);
        write(self);
        self.end();
    }
}

/// The octets of a whole number, as few as there can be.
fn with_integer(value: i64, write: impl FnOnce(&[u8])) {
    let octets = value.to_be_bytes();
    let spare = octets.windows(2).take_while(|pair| matches!(pair, [0, 0..0x80] | [0xff, 0x80..=0xff])).count();
    write(octets.get(spare..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(octets: &[u8]) -> Option<Element<'_>> {
        element(octets).map(|(element, _)| element)
    }

    #[test]
    fn lengths_are_read_in_every_form_and_written_in_the_shortest() {
        for octets in [&[0x80, 1, 5][..], &[0x80, 0x81, 1, 5], &[0x80, 0x84, 0, 0, 0, 1, 5]] {
            assert_eq!(one(octets).unwrap().integer(), Ok(5), "{octets:?}");
        }
        // Indefinite: one in another, definite ones with zeros inside.
        let nested = [0xa0, 0x80, 0xa1, 0x80, 0x80, 2, 0, 0, 0, 0, 0x81, 1, 7, 0, 0, 9];
        let (outer, rest) = element(&nested).unwrap();
        assert_eq!((outer.needed(1).unwrap().needed(0).unwrap().content, rest), (&[0, 0][..], &[9][..]));
        assert_eq!(outer.needed(1).unwrap().field(1), Ok(None));
        assert_eq!(outer.needed(1).map(|inner| inner.elements().count()), Ok(1));
        let mut buffer = [0; 700];
        for (inside, head) in [(3, &[0xa3, 5][..]), (0x7d, &[0xa3, 0x7f]), (0x90, &[0xa3, 0x81, 0x93]), (0x200, &[0xa3, 0x82, 2, 4])] {
            let mut w = Writer::new(&mut buffer);
            w.begin(3);
            w.octets(0, &vec![7; inside]);
            w.end();
            let length = w.finish().unwrap();
            assert_eq!(buffer.get(..head.len()).unwrap(), head);
            let read = one(&buffer[..length]).unwrap();
            assert_eq!(read.needed(0).unwrap().content, vec![7; inside]);
        }
    }

    #[test]
    fn what_is_cut_nested_or_longer_than_it_can_be_is_refused() {
        for octets in
            [&[0x80][..], &[0x80, 3, 1], &[0x80, 0x80, 0, 0], &[0xa0, 0x80, 0x80, 1, 1], &[0x1f], &[0x1f, 0x80, 0x80, 0x80, 0x80, 1, 0]]
        {
            assert_eq!(one(octets), None, "{octets:?}");
        }
        assert_eq!(one(&[0x80, 0x83, 1, 0, 0]), None, "longer than a datagram");
        assert_eq!(one(&[0x80, 0x88, 255, 255, 255, 255, 255, 255, 255, 255]), None);
        let deep: Vec<u8> = [0xa0, 0x80].repeat(20_000);
        assert_eq!(one(&deep), None);
        let element = one(&[0x84, 2, 1, 1]).unwrap();
        assert_eq!((element.boolean(), element.field(0), element.elements().count()), (Err(Malformed), Err(Malformed), 1));
        assert_eq!(one(&[0x80, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1]).unwrap().integer(), Err(Malformed));
        assert_eq!(one(&[0x80, 1, 0xff]).unwrap().number(5), Err(Malformed));
        assert_eq!(one(&[0xa0, 4, 0x80, 0, 0x81, 0]).unwrap().chosen(), Err(Malformed));
    }

    #[test]
    fn what_ends_amid_an_element_at_any_level_is_not_whole() {
        assert!(is_whole(&[0xa0, 4, 0x80, 0, 0x81, 0]) && is_whole(&[]) && is_whole(&[0xa0, 0x80, 0x80, 1, 7, 0, 0]));
        // An element behind those that are looked for claims more than there is.
        assert!(!is_whole(&[0xa0, 4, 0x80, 0, 0x85, 0x7f]) && !is_whole(&[0xa0, 2, 0x80]) && !is_whole(&[0x80, 0, 0x81, 1]));
        let deep = |levels: usize| (0..levels).fold(Vec::new(), |inside, _| [&[0xa0, inside.len() as u8][..], &inside].concat());
        assert!(is_whole(&deep(DEPTH_MAX)) && !is_whole(&deep(DEPTH_MAX + 2)));
    }

    #[test]
    fn numbers_and_bits_keep_their_values() {
        let mut buffer = [0; 64];
        for value in [0, 1, 127, 128, 255, 256, -1, -128, -129, 4_294_967_295, i64::MIN, i64::MAX] {
            let mut w = Writer::new(&mut buffer);
            w.integer(0, value);
            let length = w.finish().unwrap();
            assert_eq!(one(&buffer[..length]).unwrap().integer(), Ok(value));
        }
        for (bits, octets) in [(0u16, &[0x80, 1, 0][..]), (0x8000, &[0x80, 2, 7, 0x80]), (0x0040, &[0x80, 3, 6, 0, 0x40])] {
            let mut w = Writer::new(&mut buffer);
            w.bits(0, bits, 10);
            let length = w.finish().unwrap();
            assert_eq!((&buffer[..length], one(&buffer[..length]).unwrap().bits()), (octets, Ok(bits)));
        }
        let mut w = Writer::new(&mut buffer[..5]);
        w.octets(0, &[1; 8]);
        assert_eq!(w.finish(), None);
    }
}
