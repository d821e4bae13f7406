//! What the interop settings of an agent mean: its profile, and what was set beside it.

use super::defaults::Agent;
use super::types::{Descriptions, Duplicates, Profile, Provisional, UnknownOptions, Version};
use super::value::Auto;

/// The interop settings of an agent, none left to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interop {
    /// What stands behind `MGCP 1.0`.
    pub version: Version,
    /// Whether several messages may share a datagram.
    pub piggyback: bool,
    /// Provisional responses.
    pub provisional: Provisional,
    /// Lines of session descriptions.
    pub descriptions: Descriptions,
    /// Options that the gateway does not have.
    pub unknown_options: UnknownOptions,
    /// What makes a repeat.
    pub duplicates: Duplicates,
}

impl Profile {
    /// What it sets.
    pub fn interop(self) -> Interop {
        let rfc = Interop {
            version: Version::Mgcp,
            piggyback: true,
            provisional: Provisional::Confirmed,
            descriptions: Descriptions::Full,
            unknown_options: UnknownOptions::Refuse,
            duplicates: Duplicates::IdAndName,
        };
        match self {
            Profile::Rfc3435 => rfc,
            Profile::Tgcp => Interop { version: Version::Tgcp, ..rfc },
            Profile::Lenient => Interop {
                version: Version::Any,
                piggyback: false,
                provisional: Provisional::Plain,
                unknown_options: UnknownOptions::Ignore,
                duplicates: Duplicates::SameContent,
                ..rfc
            },
        }
    }
}

impl Agent {
    /// Its interop settings: those of the profile but for what is set.
    pub fn interop(&self) -> Interop {
        let of = self.profile.interop();
        Interop {
            version: or(&self.version, of.version),
            piggyback: or(&self.piggyback, of.piggyback),
            provisional: or(&self.provisional, of.provisional),
            descriptions: or(&self.descriptions, of.descriptions),
            unknown_options: or(&self.unknown_options, of.unknown_options),
            duplicates: or(&self.duplicates, of.duplicates),
        }
    }
}

fn or<T: Copy>(set: &Auto<T>, profile: T) -> T {
    match set {
        Auto::Auto => profile,
        Auto::Fixed(value) => *value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_is_set_goes_before_the_profile() {
        let agent = |more: &str| {
            let text = format!(
                "[[span]]\nkind = \"t1\"\nunit = 1\n[[agent]]\nname = \"ca\"\naddresses = [\"127.0.0.1\"]\nnotify = [\"127.0.0.1\"]\n{more}"
            );
            Config::parse(&text, "f").unwrap_or_else(|errors| panic!("{errors}")).agents.remove(0).interop()
        };
        let rfc = Profile::Rfc3435.interop();
        assert_eq!((agent(""), agent("profile = \"tgcp\"")), (rfc, Interop { version: Version::Tgcp, ..rfc }));
        let lenient = Profile::Lenient.interop();
        assert_eq!(agent("profile = \"lenient\""), lenient);
        assert!(!lenient.piggyback && lenient.duplicates == Duplicates::SameContent);
        let mixed = agent("profile = \"lenient\"\npiggyback = true\nduplicates = \"id-and-name\"\ndescriptions = \"short\"");
        let wanted = Interop { piggyback: true, duplicates: Duplicates::IdAndName, descriptions: Descriptions::Short, ..lenient };
        assert_eq!(mixed, wanted);
    }
}
