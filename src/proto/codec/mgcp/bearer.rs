//! BearerInformation (RFC 3435 3.2.2.1; G-EPC-04).

use super::options::{self, PackageOption, PackageOptions};
use super::refusal::{Fault, Refusal};
use crate::proto::codec::scan::{self, Items};

/// The coding of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// A-law.
    ALaw,
    /// mu-law.
    MuLaw,
}

impl Encoding {
    /// The value as it is sent.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::ALaw => "A",
            Encoding::MuLaw => "mu",
        }
    }
}

/// The attributes of a `B:`; what is absent was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BearerInformation<'a> {
    /// `e:`.
    pub encoding: Option<Encoding>,
    packages: PackageOptions<'a>,
}

impl<'a> BearerInformation<'a> {
    /// Reads the value of `B:`.
    pub fn parse(value: &'a [u8]) -> Result<BearerInformation<'a>, Refusal> {
        let mut bearer = BearerInformation { packages: PackageOptions { value, count: 0 }, ..Default::default() };
        for item in Items::new(value, b',') {
            bearer.add(item).map_err(|fault| Refusal::new(fault, scan::offset_in(value, item)))?;
        }
        Ok(bearer)
    }

    /// The attributes that belong to packages, in order.
    pub fn packages(&self) -> impl Iterator<Item = PackageOption<'a>> + use<'a> {
        self.packages.iter()
    }

    fn add(&mut self, item: &'a [u8]) -> Result<(), Fault> {
        let (key, value) = options::key_and_value(item);
        if key.eq_ignore_ascii_case(b"e") {
            let encoding = match value.unwrap_or_default() {
                [b'a' | b'A'] => Encoding::ALaw,
                [b'm' | b'M', b'u' | b'U'] => Encoding::MuLaw,
                _ => return Err(Fault::BearerEncoding),
            };
            return if self.encoding.replace(encoding).is_some() { Err(Fault::BearerRepeated) } else { Ok(()) };
        }
        let slash = key.iter().position(|&b| b == b'/').ok_or(Fault::BearerUnknown)?;
        if !scan::is_package_name(&key[..slash]) || !options::extension(&key[slash + 1..], value) {
            return Err(Fault::BearerUnknown);
        }
        self.packages.add(key, Fault::BearerRepeated, Fault::TooManyBearers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes() {
        let parse = |text: &'static str| BearerInformation::parse(text.as_bytes()).map_err(|refusal| refusal.fault);
        assert_eq!(parse("e:MU").unwrap().encoding, Some(Encoding::MuLaw));
        let bearer = parse("E : a, zz/a:1").unwrap();
        assert_eq!(bearer.encoding, Some(Encoding::ALaw));
        assert_eq!(bearer.packages().next().unwrap(), PackageOption { package: b"zz", name: b"a", value: b"1" });
        assert_eq!(parse(""), Ok(BearerInformation::default()));
        assert_eq!(parse("e:xx"), Err(Fault::BearerEncoding));
        assert_eq!(parse("e"), Err(Fault::BearerEncoding));
        assert_eq!(parse("e:A,e:A"), Err(Fault::BearerRepeated));
        assert_eq!(parse("z/a,Z/A"), Err(Fault::BearerRepeated));
        assert_eq!(parse("q:1"), Err(Fault::BearerUnknown));
    }
}
