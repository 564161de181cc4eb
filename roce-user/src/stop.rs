//! The wish to stop: by signal, by key, or because the output was closed. Sleepers wake at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal};

/// Shared by everything that waits.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks everyone to stop.
    pub fn now(&self) {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until then; `false` if the wish to stop came first.
    pub fn sleep_until(&self, then: Instant) -> bool {
        let mut stopped = self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *stopped {
                return false;
            }
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            stopped = self.0.changed.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Turns SIGINT, SIGTERM, SIGHUP and SIGQUIT into this wish. To be called before any other thread is started:
    /// the signals are blocked here, and threads inherit that.
    /// `others` are watched as well and mean no end. All are told to `then`.
    pub fn on_signals(&self, others: &[Signal], then: impl Fn(Signal) + Send + 'static) -> nix::Result<()> {
        const ENDS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
        let signals: SigSet = ENDS.iter().chain(others).copied().collect();
        signals.thread_block()?;
        let stop = self.clone();
        std::thread::spawn(move || {
            while let Ok(s) = signals.wait() {
                if ENDS.contains(&s) {
                    stop.now();
                }
                then(s);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sleeper_wakes_when_it_is_set() {
        let stop = Stop::default();
        let far = Instant::now() + Duration::from_hours(1);
        let sleeper = {
            let stop = stop.clone();
            std::thread::spawn(move || stop.sleep_until(far))
        };
        stop.now();
        assert!(!sleeper.join().expect("the sleeper does not panic"));
        assert!(!stop.sleep_until(Instant::now()));
    }

    #[test]
    fn time_that_has_passed_is_not_waited_for() {
        assert!(Stop::default().sleep_until(Instant::now()));
    }
}
