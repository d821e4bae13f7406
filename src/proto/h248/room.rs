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

impl Gateway {
    /// Whether the replies of a command that changes something fit. What audits say beyond that is another matter ([`Gateway::one_audited`]).
    pub(super) fn has_reply_room(&self, command: &Command<'_>, matches: &[Termination], w: &Writer<'_>) -> bool {
        let count = if command.wildcarded && command.termination.is_wildcard() { 1 } else { matches.len().max(1) };
        w.room() >= TAIL + count.saturating_mul(self.reply_bound(command))
    }

    /// Octets of the reply of one command for one termination, at most.
    fn reply_bound(&self, command: &Command<'_>) -> usize {
        let (mut says, mut counts) = (0, command.verb == Verb::Subtract);
        for descriptor in command.descriptors().flatten() {
            match descriptor.1 {
                Descriptor::Media(media) => says += media_bound(&media, self.calls.settings.encodings.iter().count()),
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
    pub(super) fn is_within_room(w: &Writer<'_>) -> bool {
        !w.failed() && w.room() >= TAIL
    }

    /// What a command that was done is asked to tell besides, as it fits: otherwise error 533 stands in its place.
    pub(super) fn one_audited(&mut self, w: &mut Writer<'_>, write: impl FnOnce(&mut Gateway, &mut Writer<'_>)) {
        let mark = w.mark();
        write(self, w);
        if !Gateway::is_within_room(w) {
            w.rewind(mark);
            w.error(super::error::TOO_LARGE.code, super::error::TOO_LARGE.text.as_bytes());
        }
    }
}

/// What is said of descriptions: ours, and what was chosen of the other side's.
fn media_bound(media: &Media<'_>, encodings: usize) -> usize {
    let part = |part: StreamPart<'_>| match part {
        StreamPart::Local(_) => description::longest(encodings),
        StreamPart::Remote(text) => text.raw().len() + FRAME,
        StreamPart::Control(_) => 0,
    };
    let of = |media: MediaPart<'_>| match media {
        MediaPart::One(one) => part(one),
        MediaPart::Stream(stream) => stream.parts().flatten().map(part).sum(),
        MediaPart::State(_) => 0,
    };
    media.parts().flatten().map(of).sum()
}
