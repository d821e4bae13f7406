//! What `[cac]` must be for a cluster: who the nodes are, where the central one is, and that nobody else can speak for them.

use super::defaults::Cac;
use super::file::{Findings, Raw, Section};
use super::types::{CacMode, Disconnected};

/// Reports what is missing or cannot be.
pub(super) fn check(raw: &Raw, findings: &mut Findings<'_>) {
    let cac = &raw.cac;
    match cac.mode {
        CacMode::Off | CacMode::Local => {}
        CacMode::Cluster => check_gateway(raw, findings),
        CacMode::Central => check_central(cac, findings),
    }
    if matches!(cac.mode, CacMode::Cluster | CacMode::Central) && raw.scopes.is_empty() {
        findings.cross("cac.mode", &[], &cac.mode, "must be \"local\" or \"off\" without a [[scope]]: there is nothing to count");
    }
}

fn check_gateway(raw: &Raw, findings: &mut Findings<'_>) {
    let cac = &raw.cac;
    if cac.node == 0 {
        findings.cross("cac.node", &["cac.mode"], &cac.node, "must be 1..=65535, another one at each gateway of the cluster");
    }
    if !cac.nodes.is_empty() && !cac.nodes.contains(&cac.node) {
        findings.cross("cac.nodes", &["cac.node"], &cac.nodes, format!("must have this node too, {}", cac.node));
    }
    let shares = |word: &Disconnected| *word == Disconnected::Share;
    if cac.nodes.is_empty()
        && (shares(&cac.disconnected) || raw.scopes.iter().any(|(_, scope)| scope.disconnected.fixed().is_some_and(shares)))
    {
        findings.cross(
            "cac.nodes",
            &["cac.disconnected"],
            &cac.nodes,
            "must name all nodes of the cluster where limits are shared among them",
        );
    }
    match cac.cs.len() {
        0 => findings.cross("cac.cs", &["cac.mode"], &cac.cs, "must say where the central node is"),
        2 if cac.cs.first() == cac.cs.get(1) => findings.cross("cac.cs[2]", &["cac.cs"], &cac.cs, "must differ from the first one"),
        _ => {}
    }
    let far = cac.cs.iter().any(|address| !address.ip().is_loopback());
    check_keys(cac, far, findings);
    if cac.secret_key.is_some() != cac.cs_key.is_some() {
        findings.cross("cac.cs_key", &["cac.secret_key"], &cac.cs_key, "must be given with cac.secret_key, and only then");
    }
}

fn check_central(cac: &Cac, findings: &mut Findings<'_>) {
    if cac.listen.is_empty() {
        findings.cross("cac.listen", &["cac.mode"], &cac.listen, "must say where the central node listens");
    }
    let far = cac.listen.iter().any(|address| !address.ip().is_loopback());
    check_keys(cac, far, findings);
    if !cac.plain && cac.etcd.iter().any(|address| !address.ip().is_loopback()) {
        let problem =
            "must be on loopback: whoever can write to etcd says who leads, and it is spoken to without keys; cac.plain = true allows it";
        findings.cross("cac.etcd", &["cac.plain"], &cac.etcd, problem);
    }
    let wanted = if cac.secret_key.is_some() { cac.nodes.len() } else { 0 };
    if cac.node_keys.len() != wanted {
        let problem = format!("must be {wanted} keys: one for each of cac.nodes with cac.secret_key, none without");
        findings.cross("cac.node_keys", &["cac.nodes", "cac.secret_key"], &cac.node_keys, problem);
    }
    for (place, node) in cac.nodes.iter().enumerate() {
        if cac.nodes.iter().take(place).any(|other| other == node) {
            findings.cross(&format!("cac.nodes[{}]", place + 1), &["cac.nodes"], node, "must differ from those before it");
        }
    }
}

fn check_keys(cac: &Cac, far: bool, findings: &mut Findings<'_>) {
    if far && cac.secret_key.is_none() && !cac.plain {
        let problem = "must be a file beyond loopback: without keys anybody on the network may be a node; cac.plain = true allows that";
        findings.cross("cac.secret_key", &["cac.plain"], &cac.secret_key, problem);
    }
}

/// Keys of `[cac]` that the file gives and that mean nothing in its mode, for `tollgate check`.
fn idle_keys(cac: &Cac) -> Vec<String> {
    let meant: &[&str] = match cac.mode {
        CacMode::Off => &[],
        CacMode::Local => &["decide_within"],
        CacMode::Cluster => &["node", "cs", "nodes", "disconnected", "decide_within", "secret_key", "cs_key", "plain"],
        CacMode::Central if cac.etcd.is_empty() => {
            &["listen", "nodes", "disconnected", "decide_within", "forget_after", "learn_for", "secret_key", "node_keys", "plain"]
        }
        CacMode::Central => &[
            "listen",
            "nodes",
            "disconnected",
            "decide_within",
            "forget_after",
            "learn_for",
            "secret_key",
            "node_keys",
            "plain",
            "etcd",
            "cluster",
            "lease",
        ],
    };
    let given = cac.show().into_iter().filter(|(setting, value)| (setting.default)().is_some_and(|default| default != *value));
    given
        .filter(|(setting, _)| setting.key != "mode" && !meant.contains(&setting.key))
        .map(|(setting, _)| format!("cac.{}", setting.key))
        .collect()
}

/// Keys of `[cac]` that are given and do nothing, as a note; `None` when all that is given means something.
pub fn idle_note(cac: &Cac) -> Option<String> {
    let keys = idle_keys(cac);
    let mode = format!("{:?}", cac.mode).to_lowercase();
    (!keys.is_empty()).then(|| format!("without effect where cac.mode is \"{mode}\": {}", keys.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    const SCOPE: &str = "[[scope]]\nkind = \"pool\"\nname = \"carrier\"\ncalls = 10\n";
    const KEY: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";

    fn refusal(cac: &str) -> String {
        let (before, rest) = EMBEDDED.split_once("[cac]\n").expect("the table");
        let (_, behind) = rest.split_once("\n\n").expect("its end");
        Config::parse(&format!("{before}[cac]\n{cac}\n\n{behind}\n{SCOPE}"), "f").err().map_or(String::new(), |errors| errors.to_string())
    }

    /// A cluster is refused that could not work, or that a stranger could join.
    #[test]
    fn a_cluster_must_be_whole_and_closed_to_strangers() {
        assert_eq!(refusal("mode = \"cluster\"\nnode = 1\ncs = [\"127.0.0.1\"]"), "");
        let share = "mode = \"cluster\"\nnode = 1\ncs = [\"127.0.0.1\"]\ndisconnected = \"share\"";
        assert!(refusal(share).contains("must name all nodes"), "{}", refusal(share));
        assert_eq!(refusal(&format!("{share}\nnodes = [1, 2]")), "");
        assert_eq!(refusal("mode = \"central\"\nlisten = [\"127.0.0.1\"]\nnodes = [1, 2]"), "");
        let refused = |cac: &str, key: &str| {
            let errors = refusal(cac);
            assert!(errors.contains(key), "{cac}: {errors}");
        };
        refused("mode = \"cluster\"\ncs = [\"127.0.0.1\"]", "cac.node");
        refused("mode = \"cluster\"\nnode = 1", "cac.cs");
        assert_eq!(refusal("mode = \"cluster\"\nnode = 1\ncs = [\"127.0.0.1\", \"127.0.0.2\"]"), "");
        refused("mode = \"cluster\"\nnode = 1\ncs = [\"127.0.0.1\", \"127.0.0.1\"]", "cac.cs[2]");
        assert_eq!(refusal("mode = \"central\"\nlisten = [\"127.0.0.1\"]\netcd = [\"127.0.0.1\"]"), "");
        refused("mode = \"central\"\nlisten = [\"127.0.0.1\"]\netcd = [\"192.0.2.1\"]", "cac.etcd");
        refused("mode = \"cluster\"\nnode = 1\ncs = [\"192.0.2.1\"]", "cac.secret_key");
        assert_eq!(refusal("mode = \"cluster\"\nnode = 1\nplain = true\ncs = [\"192.0.2.1\"]"), "");
        refused("mode = \"cluster\"\nnode = 1\nsecret_key = \"/k\"\ncs = [\"192.0.2.1\"]", "cac.cs_key");
        assert_eq!(refusal(&format!("mode = \"cluster\"\nnode = 1\nsecret_key = \"/k\"\ncs_key = \"{KEY}\"\ncs = [\"192.0.2.1\"]")), "");
        refused("mode = \"cluster\"\nnode = 1\nnodes = [2, 3]\ncs = [\"127.0.0.1\"]", "cac.nodes");
        refused("mode = \"central\"", "cac.listen");
        refused("mode = \"central\"\nlisten = [\"127.0.0.1\"]\nnodes = [1, 1]", "cac.nodes[2]");
        refused("mode = \"central\"\nlisten = [\"127.0.0.1\"]\nnodes = [1]\nsecret_key = \"/k\"", "cac.node_keys");
        refused("mode = \"central\"\nlisten = [\"192.0.2.1\"]", "cac.secret_key");
    }

    /// What is given and does nothing is said, and nothing else.
    #[test]
    fn keys_without_effect_are_named() {
        let parse = |cac: &str| {
            let (before, rest) = EMBEDDED.split_once("[cac]\n").expect("the table");
            let (_, behind) = rest.split_once("\n\n").expect("its end");
            Config::parse(&format!("{before}[cac]\n{cac}\n\n{behind}\n{SCOPE}"), "f").expect("a file")
        };
        let keys = |cac: &str| super::idle_keys(&parse(cac).cac).join(" ");
        assert_eq!(keys("mode = \"local\"\ndecide_within = \"100ms\""), "");
        assert_eq!(keys("mode = \"off\"\nlearn_for = \"9s\""), "cac.learn_for");
        let cluster = "mode = \"cluster\"\nnode = 1\ncs = [\"127.0.0.1\"]";
        assert_eq!(keys(&format!("{cluster}\ndisconnected = \"closed\"")), "");
        assert_eq!(keys(&format!("{cluster}\nforget_after = \"9s\"\nlease = \"9s\"")), "cac.forget_after cac.lease");
        let central = "mode = \"central\"\nlisten = [\"127.0.0.1\"]\nlease = \"9s\"";
        assert_eq!(keys(&format!("{central}\nnode = 4")), "cac.node cac.lease");
        assert_eq!(keys(&format!("{central}\netcd = [\"127.0.0.1\"]")), "");
        assert!(super::idle_note(&parse(central).cac).is_some_and(|note| note.contains("\"central\": cac.lease")));
    }
}
