//! Counters: one line in the list below per outcome; the list is the register that `show counters` and the metrics read.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// Everything a core counts. One counter per outcome and per reason of a refusal or drop.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum Counter { $($(#[doc = $help])+ $variant,)+ }

        impl Counter {
            /// Every counter, in the order of the list.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant,)+];

            /// The name shown to operators and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)+ }
            }

            /// What it counts.
            pub const fn help(self) -> &'static str {
                match self { $(Counter::$variant => concat!($($help,)+).trim_ascii(),)+ }
            }
        }
    };
}

counters! {
    /// Datagrams received.
    DatagramsReceived = "datagrams_received",
    /// Datagrams sent.
    DatagramsSent = "datagrams_sent",
    /// Datagrams that left with others in one send (UDP_SEGMENT).
    SentCoalesced = "sent_coalesced",
    /// Times a path refused to take several datagrams in one send; they went one by one from then on.
    CoalesceRefused = "coalesce_refused",
    /// Datagrams that could not be sent for want of a transmit frame.
    TransmitFull = "transmit_full",
    /// Datagrams dropped: the source address is no configured agent.
    DroppedUnlistedSource = "dropped_unlisted_source",
    /// Messages dropped: an H.248 gateway with streams got a datagram.
    DroppedOtherTransport = "dropped_other_transport",
    /// Messages dropped: neither a command nor a response of MGCP could be read.
    DroppedUnreadable = "dropped_unreadable",
    /// H.248: messages of controllers read.
    H248Messages = "h248_messages",
    /// H.248: messages and transactions of controllers that could not be read.
    H248Unreadable = "h248_unreadable",
    /// H.248: messages that could not be sent because they have no form in the binary encoding, or are too long in it.
    H248Unwritable = "h248_unwritable",
    /// H.248: messages of controllers that are an error.
    H248ErrorMessages = "h248_error_messages",
    /// H.248: transactions executed.
    H248Transactions = "h248_transactions",
    /// H.248: replies sent to transactions executed.
    H248Replies = "h248_replies",
    /// H.248: errors told to controllers: of messages, transactions, actions and commands.
    H248Failed = "h248_failed",
    /// H.248: terminations added to a context.
    H248Adds = "h248_adds",
    /// H.248: terminations subtracted.
    H248Subtracts = "h248_subtracts",
    /// H.248: Notify commands begun.
    H248Notifies = "h248_notifies",
    /// H.248: Adds done while overloaded that the controller was told of (`ocp/mg_overload`).
    H248OverloadNotified = "h248_overload_notified",
    /// H.248: such Adds that it was not told of, or not until it answered, because that is too long ago or too many are out.
    H248OverloadDropped = "h248_overload_dropped",
    /// H.248: new contexts refused because messages have waited too long.
    H248OverloadRefused = "h248_overload_refused",
    /// H.248: times a controller was asked to take a gateway.
    H248Registrations = "h248_registrations",
    /// H.248: times a controller did not take a gateway, or named another one that is not listed.
    H248RegistrationsRefused = "h248_registrations_refused",
    /// H.248: times the controller in charge left a request unanswered until T-MAX.
    H248ControllersLost = "h248_controllers_lost",
    /// Datagrams dropped: longer than a receive frame.
    DroppedTruncated = "dropped_truncated",
    /// Datagrams dropped by the kernel: a socket's receive buffer was full.
    DroppedKernel = "dropped_kernel",
    /// Times receiving paused: every receive frame was held.
    ReceiveStarved = "receive_starved",
    /// Receive calls that ended with a socket error; receiving went on.
    ReceiveErrors = "receive_errors",
    /// Datagrams the kernel refused to send.
    SendErrors = "send_errors",
    /// Times a socket's send buffer was full; the datagrams stayed queued.
    SendFull = "send_full",
    /// AF_XDP: datagrams received without the kernel's network stack, among those received.
    BypassReceived = "bypass_received",
    /// AF_XDP: datagrams sent without the kernel's network stack, among those sent.
    BypassSent = "bypass_sent",
    /// AF_XDP: frames dropped because their headers or checksums are wrong.
    DroppedBypassInvalid = "dropped_bypass_invalid",
    /// Completions the kernel had no room for in the ring; they came later.
    RingOverflow = "ring_overflow",
    /// Streams (TCP) with H.248 controllers opened, by either side.
    StreamsOpened = "streams_opened",
    /// Streams that ended, by either side.
    StreamsEnded = "streams_ended",
    /// Streams ended because what came was no message in a TPKT, or half of one for too long.
    StreamsMalformed = "streams_malformed",
    /// Messages dropped because the other side of their stream does not read, or cannot be reached.
    StreamsFull = "streams_full",
    /// Streams refused: from somebody who is no controller, or one too many.
    StreamsRefused = "streams_refused",
    /// Sleeps of a core ended by another thread.
    Wakes = "wakes",
    /// System calls of a core to end the sleep of another one.
    WakesSent = "wakes_sent",
    /// Releases refused: the frame was not held or still being read (a fault in the gateway).
    ReleaseRefused = "release_refused",
    /// Datagrams cut short: more messages in one than `limits.messages_per_datagram`; those behind are dropped.
    DroppedPiggybackLimit = "dropped_piggyback_limit",
    /// Datagrams dropped: no room to keep a datagram of several messages.
    DroppedDatagramTable = "dropped_datagram_table",
    /// Messages dropped: the ring to their home core is full (the core is stalled or far behind).
    DroppedRingFull = "dropped_ring_full",
    /// Orders of the lead core that the ring to a core had no room for; it is told what holds when there is room.
    OrdersMissed = "orders_missed",
    /// Messages dropped: their home core has its share of the received frames and gives none back (it is stalled or far behind).
    DroppedHomeBehind = "dropped_home_behind",
    /// Datagrams taken from the socket of a core that stands still, and treated here.
    DatagramsTakenOver = "datagrams_taken_over",
    /// Datagrams dropped: taken from the socket of a core that stands still, and there is no frame for them, or none so long.
    DroppedTakenOver = "dropped_taken_over",
    /// Messages handed to another core.
    MessagesForwarded = "messages_forwarded",
    /// Commands: new transactions.
    CommandsNew = "commands_new",
    /// Commands: repeats answered from the history.
    CommandsRepeated = "commands_repeated",
    /// Commands: repeats of a command still running, answered 100.
    CommandsRepeatedRunning = "commands_repeated_running",
    /// Commands: repeats of a confirmed command, dropped silently.
    CommandsRepeatedConfirmed = "commands_repeated_confirmed",
    /// Commands that waited for a core so long (10 s) that they might be repeats of what it has forgotten: dropped.
    CommandsLate = "commands_late",
    /// Commands: executed under an id and a content that were confirmed a while ago, as by an agent that started anew
    /// (`duplicates = "same-content"`).
    CommandsReused = "commands_reused",
    /// Transactions refused 409: no room in the history.
    HistoryFull = "history_full",
    /// CreateConnection refused 409: the core is overloaded.
    OverloadRefused = "overload_refused",
    /// Admission: claims, for calls that found no place held on their core.
    AdmissionClaims = "admission_claims",
    /// Commands refused 403 or 404: admission control has no room for the call.
    AdmissionRefused = "admission_refused",
    /// Commands refused 403: the core that gives places out did not answer in time.
    AdmissionOverdue = "admission_overdue",
    /// EndpointConfiguration commands executed with success.
    EpcfDone = "epcf_done",
    /// CreateConnection commands executed with success.
    CrcxDone = "crcx_done",
    /// ModifyConnection commands executed with success.
    MdcxDone = "mdcx_done",
    /// DeleteConnection commands executed with success.
    DlcxDone = "dlcx_done",
    /// NotificationRequest commands executed with success.
    RqntDone = "rqnt_done",
    /// AuditEndpoint commands executed with success.
    AuepDone = "auep_done",
    /// AuditConnection commands executed with success.
    AucxDone = "aucx_done",
    /// Provisional responses 100 sent.
    Provisional = "provisional",
    /// Transactions ended 406: their own time limit.
    TimeLimit = "time_limit",
    /// Transactions ended 407: aborted by another command.
    Aborted = "aborted",
    /// Commands refused (403), and embedded requests not done: the memory for descriptions, lists of events and digit maps is used up
    /// (`limits.text_memory`).
    TextMemoryFull = "text_memory_full",
    /// Commands refused (403): too many different notified entities.
    EntitiesFull = "entities_full",
    /// Commands over several cores refused (400): one of the cores stood still.
    VoteTimeout = "vote_timeout",
    /// Commands over several endpoints refused (400): their home core stood still when they came.
    HomeSilent = "home_silent",
    /// Commands over many endpoints refused (409): too many of them wait on a core.
    WildcardContention = "wildcard_contention",
    /// Responses received for commands of ours.
    ResponsesMatched = "responses_matched",
    /// Responses received that match no command of ours; ignored.
    ResponsesUnmatched = "responses_unmatched",
    /// Transactions of ours confirmed by a response acknowledgement (K: or 000).
    ResponsesConfirmed = "responses_confirmed",
    /// Acknowledgements from another agent than the one that sent the command; ignored.
    ConfirmForeign = "confirm_foreign",
    /// Commands of ours sent for the first time.
    OwnCommands = "own_commands",
    /// Commands of ours repeated.
    OwnRepeats = "own_repeats",
    /// Commands of ours that got no final response.
    OwnLost = "own_lost",
    /// Commands of ours that could not be sent for want of room.
    OwnFull = "own_full",
    /// Connections deleted because nothing came from their far ends for `cards.cesopsn.media_timeout`.
    MediaTimedOut = "media_timed_out",
    /// Halves of connections inside the gateway that were not told that the other one has gone, because their core stands still and too many
    /// wait to be told; they send on until they are deleted or changed.
    PartingsDropped = "partings_dropped",
    /// Calls out lost on channels that signal: the far end had seized the trunk too (`rel(44)`).
    TrunkGlare = "trunk_glare",
    /// Calls lost on channels that signal: a wink, digits, an answer or the agent did not come in time (`rel(111)`).
    TrunkFaults = "trunk_faults",
    /// Times a channel that signals was locked out: the far end stayed off-hook when its call was over (`cas.guard`).
    TrunkLockouts = "trunk_lockouts",
    /// RTP: packets of connections that have ended whose turn to be played had passed.
    RtpLate = "rtp_late",
    /// RTP: octets that were made up on connections that have ended, in the place of what was lost or late.
    RtpConcealedOctets = "rtp_concealed_octets",
    /// RTP: times octets were left out or played again on connections that have ended, because of jitter or of clocks that differ.
    RtpSlips = "rtp_slips",
    /// SRTP: packets of connections that have ended which were dropped because they had come before.
    SrtpReplayed = "srtp_replayed",
    /// SRTP: packets of connections that have ended which were dropped because their far ends had not made them as they came.
    SrtpUnauthentic = "srtp_unauthentic",
    /// Reports that a command of ours could not be delivered; its next copy goes to another address, if there is one.
    UnreachableBelieved = "unreachable_believed",
    /// Reports that something could not be delivered which is no outstanding command of ours; ignored.
    UnreachableIgnored = "unreachable_ignored",
    /// Commands of ours sent on to the notified entity that an agent named meanwhile.
    OwnRedirected = "own_redirected",
    /// Endpoints that became disconnected: their notified entity did not answer.
    EndpointsDisconnected = "endpoints_disconnected",
    /// Notify commands sent.
    NotifiesSent = "notifies_sent",
    /// Notify commands answered with an error.
    NotifiesRefused = "notifies_refused",
    /// Notify commands that got no final response; the agent does not know of their events.
    NotifiesLost = "notifies_lost",
    /// Events lost: the quarantine of their endpoint was full.
    QuarantineLost = "quarantine_lost",
    /// Events not reported: the list of observed events of their endpoint was full.
    ObservedLost = "observed_lost",
    /// Embedded requests that could not be activated.
    EmbeddedFailed = "embedded_failed",
    /// RestartInProgress commands sent.
    RestartsSent = "restarts_sent",
    /// RestartInProgress commands sent although an owner had not confirmed in time that it has the service state.
    RestartsUnconfirmed = "restarts_unconfirmed",
    /// RestartInProgress commands answered with an error.
    RestartsRefused = "restarts_refused",
    /// DeleteConnection commands sent by the gateway.
    GatewayDlcxSent = "gateway_dlcx_sent",
    /// Connections that ended because their endpoint went out of service.
    ConnectionsLost = "connections_lost",
    /// Connections that ended because an operator cleared their endpoint.
    ConnectionsFreed = "connections_freed",
    /// Redirections (N:) to an address that is no configured agent; refused.
    RedirectRefused = "redirect_refused",
    /// Card orders refused by the card.
    CardRefused = "card_refused",
    /// Indications of a card that name nothing known; ignored.
    CardStray = "card_stray",
    /// Messages between cores that came too late for what they were about; ignored.
    EnvelopeStray = "envelope_stray",
    /// Finals kept for acknowledgement (K:) and repeated.
    FinalRepeats = "final_repeats",
    /// Times the loop of a core ended by a panic; the process ends then.
    CorePanics = "core_panics",
    /// Commands refused because the gateway drains.
    DrainRefused = "drain_refused",
}

/// The responses sent, by return code.
pub const RESPONSE_CODES: usize = 1000;

/// One core's counters. The core alone writes; anybody may read at any time.
pub struct Counters {
    values: Box<[AtomicU64]>,
    responses: Box<[AtomicU64]>,
}

impl Counters {
    /// All zero.
    pub fn new() -> Counters {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Counters { values: zeros(Counter::ALL.len()), responses: zeros(RESPONSE_CODES) }
    }

    /// Counts one.
    #[inline]
    pub fn add(&self, counter: Counter) {
        self.add_many(counter, 1);
    }

    /// Counts `n`.
    #[inline]
    pub fn add_many(&self, counter: Counter, n: u64) {
        if let Some(value) = self.values.get(counter as usize) {
            bump(value, n);
        }
    }

    /// Counts one response with this return code.
    #[inline]
    pub fn response(&self, code: u16) {
        if let Some(value) = self.responses.get(usize::from(code)) {
            bump(value, 1);
        }
    }

    /// The value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter as usize).map_or(0, |v| v.load(Ordering::Relaxed))
    }

    /// Responses sent with `code` so far.
    pub fn responses(&self, code: u16) -> u64 {
        self.responses.get(usize::from(code)).map_or(0, |v| v.load(Ordering::Relaxed))
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::new()
    }
}

/// One writer: a plain load and store, no locked instruction.
#[inline]
fn bump(value: &AtomicU64, n: u64) {
    value.store(value.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_helped() {
        let mut names: Vec<_> = Counter::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
        assert!(Counter::ALL.iter().all(|c| c.help().ends_with('.')));
    }

    #[test]
    fn counts_are_read_back() {
        let counters = Counters::new();
        counters.add(Counter::CrcxDone);
        counters.add_many(Counter::CrcxDone, 2);
        counters.response(200);
        assert_eq!((counters.get(Counter::CrcxDone), counters.responses(200)), (3, 1));
    }
}
