//! A world driven step by step: commands of one agent and what came back.

use super::actor::Mail;
use super::reply::Reply;
use super::world::World;
use std::net::SocketAddr;
use std::time::Duration;

impl World {
    /// Sends one command of the agent at 192.0.2.1:2727 with a fresh transaction id: the id. `parameters` are lines without their ends.
    pub fn command(&mut self, verb: &str, local: &str, parameters: &[&str]) -> u32 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_from(agent(), 0, &compose(verb, id, local, parameters));
        id
    }

    /// Sends a command and waits for its final, at most 60 s.
    ///
    /// # Panics
    /// When none comes.
    pub fn ask(&mut self, verb: &str, local: &str, parameters: &[&str]) -> Reply {
        let id = self.command(verb, local, parameters);
        self.final_of(id)
    }

    /// Waits for the final of a transaction, at most 60 s.
    ///
    /// # Panics
    /// When none comes.
    pub fn final_of(&mut self, id: u32) -> Reply {
        let end = self.now + Duration::from_secs(60);
        loop {
            if let Some(reply) = self.replies.get(&id).and_then(|replies| replies.iter().find(|reply| reply.is_final())) {
                return reply.clone();
            }
            assert!(self.step_until(end), "no final for {id}; mail: {:?}", self.mail);
        }
    }

    /// Every response to a transaction so far, in order.
    pub fn replies_to(&self, id: u32) -> Vec<Reply> {
        self.replies.get(&id).cloned().unwrap_or_default()
    }

    /// What came to agents without an actor.
    pub fn mail(&self) -> &[Mail] {
        &self.mail
    }

    /// Takes it away.
    pub fn take_mail(&mut self) -> Vec<Mail> {
        self.replies.clear();
        std::mem::take(&mut self.mail)
    }
}

/// The address scripted commands come from.
fn agent() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 2727))
}

/// A command as bytes. An empty parameter begins the session description.
fn compose(verb: &str, id: u32, local: &str, parameters: &[&str]) -> Vec<u8> {
    let name = if local.contains('@') { local.to_owned() } else { format!("{local}@tgw.example.net") };
    let mut text = format!("{verb} {id} {name} MGCP 1.0\r\n");
    for line in parameters {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.into_bytes()
}
