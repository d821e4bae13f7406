//! One second: what was seen in it, and what it counts for.

use crate::proto::trunk::alarm::Defect;
use crate::proto::trunk::topology::FacilityKind;

/// The kind of signal, which decides what an errored second is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// T1 with extended superframe.
    Esf,
    /// T1 with superframe (D4).
    D4,
    /// E1 with CRC.
    E1Crc,
    /// E1 without CRC.
    E1,
    /// T3 with C-bit parity.
    T3CBit,
    /// T3 without (M23).
    T3M23,
}

impl Signal {
    /// The word operators use.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Esf => "ESF",
            Signal::D4 => "D4",
            Signal::E1Crc => "E1 with CRC",
            Signal::E1 => "E1 without CRC",
            Signal::T3CBit => "T3 with C-bit parity",
            Signal::T3M23 => "T3 (M23)",
        }
    }

    /// The usual one of a kind of facility.
    pub fn usual(kind: FacilityKind) -> Signal {
        match kind {
            FacilityKind::T1 => Signal::Esf,
            FacilityKind::E1 => Signal::E1Crc,
            FacilityKind::T3 => Signal::T3CBit,
        }
    }

    /// Path coding violations that make a second severely errored.
    fn severe_path(self) -> Option<u32> {
        match self {
            Signal::Esf => Some(320),
            Signal::E1Crc => Some(832),
            Signal::T3CBit | Signal::T3M23 => Some(44),
            Signal::D4 | Signal::E1 => None,
        }
    }

    /// Line coding violations that do.
    fn severe_line(self) -> Option<u32> {
        match self {
            Signal::D4 => Some(1544),
            Signal::E1 => Some(2048),
            Signal::Esf | Signal::E1Crc | Signal::T3CBit | Signal::T3M23 => None,
        }
    }

    /// Errored blocks that do: 30 % of those of a second (RFC 4553 6.4 by G.826), which are of 3 ms in a T1, and of 1 ms in an E1.
    fn severe_blocks(self) -> Option<u32> {
        match self {
            Signal::Esf | Signal::D4 => Some(100),
            Signal::E1Crc | Signal::E1 => Some(300),
            Signal::T3CBit | Signal::T3M23 => None,
        }
    }

    fn is_t3(self) -> bool {
        matches!(self, Signal::T3CBit | Signal::T3M23)
    }
}

/// What a framer counts (RFC 4805 3.4.1, RFC 3896 2.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Violations {
    /// PCV: CRC or framing errors of a T1 or E1, P-bit parity errors of a T3.
    pub path: u32,
    /// LCV: bipolar violations that are no substitution, and runs of zeros.
    pub line: u32,
    /// CCV: CP-bit parity errors of a T3.
    pub c_bit: u32,
    /// Frames repeated or dropped by a slip buffer.
    pub slips: u32,
    /// Errored blocks of a pseudowire: a packet of theirs did not come (RFC 4553 6.4).
    pub blocks: u32,
}

impl Violations {
    /// These as well; saturating.
    pub fn add(&mut self, more: &Violations) {
        self.path = self.path.saturating_add(more.path);
        self.line = self.line.saturating_add(more.line);
        self.c_bit = self.c_bit.saturating_add(more.c_bit);
        self.slips = self.slips.saturating_add(more.slips);
        self.blocks = self.blocks.saturating_add(more.blocks);
    }
}

/// The defects that matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Impairments {
    out_of_frame: bool,
    ais: bool,
    no_signal: bool,
}

impl Impairments {
    pub(super) fn of(is_present: impl Fn(Defect) -> bool) -> Impairments {
        let no_signal = is_present(Defect::LossOfSignal);
        Impairments {
            out_of_frame: no_signal || [Defect::OutOfFrame, Defect::Equipment, Defect::PacketLoss].into_iter().any(&is_present),
            ais: is_present(Defect::Ais),
            no_signal,
        }
    }
}

/// What was seen in one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Second {
    pub(super) violations: Violations,
    seen: Impairments,
    /// A failure was declared in it.
    pub(super) failure_declared: bool,
    /// A failure was declared at its end.
    pub(super) failed: bool,
}

impl Second {
    /// Defects in it, and whether a failure is declared now.
    pub(super) fn note(&mut self, present: Impairments, failed: bool) {
        self.seen.out_of_frame |= present.out_of_frame;
        self.seen.ais |= present.ais;
        self.seen.no_signal |= present.no_signal;
        self.failed = failed;
    }

    /// No defect was in it after all.
    pub(super) fn forget_defects(&mut self) {
        self.seen = Impairments::default();
    }

    /// SES; PSES of a T3 (T1P-02, T3P-03).
    pub(super) fn is_severe(&self, signal: Signal) -> bool {
        let many = |count: u32, threshold: Option<u32>| threshold.is_some_and(|threshold| count >= threshold);
        let framing_error = signal == Signal::D4 && self.violations.path > 0;
        self.is_unframed()
            || framing_error
            || many(self.violations.path, signal.severe_path())
            || many(self.violations.line, signal.severe_line())
            || many(self.violations.blocks, signal.severe_blocks())
    }

    /// SEFS (T1P-03, T3P-05).
    fn is_unframed(&self) -> bool {
        self.seen.out_of_frame || self.seen.ais
    }

    /// What it adds to the counters.
    pub(super) fn counts(&self, signal: Signal, available: bool) -> Counts {
        if !available {
            return Counts { uas: 1, ..Counts::default() };
        }
        let violations = &self.violations;
        let unframed = self.is_unframed();
        let c_bit = signal == Signal::T3CBit;
        let errored = violations.path > 0 || violations.blocks > 0 || unframed;
        let errored = match signal {
            Signal::Esf | Signal::E1Crc => errored || violations.slips > 0,
            Signal::D4 | Signal::E1 => errored || violations.slips > 0 || violations.line > 0,
            Signal::T3CBit | Signal::T3M23 => errored,
        };
        let bursty = signal == Signal::Esf && !unframed && (2..320).contains(&violations.path);
        Counts {
            es: errored.into(),
            ses: self.is_severe(signal).into(),
            sefs: unframed.into(),
            uas: 0,
            css: (!signal.is_t3() && violations.slips > 0).into(),
            les: (violations.line > 0 || signal.is_t3() && self.seen.no_signal).into(),
            bes: bursty.into(),
            ces: (c_bit && (violations.c_bit > 0 || unframed)).into(),
            cses: (c_bit && (violations.c_bit >= 44 || unframed)).into(),
            pcv: violations.path,
            lcv: violations.line,
            ccv: if c_bit { violations.c_bit } else { 0 },
        }
    }
}

/// The counters of an interval, by the names of the MIBs. For a T3 `es` and `ses` are PES and PSES.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Errored seconds.
    pub es: u32,
    /// Severely errored seconds.
    pub ses: u32,
    /// Severely errored framing seconds.
    pub sefs: u32,
    /// Unavailable seconds; nothing else counts in them.
    pub uas: u32,
    /// Controlled slip seconds (T1 and E1).
    pub css: u32,
    /// Line errored seconds.
    pub les: u32,
    /// Bursty errored seconds (ESF).
    pub bes: u32,
    /// C-bit errored seconds (T3 with C-bit parity).
    pub ces: u32,
    /// C-bit severely errored seconds (the same).
    pub cses: u32,
    /// Path coding violations; P-bit coding violations of a T3.
    pub pcv: u32,
    /// Line coding violations.
    pub lcv: u32,
    /// C-bit coding violations.
    pub ccv: u32,
}

impl Counts {
    /// The counters that such a signal has, by their names in its MIB.
    pub fn of(&self, signal: Signal) -> Vec<(&'static str, u32)> {
        let mut list = match signal.is_t3() {
            true => vec![("PES", self.es), ("PSES", self.ses), ("SEFS", self.sefs), ("UAS", self.uas), ("LES", self.les)],
            false => vec![("ES", self.es), ("SES", self.ses), ("SEFS", self.sefs), ("UAS", self.uas), ("CSS", self.css), ("LES", self.les)],
        };
        match signal {
            Signal::T3CBit => list.extend([("CES", self.ces), ("CSES", self.cses), ("CCV", self.ccv)]),
            Signal::Esf => list.push(("BES", self.bes)),
            Signal::D4 | Signal::E1 | Signal::E1Crc | Signal::T3M23 => {}
        }
        list.extend([("PCV", self.pcv), ("LCV", self.lcv)]);
        list
    }

    /// Adds what one second counts for, so many times over.
    pub(super) fn add(&mut self, second: &Counts, times: u32) {
        let Counts { es, ses, sefs, uas, css, les, bes, ces, cses, pcv, lcv, ccv } = self;
        let counts = [
            (es, second.es),
            (ses, second.ses),
            (sefs, second.sefs),
            (uas, second.uas),
            (css, second.css),
            (les, second.les),
            (bes, second.bes),
            (ces, second.ces),
            (cses, second.cses),
            (pcv, second.pcv),
            (lcv, second.lcv),
            (ccv, second.ccv),
        ];
        for (count, more) in counts {
            *count = count.saturating_add(more.saturating_mul(times));
        }
    }
}
