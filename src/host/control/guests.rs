//! Who is let in at a socket of the control loop: a thread for each guest, bounded in number, and the newest always gets in.
//!
//! A guest that has not said yet what it wants may have nothing to say: when there is no room the one that has been silent longest is
//! sent away for the newcomer. So idle connections, however many, never keep an operator or a collector out. Deadlines of what is read
//! and written are the service's.

use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Guests at a time; those that were sent away and have not gone yet may be as many again.
pub const GUESTS_MAX: usize = 16;
/// Those that were sent away wake at once and go; a newcomer waits so long for one of them at the most.
const GOING_WITHIN: Duration = Duration::from_secs(1);
/// So long nobody is accepted after the system refused to.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A connection.
pub trait Stream: Send + Sync + 'static {
    /// Ends it; who waits for it wakes.
    fn close(&self);
}

impl Stream for UnixStream {
    fn close(&self) {
        // It may be closed already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// What guests come for.
pub trait Service<S>: Send + Sync + 'static {
    /// Serves one guest, and says `asked` when its request has come.
    fn serve(&self, stream: &S, asked: &dyn Fn());

    /// Tells one that it is not served; must not wait.
    fn refuse(&self, stream: &S);
}

/// Accepts guests on a thread of this name until `closing`.
///
/// # Errors
/// When no thread can be had.
pub fn accept<S: Stream>(
    name: &str,
    listen: impl Fn() -> io::Result<S> + Send + 'static,
    closing: Arc<AtomicBool>,
    service: impl Service<S>,
) -> Result<JoinHandle<()>> {
    let (service, guests) = (Arc::new(service), Arc::new(Guests::default()));
    let accept = move || {
        loop {
            let stream = listen();
            if closing.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => welcome(Arc::new(stream), &guests, &service),
                Err(_) => std::thread::park_timeout(ACCEPT_PAUSE),
            }
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(accept).with_context(|| format!("no thread for {name}"))
}

fn welcome<S: Stream>(stream: Arc<S>, guests: &Arc<Guests<S>>, service: &Arc<impl Service<S>>) {
    let (guest, leaves) = guests.enter(&stream);
    for leaves in [leaves, guest.is_none().then(|| stream.clone())].into_iter().flatten() {
        service.refuse(&leaves);
        leaves.close();
    }
    let Some(guest) = guest else { return };
    let service = service.clone();
    // Without a thread the stream closes, which the guest sees.
    let _ = std::thread::Builder::new().name("guest".into()).spawn(move || service.serve(&stream, &|| guest.asked()));
}

/// The guests that are there.
struct Guests<S> {
    present: Mutex<Present<S>>,
    /// One has gone.
    gone: Condvar,
}

struct Present<S> {
    count: usize,
    number: u64,
    /// Those that have not asked yet, by number, the first come first.
    silent: VecDeque<(u64, Arc<S>)>,
}

impl<S> Default for Guests<S> {
    fn default() -> Guests<S> {
        Guests { present: Mutex::new(Present { count: 0, number: 0, silent: VecDeque::new() }), gone: Condvar::new() }
    }
}

impl<S> Guests<S> {
    /// A place for `stream` if there is one, and who must leave for it.
    fn enter(self: &Arc<Self>, stream: &Arc<S>) -> (Option<Guest<S>>, Option<Arc<S>>) {
        let crowded = |present: &mut Present<S>| present.count >= 2 * GUESTS_MAX;
        let waited = self.gone.wait_timeout_while(self.lock(), GOING_WITHIN, crowded);
        let (mut present, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let leaves = match present.count {
            ..GUESTS_MAX => None,
            _ => present.silent.pop_front().map(|(_, stream)| stream),
        };
        if (present.count >= GUESTS_MAX && leaves.is_none()) || present.count >= 2 * GUESTS_MAX {
            return (None, leaves);
        }
        present.count += 1;
        present.number += 1;
        let number = present.number;
        present.silent.push_back((number, stream.clone()));
        (Some(Guest { guests: self.clone(), number }), leaves)
    }

    fn lock(&self) -> MutexGuard<'_, Present<S>> {
        // A panic of a holder leaves whole numbers.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a guest; free again when dropped.
struct Guest<S> {
    guests: Arc<Guests<S>>,
    number: u64,
}

impl<S> Guest<S> {
    /// It has asked: it is served to the end.
    fn asked(&self) {
        self.guests.lock().silent.retain(|(number, _)| *number != self.number);
    }
}

impl<S> Drop for Guest<S> {
    fn drop(&mut self) {
        self.asked();
        self.guests.lock().count -= 1;
        self.guests.gone.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silent_guest_leaves_for_a_newcomer_and_none_that_is_served() {
        let guests = Arc::new(Guests::default());
        let mut inside: Vec<_> = (0..GUESTS_MAX).map(|n| guests.enter(&Arc::new(n)).0.unwrap()).collect();
        inside[0].asked();
        let (newcomer, leaves) = guests.enter(&Arc::new(100));
        assert_eq!((newcomer.is_some(), leaves.as_deref()), (true, Some(&1)), "the first has asked");
        drop(inside.remove(1));
        // All ask: nobody leaves, nobody gets in.
        inside.extend(newcomer);
        inside.iter().for_each(Guest::asked);
        let (refused, leaves) = guests.enter(&Arc::new(101));
        assert!(refused.is_none() && leaves.is_none());
        inside.pop();
        assert!(guests.enter(&Arc::new(102)).0.is_some());
    }

    #[test]
    fn those_sent_away_that_do_not_go_are_bounded_too() {
        let guests = Arc::new(Guests::default());
        let mut inside: Vec<_> = (0..=2 * GUESTS_MAX).filter_map(|n| guests.enter(&Arc::new(n)).0).collect();
        assert_eq!(inside.len(), 2 * GUESTS_MAX);
        // One that goes lets in whoever waits for it.
        let going = inside.pop();
        let (arrives, arrived) = std::sync::mpsc::channel();
        std::thread::spawn({
            let guests = guests.clone();
            move || arrives.send(guests.enter(&Arc::new(7)).0.is_some())
        });
        drop(going);
        assert!(arrived.recv().unwrap());
    }
}
