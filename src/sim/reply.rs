//! What a test sees of a message from the gateway: read with plain string functions, not with the codec that wrote it.

/// A response or command of the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The response code; 0 for `000`; `None` for a command.
    pub code: Option<u16>,
    /// The transaction identifier.
    pub id: u32,
    /// The first line.
    pub line: String,
    /// Parameters in order, as written.
    pub parameters: Vec<(String, String)>,
    /// The session description, all of it; empty when there is none.
    pub description: String,
    /// The message as it came.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// Every message of `datagram`, in order.
    ///
    /// # Panics
    /// When the datagram breaks a rule for what the gateway writes: lines end in CRLF and nothing else, messages stand apart by `.`.
    pub fn all(datagram: &[u8]) -> Vec<Reply> {
        let text = std::str::from_utf8(datagram).expect("the gateway writes ASCII");
        assert!(text.ends_with("\r\n"), "the last line has no end: {text:?}");
        let bare = text.replace("\r\n", "");
        assert!(!bare.contains(['\r', '\n']), "a line does not end in CRLF: {text:?}");
        text.split("\r\n.\r\n").map(|message| Reply::one(message.strip_suffix("\r\n").unwrap_or(message))).collect()
    }

    fn one(message: &str) -> Reply {
        let (head, description) = match message.split_once("\r\n\r\n") {
            Some((head, description)) => (head, format!("{description}\r\n")),
            None => (message, String::new()),
        };
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let mut words = line.split(' ');
        let first = words.next().unwrap_or_default();
        let code = first.parse().ok().filter(|_| first.len() == 3);
        let id = words.next().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no transaction identifier: {message:?}"));
        let parameter = |line: &str| {
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("not a parameter: {line:?}"));
            (name.to_owned(), value.trim_start().to_owned())
        };
        let parameters = lines.map(parameter).collect();
        Reply { code, id, line, parameters, description, bytes: format!("{message}\r\n").into_bytes() }
    }

    /// The value of the first parameter with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All values of this name.
    pub fn values(&self, name: &str) -> Vec<&str> {
        self.parameters.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether this is the final response to a command.
    pub fn is_final(&self) -> bool {
        self.code.is_some_and(|code| code >= 200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_read_message_by_message() {
        let all = Reply::all(b"RSIP 5 *@tgw MGCP 1.0\r\nRM: restart\r\n.\r\n200 7 OK\r\nI: A\r\n\r\nv=0\r\nc=x\r\n");
        assert_eq!((all[0].code, all[0].id, all[0].get("rm")), (None, 5, Some("restart")));
        assert_eq!((all[1].code, all[1].id, all[1].get("I")), (Some(200), 7, Some("A")));
        assert_eq!(all[1].description, "v=0\r\nc=x\r\n");
    }

    #[test]
    #[should_panic = "CRLF"]
    fn a_bare_line_feed_is_a_fault() {
        Reply::all(b"200 7 OK\nI: A\r\n");
    }
}
