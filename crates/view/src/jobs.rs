//! Work between requests: searches, statistics, verification.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A job ends this long after the last request.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// Number of jobs of a kind whose results are kept. The one that was asked for longest ago is dropped.
const KEPT: usize = 4;

/// State that a job changes while requests wait for a change.
#[derive(Debug, Default)]
pub(crate) struct Shared<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Shared<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the requests that wait.
    pub(crate) fn change(&self, f: impl FnOnce(&mut T)) {
        f(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the state changes, at most `limit`.
    pub(crate) fn wait(&self, limit: Duration, mut has_changed: impl FnMut(&T) -> bool) -> MutexGuard<'_, T> {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |state| !has_changed(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A job, its state, and the time of the last request.
#[derive(Debug)]
pub(crate) struct Job<T> {
    pub(crate) shared: Shared<T>,
    asked: Mutex<Instant>,
    stopped: AtomicBool,
    ended: AtomicBool,
}

impl<T> Job<T> {
    /// Returns true if the job should end: it was dropped, or nothing was asked for a while.
    pub(crate) fn is_stopped(&self) -> bool {
        if self.stopped.load(Relaxed) {
            return true;
        }
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.elapsed() > IDLE {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Returns true if the thread of the job has ended.
    #[cfg(test)]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The jobs of a kind, by a key.
#[derive(Debug, Default)]
pub(crate) struct Jobs<T> {
    jobs: Mutex<Vec<(String, Arc<Job<T>>)>>,
}

impl<T: Default + Send + 'static> Jobs<T> {
    /// Returns the job of a key. Without one, or if it was stopped, a thread starts `run`, and then records
    /// the end with `end`, which gets the text of an error or of a panic.
    pub(crate) fn ask(
        &self,
        key: &str,
        run: impl FnOnce(&Arc<Job<T>>) -> Result<(), String> + Send + 'static,
        end: fn(&mut T, Option<String>),
    ) -> Arc<Job<T>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = jobs.iter().position(|(other, _)| other == key) {
            let (key, job) = jobs.remove(at);
            // A job that was stopped before its end has a part of the result. One that came to its end keeps
            // its result.
            let is_complete = job.ended.load(Relaxed) && !job.stopped.load(Relaxed);
            if is_complete || !job.is_stopped() {
                job.ask();
                jobs.push((key, Arc::clone(&job)));
                return job;
            }
        }
        let job = Arc::new(Job {
            shared: Shared::default(),
            asked: Mutex::new(Instant::now()),
            stopped: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        jobs.push((key.to_owned(), Arc::clone(&job)));
        while jobs.len() > KEPT {
            jobs.remove(0).1.stop();
        }
        let worker = Arc::clone(&job);
        let started = std::thread::Builder::new().name("tfseek-view-job".into()).spawn(move || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&worker)));
            let panicked = |_| Err("the work ended with a panic, which is a bug of tfseek".to_owned());
            let error = outcome.unwrap_or_else(panicked).err();
            worker.shared.change(|state| end(state, error));
            worker.ended.store(true, Relaxed);
        });
        if started.is_err() {
            job.stop();
        }
        job
    }

    /// Stops all jobs.
    pub(crate) fn stop(&self) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.drain(..).for_each(|(_, job)| job.stop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_shared_by_its_key_and_the_oldest_is_stopped() {
        let jobs: Jobs<u32> = Jobs::default();
        let ask = |key: &str| {
            let run = |job: &Arc<Job<u32>>| {
                job.shared.change(|n| *n += 1);
                while !job.is_stopped() {
                    std::thread::yield_now();
                }
                Ok(())
            };
            jobs.ask(key, run, |_, _| ())
        };
        let first = ask("a");
        assert!(Arc::ptr_eq(&first, &ask("a")));
        assert_eq!(*first.shared.wait(Duration::from_secs(600), |n| *n > 0), 1);
        for key in ["b", "c", "d", "e"] {
            ask(key);
        }
        assert!(first.is_stopped() && !Arc::ptr_eq(&first, &ask("a")));
        jobs.stop();
    }

    #[test]
    fn a_panic_is_an_error_of_the_job() {
        let jobs: Jobs<Option<String>> = Jobs::default();
        let job = jobs.ask("a", |_| panic!("expected in this test"), |state, error| *state = error);
        assert!(job.shared.wait(Duration::from_secs(600), Option::is_some).is_some());
    }
}
