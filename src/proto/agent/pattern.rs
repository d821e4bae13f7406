//! Patterns of endpoint names: `ds/ds3-1/ds1-[1-28]/[1-24]`, expanded by the agent itself because whoever provisions an agent
//! knows the trunks. A bracket holds numbers and ranges separated by commas.

use std::fmt;

/// The most endpoints of one pattern.
pub const ENDPOINTS_MAX: usize = 1_000_000;

/// The longest local name, RFC 3435 3.2.1.3.
const NAME_MAX: usize = 255;

/// Why a pattern is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PatternError {
    /// The pattern is empty or a name of it would be longer than 255 characters.
    Length,
    /// A `[` without `]` or the reverse.
    Bracket,
    /// Something in brackets that is no number and no ascending range of numbers.
    Range,
    /// A blank, `@`, `$` or `*`: the pattern must name endpoints.
    Character,
    /// More than [`ENDPOINTS_MAX`] endpoints.
    TooMany,
    /// Two names are the same.
    Repeated,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternError::Length => "a name must have 1 to 255 characters",
            PatternError::Bracket => "a bracket is not closed or not opened",
            PatternError::Range => "brackets must hold numbers or ascending ranges, such as [1-24] or [1,3,5-7]",
            PatternError::Character => "a pattern holds no blank, '@', '$' or '*'; use ranges such as [1-24]",
            PatternError::TooMany => "more than 1,000,000 endpoints",
            PatternError::Repeated => "an endpoint is named twice",
        })
    }
}

impl std::error::Error for PatternError {}

/// The local endpoint names of `pattern`, in order.
pub fn expand(pattern: &str) -> Result<Vec<String>, PatternError> {
    if pattern.bytes().any(|b| !b.is_ascii_graphic() || matches!(b, b'@' | b'$' | b'*')) {
        return Err(PatternError::Character);
    }
    expand_names(pattern)
}

/// The names of the fewest DeleteConnection commands that clear `pattern` and nothing else that we can know of: a last term
/// `[1-24]` is the whole T1 and becomes `*`; otherwise every endpoint is named.
pub fn clearing_names(pattern: &str) -> Result<Vec<String>, PatternError> {
    match pattern.strip_suffix("/[1-24]") {
        Some(span) => Ok(expand(span)?.into_iter().map(|name| name + "/*").collect()),
        None => expand(pattern),
    }
}

fn expand_names(pattern: &str) -> Result<Vec<String>, PatternError> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some(open) = rest.find(['[', ']']) {
        let (literal, bracket) = rest.split_at(open);
        let inside = bracket.strip_prefix('[').ok_or(PatternError::Bracket)?;
        let (inside, behind) = inside.split_once(']').ok_or(PatternError::Bracket)?;
        let numbers = numbers(inside)?;
        if names.len().saturating_mul(numbers.len()) > ENDPOINTS_MAX {
            return Err(PatternError::TooMany);
        }
        names = names.iter().flat_map(|name| numbers.iter().map(move |number| format!("{name}{literal}{number}"))).collect();
        rest = behind;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    if names.iter().any(|name| name.is_empty() || name.len() > NAME_MAX) {
        return Err(PatternError::Length);
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(PatternError::Repeated);
    }
    Ok(names)
}

fn numbers(list: &str) -> Result<Vec<u32>, PatternError> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| PatternError::Range);
    let mut found = Vec::new();
    for item in list.split(',') {
        let (low, high) = match item.split_once('-') {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (number(item)?, number(item)?),
        };
        if low > high {
            return Err(PatternError::Range);
        }
        if (high - low) as usize >= ENDPOINTS_MAX - found.len().min(ENDPOINTS_MAX) {
            return Err(PatternError::TooMany);
        }
        found.extend(low..=high);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_t3_has_672_endpoints_and_28_clearing_names() {
        let pattern = "ds/ds3-1/ds1-[1-28]/[1-24]";
        let names = expand(pattern).unwrap();
        assert_eq!(names.len(), 672);
        assert_eq!((names[0].as_str(), names[671].as_str()), ("ds/ds3-1/ds1-1/1", "ds/ds3-1/ds1-28/24"));
        let clearing = clearing_names(pattern).unwrap();
        assert_eq!((clearing.len(), clearing[27].as_str()), (28, "ds/ds3-1/ds1-28/*"));
    }

    #[test]
    fn parts_of_a_span_are_cleared_by_name() {
        assert_eq!(expand("a-[1,3,5-6]").unwrap(), ["a-1", "a-3", "a-5", "a-6"]);
        assert_eq!(clearing_names("ds/ds1-1/[1-12]").unwrap().len(), 12);
        assert_eq!(clearing_names("ds/ds1-1/7").unwrap(), ["ds/ds1-1/7"]);
    }

    #[test]
    fn broken_patterns_are_named() {
        for (pattern, error) in [
            ("", PatternError::Length),
            ("a[1-2", PatternError::Bracket),
            ("a1]", PatternError::Bracket),
            ("a[]", PatternError::Range),
            ("a[2-1]", PatternError::Range),
            ("a[x]", PatternError::Range),
            ("ds/*", PatternError::Character),
            ("[1-4000000000]", PatternError::TooMany),
            ("[1-999999][1-2]", PatternError::TooMany),
            ("a[1-3,2]", PatternError::Repeated),
            ("a[1,11][1,11]", PatternError::Repeated),
        ] {
            assert_eq!(expand(pattern), Err(error), "{pattern}");
        }
        assert_eq!(expand(&"a".repeat(256)), Err(PatternError::Length));
    }
}
