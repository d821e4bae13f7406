//! Address prefixes, and which of many is the longest for an address.

use super::scope::ScopeId;
use std::net::IpAddr;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    v6: bool,
    bits: u8,
    /// The address, its first bit in the highest place and what the prefix leaves open zero.
    address: u128,
}

/// Which family an address is of, and its bits with the first one in the highest place.
fn bits_of(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address)) << 96),
        IpAddr::V6(address) => (true, address.into()),
    }
}

/// The first `bits` of `address`.
fn first(address: u128, bits: u8) -> u128 {
    address & u128::MAX.checked_shl(128u32.saturating_sub(bits.into())).unwrap_or(0)
}

impl Prefix {
    /// The addresses that have the first `bits` of `address`; `None` when it has fewer.
    pub fn new(address: IpAddr, bits: u8) -> Option<Prefix> {
        let (v6, address) = bits_of(address);
        (bits <= if v6 { 128 } else { 32 }).then_some(Prefix { v6, bits, address: first(address, bits) })
    }

    /// `10.1.0.0/16`, `2001:db8::/32`, or one address.
    pub fn parse(text: &str) -> Option<Prefix> {
        match text.split_once('/') {
            Some((address, bits)) => Prefix::new(address.parse().ok()?, bits.parse().ok()?),
            None => {
                let address: IpAddr = text.parse().ok()?;
                Prefix::new(address, if address.is_ipv4() { 32 } else { 128 })
            }
        }
    }

    /// Its value as bytes, for fingerprints.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + use<> {
        [u8::from(self.v6), self.bits].into_iter().chain(self.address.to_be_bytes())
    }
}

/// Whether IPv6, how many bits, and the prefixes with their scopes.
type Group = (bool, u8, Vec<(u128, ScopeId)>);

/// Prefixes with the scope each belongs to. A search costs one binary search for each length in use.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prefixes {
    /// The prefixes of one family and length, sorted by address: longest first.
    groups: Vec<Group>,
}

impl Prefixes {
    /// A table of these; of two that are equal the first counts.
    pub fn new(prefixes: impl Iterator<Item = (Prefix, ScopeId)>) -> Prefixes {
        let mut groups: Vec<Group> = Vec::new();
        for (prefix, scope) in prefixes {
            match groups.iter_mut().find(|(v6, bits, _)| (*v6, *bits) == (prefix.v6, prefix.bits)) {
                Some((_, _, list)) => list.push((prefix.address, scope)),
                None => groups.push((prefix.v6, prefix.bits, vec![(prefix.address, scope)])),
            }
        }
        for (_, _, list) in &mut groups {
            list.sort_by_key(|&(address, _)| address);
            list.dedup_by_key(|(address, _)| *address);
        }
        groups.sort_by_key(|&(_, bits, _)| std::cmp::Reverse(bits));
        Prefixes { groups }
    }

    /// The scope of the longest prefix of `address`.
    pub fn longest(&self, address: IpAddr) -> Option<ScopeId> {
        let (v6, address) = bits_of(address);
        self.groups.iter().filter(|group| group.0 == v6).find_map(|(_, bits, list)| {
            let place = list.binary_search_by_key(&first(address, *bits), |&(address, _)| address).ok()?;
            list.get(place).map(|&(_, scope)| scope)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let list = ["0.0.0.0/0", "10.0.0.0/8", "10.9.0.0/16", "10.9.1.7", "10.9.1.7/32", "2001:db8::/32", "2001:db8::1"];
        let prefixes = Prefixes::new(list.iter().enumerate().map(|(n, text)| (Prefix::parse(text).unwrap(), ScopeId(n as u16))));
        let longest = |address: &str| prefixes.longest(address.parse().unwrap()).map(|scope| list[usize::from(scope.0)]);
        assert_eq!(longest("203.0.113.9"), Some("0.0.0.0/0"));
        assert_eq!(longest("10.255.255.255"), Some("10.0.0.0/8"));
        assert_eq!(longest("10.9.255.255"), Some("10.9.0.0/16"));
        assert_eq!(longest("10.9.1.7"), Some("10.9.1.7"));
        assert_eq!(longest("2001:db8::2"), Some("2001:db8::/32"));
        assert_eq!(longest("2001:db8::1"), Some("2001:db8::1"));
        assert_eq!(longest("2001:db9::1"), None);
    }

    #[test]
    fn what_is_no_prefix_is_none() {
        for bad in ["10.0.0.0/33", "::/129", "", "10.0.0", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "a/8"] {
            assert_eq!(Prefix::parse(bad), None, "{bad}");
        }
        assert_eq!(Prefix::parse("10.9.8.7/16"), Prefix::parse("10.9.0.0/16"));
    }
}
