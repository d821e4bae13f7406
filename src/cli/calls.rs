//! `tollgate cac dump` and `restore`: the calls of a gateway, for its next life.

use super::{ask, print, read};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tollgate::host::clock::{self, Clock};
use tollgate::host::cluster::saved::{self, Saved};
use tollgate::host::control::protocol::{Request, What};
use tollgate::host::control::socket;
use tollgate::host::control::view::Body;

/// Prints the calls of a gateway: asked of itself, or of the central node, which knows them even when the gateway is gone.
pub fn dump(socket: &Path, node: Option<u32>) -> Result<ExitCode> {
    let ask = |request: &Request| ask::exchange(socket, request).map(|(response, _)| response.body);
    let its = match ask(&Request::Show { what: What::Cac, name: None, state: None })? {
        Body::Cac(admission) => admission.link.map(|link| link.node).context("this gateway is in no cluster")?,
        Body::Cluster(cluster) => {
            let node = node.context("this is the central node: --node says whose calls")?;
            let row = cluster.nodes.iter().find(|row| row.node == node);
            let row = row.with_context(|| format!("there is no node {node} here: it has not told of any call, or is forgotten"))?;
            if row.state == "lost" && row.calls == 0 {
                bail!("node {node} is lost, and no call of it counts here");
            }
            node
        }
        _ => bail!("the answer cannot be read; is it of another version?"),
    };
    if node.is_some_and(|node| node != its) {
        bail!("this is node {its}");
    }
    let (mut calls, mut after) = (Vec::new(), None);
    loop {
        let Body::Calls(page) = ask(&Request::Calls { node: its, after })? else {
            bail!("the answer cannot be read; is it of another version?")
        };
        calls.extend(page.rows);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    print(&serde_json::to_string(&Saved { node: its, calls, ..Saved::default() })?)?;
    Ok(ExitCode::SUCCESS)
}

/// Puts them where the next start of the gateway takes them.
pub fn restore(config: Option<&Path>, socket: Option<PathBuf>, file: &Path, seconds: u64) -> Result<ExitCode> {
    let config = read(config)?;
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    let running = socket.unwrap_or_else(|| socket::path(&config));
    let now = clock::wall_s(&Clock::new());
    print(&saved::restore(&config, &running, &text, Duration::from_secs(seconds), now)?)?;
    Ok(ExitCode::SUCCESS)
}
