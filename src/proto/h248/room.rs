//! Whether a reply has room for what a command will say, asked before anything is done: a command whose reply does not fit would be done
//! without the controller knowing (AC-04, UDP-08). Replies are not segmented (version 3 does that).

use super::Gateway;
use super::description;
use super::table::Termination;
use crate::proto::codec::h248::{Command, Descriptor, Media, MediaPart, NAME_MAX, StreamPart, Verb, Writer};
use crate::proto::plan::MessageEncoding;

/// What always stays free in a reply: for the error of the next command and the end of all.
const TAIL: usize = 220;
/// Of a reply of a command: keywords, braces, and the beginning of a context.
const FRAME: usize = 60;
/// Statistics of a termination.
const STATISTICS: usize = 260;
/// What a line of a session description takes besides its text where it is sent in octets, of which there may be twice as many as of the
/// text: 14 octets stand around its value, and three bytes of the text.
const LINE: usize = 4;

impl Gateway {
    /// Whether the replies of a command that changes something fit. What audits say beyond that is another matter ([`Gateway::one_audited`]).
    pub(super) fn has_reply_room(&self, command: &Command<'_>, matches: &[Termination], w: &Writer<'_>) -> bool {
        let count = if command.wildcarded && command.termination.is_wildcard() { 1 } else { matches.len().max(1) };
        self.room(w) >= TAIL + count.saturating_mul(self.reply_bound(command))
    }

    /// Bytes of text that may be written still.
    fn room(&self, w: &Writer<'_>) -> usize {
        match self.per_line() {
            0 => w.room(),
            line => w.room().saturating_sub(line * w.lines()),
        }
    }

    /// What each line takes besides its text.
    fn per_line(&self) -> usize {
        if self.own().encoding == MessageEncoding::Binary { LINE } else { 0 }
    }

    /// Octets of the reply of one command for one termination, at most.
    fn reply_bound(&self, command: &Command<'_>) -> usize {
        let (mut says, mut counts) = (0, command.verb == Verb::Subtract);
        for descriptor in command.descriptors().flatten() {
            match descriptor.1 {
                Descriptor::Media(media) => says += media_bound(&media, self.calls.settings.encodings.iter().count(), self.per_line()),
                Descriptor::Audit(_) => counts = false,
                _ => {}
            }
        }
        // Long keywords and an indented line for each item.
        let wide = if self.own().encoding == MessageEncoding::Pretty { 2 } else { 1 };
        let statistics = if counts { STATISTICS } else { 0 };
        NAME_MAX + (FRAME + statistics) * wide + says
    }

    /// Whether what was written leaves the room that must stay free.
    pub(super) fn is_within_room(&self, w: &Writer<'_>) -> bool {
        !w.failed() && self.room(w) >= TAIL
    }

    /// What a command that was done is asked to tell besides, as it fits: otherwise error 533 stands in its place.
    pub(super) fn one_audited(&mut self, w: &mut Writer<'_>, write: impl FnOnce(&mut Gateway, &mut Writer<'_>)) {
        let mark = w.mark();
        write(self, w);
        if !self.is_within_room(w) {
            w.rewind(mark);
            w.error(super::error::TOO_LARGE.code, super::error::TOO_LARGE.text.as_bytes());
        }
    }
}

/// What is said of descriptions: ours, and what was chosen of the other side's.
fn media_bound(media: &Media<'_>, encodings: usize, per_line: usize) -> usize {
    let part = |part: StreamPart<'_>| match part {
        StreamPart::Local(_) => description::longest(encodings) + per_line * description::most_lines(encodings),
        StreamPart::Remote(text) => {
            let lines = text.raw().iter().filter(|byte| **byte == b'\n').count() + 1;
            text.raw().len() + FRAME + per_line * lines
        }
        StreamPart::Control(_) => 0,
    };
    let of = |media: MediaPart<'_>| match media {
        MediaPart::One(one) => part(one),
        MediaPart::Stream(stream) => stream.parts().flatten().map(part).sum(),
        MediaPart::State(_) => 0,
    };
    media.parts().flatten().map(of).sum()
}
