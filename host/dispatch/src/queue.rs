//! The bounded queue of a worker: its sender and its receiver.
//!
//! Jobs are few and bounded, and handing one over never waits. Commands come from the control
//! side, which may not wait for a worker that hangs either: they have a line of their own, and are
//! obeyed after every job that was handed over before them and before every job that comes later.
//!
//! A [`Release`] goes with the jobs, so that it comes after what was switched on before it. Where the
//! line is full it can't: then the worker releases everything when it has done what waits. More is
//! switched off than had to be, and nothing stays on. The same goes for a [`Job`] that would have switched
//! something off, had there been room for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use conductor_event::ModeIx;
use conductor_stdx::doorbell::{self, Doorbell, Sender};
use crossbeam_channel::{Receiver, TryRecvError, TrySendError};

use super::ledger::Release;
use super::{QUEUE_CAPACITY, Reason, WorkerCounters};

/// The way to a worker that does jobs `J` and obeys commands `O`. Clones share it.
#[derive(Debug)]
pub struct Queue<J, O = ()> {
    name: Arc<str>,
    jobs: Sender<Message<J>>,
    /// How many messages are in the line or have left it. Counted when they are in, so that a command never
    /// waits for one that found no room.
    put: Arc<AtomicUsize>,
    commands: Sender<(usize, Command<O>)>,
    counters: Arc<WorkerCounters>,
    behind: Arc<AtomicBool>,
    /// The number of the active mode, as of the last notification.
    mode: Arc<AtomicU16>,
}

impl<J, O> Clone for Queue<J, O> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            jobs: self.jobs.clone(),
            put: Arc::clone(&self.put),
            commands: self.commands.clone(),
            counters: Arc::clone(&self.counters),
            behind: Arc::clone(&self.behind),
            mode: Arc::clone(&self.mode),
        }
    }
}

#[derive(Debug)]
enum Message<J> {
    Job(J),
    Release(Release),
    /// Nothing: the worker should look whether it is behind, and what else there is.
    Look,
}

#[derive(Debug)]
enum Command<O> {
    Do(O),
    Stop,
    /// Say that everything before this is done.
    Settle(crossbeam_channel::Sender<()>),
}

/// What a worker has to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<J, O> {
    /// A job.
    Job(J),
    /// A command.
    Command(O),
    /// Switch off what has lost its owner.
    Release(Release),
    /// Switch off everything: a release found no room.
    ReleaseAll,
    /// The time that was waited until is over.
    Timeout,
    /// There is something else for it to look at.
    Look,
    /// End.
    Stop,
}

/// What a worker is asked to do.
pub trait Job {
    /// Whether it may switch something off. Where there is no room for it, that stays on.
    fn may_switch_off(&self) -> bool;
}

/// Something that holds, and that can release without being waited for.
pub trait ReleaseListener: Send + Sync {
    /// Has it switch off what has lost its owner, after the jobs that were handed over before.
    fn release(&self, release: &Release);

    /// Whether it has ended, and needs to hear of nothing any more.
    fn is_gone(&self) -> bool {
        false
    }
}

impl<J: Send, O: Send> ReleaseListener for Queue<J, O> {
    fn release(&self, release: &Release) {
        if let Release::Mode(mode) = release {
            self.mode.store(mode.0, Ordering::SeqCst);
        }
        if let Err(TrySendError::Full(_)) = self.put(Message::Release(release.clone())) {
            self.fall_behind();
        }
    }
}

impl<J, O> Queue<J, O> {
    /// A way to a worker of this name, and the worker's end of it.
    pub fn new(name: &str) -> (Self, Inbox<J, O>) {
        Self::with_capacity(name, QUEUE_CAPACITY)
    }

    /// A queue without a worker: for rules that are compiled and never used. What is put into it is gone.
    pub fn unattended(name: &str) -> Self {
        Self::with_capacity(name, 1).0
    }

    fn with_capacity(name: &str, capacity: usize) -> (Self, Inbox<J, O>) {
        let bell = Doorbell::default();
        let (jobs, jobs_in) = doorbell::bounded(capacity, &bell);
        let (commands, commands_in) = doorbell::unbounded(&bell);
        let queue = Self {
            name: name.into(),
            jobs,
            put: Arc::default(),
            commands,
            counters: Arc::default(),
            behind: Arc::default(),
            mode: Arc::default(),
        };
        let inbox = Inbox {
            bell,
            jobs: jobs_in,
            commands: commands_in,
            behind: Arc::clone(&queue.behind),
            mode: Arc::clone(&queue.mode),
            head: None,
            taken: 0,
            due: VecDeque::new(),
        };
        (queue, inbox)
    }

    /// What the worker is called: an output's target, or what it does.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What the worker has done so far.
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    /// Hands a job over without waiting.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn try_put(&self, job: J) -> Result<(), Reason>
    where
        J: Job,
    {
        self.put(Message::Job(job)).map_err(|error| {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(message) => {
                    if matches!(message, Message::Job(job) if job.may_switch_off()) {
                        self.fall_behind();
                    }
                    self.counters.queue_full.fetch_add(1, Ordering::Relaxed);
                    Reason::QueueFull
                }
                TrySendError::Disconnected(_) => Reason::Gone,
            }
        })
    }

    /// Gives a command, to be obeyed after the jobs that were handed over before. For the control side: it
    /// allocates.
    pub fn command(&self, command: O) {
        self.give(Command::Do(command));
    }

    /// Has the worker end after the jobs that were handed over before.
    pub fn stop(&self) {
        self.give(Command::Stop);
    }

    /// Waits until the worker has done all jobs and commands that were given before. False when it has not within this
    /// time, or has ended. Not for the event path.
    pub fn settle(&self, within: Duration) -> bool {
        let (settled, answer) = crossbeam_channel::bounded(1);
        self.give(Command::Settle(settled));
        answer.recv_timeout(within).is_ok()
    }

    /// Wakes the worker, behind what was handed over before: there is something else for it to look at. Waits for nothing.
    /// Where there is no room it has jobs, and looks after each.
    pub fn look(&self) {
        let _ = self.put(Message::Look);
    }

    /// Has the worker release everything when it has done what waits.
    fn fall_behind(&self) {
        self.behind.store(true, Ordering::SeqCst);
        // Should the worker have done all its jobs meanwhile, this wakes it; should there be no room
        // still, it has jobs, and looks after the last of them.
        let _ = self.put(Message::Look);
    }

    fn put(&self, message: Message<J>) -> Result<(), TrySendError<Message<J>>> {
        self.jobs.try_send(message)?;
        self.put.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn give(&self, command: Command<O>) {
        let _ = self.commands.send((self.put.load(Ordering::SeqCst), command));
    }
}

/// The worker's end.
#[derive(Debug)]
pub struct Inbox<J, O = ()> {
    bell: Doorbell,
    jobs: Receiver<Message<J>>,
    commands: Receiver<(usize, Command<O>)>,
    behind: Arc<AtomicBool>,
    mode: Arc<AtomicU16>,
    /// What is next in the line of jobs, if it was looked at.
    head: Option<Message<J>>,
    /// How many messages were done so far.
    taken: usize,
    /// Orders, with how many messages were put before them.
    due: VecDeque<(usize, Command<O>)>,
}

impl<J, O> Inbox<J, O> {
    /// The mode that is active now, whether or not the release for it was taken yet; the first one before
    /// the first change.
    pub fn mode(&self) -> ModeIx {
        ModeIx(self.mode.load(Ordering::SeqCst))
    }

    /// Waits for what is to be done next, until `deadline` at most where there is one. One thread does.
    pub fn next(&mut self, deadline: Option<Instant>) -> Next<J, O> {
        loop {
            // The job first: whatever was ordered before it was handed over shows after that.
            self.head = self.head.take().or_else(|| self.jobs.try_recv().ok());
            let is_alone = self.take_commands();
            if let Some((_, command)) = self.due.pop_front_if(|(before, _)| *before <= self.taken) {
                match command {
                    Command::Do(command) => return Next::Command(command),
                    Command::Stop => return Next::Stop,
                    // The one that waits may have gone.
                    Command::Settle(settled) => drop(settled.try_send(())),
                }
                continue;
            }
            if let Some(message) = self.head.take() {
                return self.take(message);
            }
            if self.behind.swap(false, Ordering::SeqCst) {
                return Next::ReleaseAll;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Next::Timeout;
            }
            // The queue of jobs ends before that of commands, and then there is nothing left to wait for.
            if is_alone && self.jobs.is_empty() && self.due.is_empty() {
                return Next::Stop;
            }
            // Why it wakes shows above.
            self.bell.wait(deadline);
        }
    }

    /// Takes in the commands that came, and says whether none can come any more.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.due.push_back(command),
                Err(error) => return error == TryRecvError::Disconnected,
            }
        }
    }

    fn take(&mut self, message: Message<J>) -> Next<J, O> {
        self.taken += 1;
        match message {
            Message::Job(job) => Next::Job(job),
            Message::Release(release) => Next::Release(release),
            Message::Look => Next::Look,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Numbers from here on switch something off.
    const OFF: u32 = 1_000_000;

    impl Job for u32 {
        fn may_switch_off(&self) -> bool {
            *self >= OFF
        }
    }

    fn next<O>(inbox: &mut Inbox<u32, O>) -> Next<u32, O> {
        inbox.next(Some(Instant::now() + Duration::from_secs(20)))
    }

    #[test]
    fn a_command_comes_after_the_jobs_before_it_and_before_those_that_come_later() {
        let (queue, mut inbox) = Queue::new("w");
        queue.try_put(1).unwrap();
        queue.command('a');
        queue.try_put(2).unwrap();
        assert_eq!(next(&mut inbox), Next::Job(1));
        assert_eq!(next(&mut inbox), Next::Command('a'));
        assert_eq!(next(&mut inbox), Next::Job(2));
        queue.stop();
        queue.try_put(3).unwrap();
        assert_eq!(next(&mut inbox), Next::Stop);
    }

    #[test]
    fn settling_waits_for_what_was_given_before() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        let worker = std::thread::spawn(move || {
            let mut done = Vec::new();
            loop {
                match next(&mut inbox) {
                    Next::Job(number) => done.push(number),
                    Next::Stop => return done,
                    other => panic!("{other:?}"),
                }
            }
        });
        (0..100).for_each(|number| queue.try_put(number).unwrap());
        assert!(queue.settle(Duration::from_secs(20)));
        queue.stop();
        assert_eq!(worker.join().unwrap().len(), 100);
        assert!(!queue.settle(Duration::from_secs(20)), "it has ended");
        assert!(!Queue::<u32>::unattended("w").settle(Duration::from_secs(20)));
    }

    // What gives a command and then a job, from one thread, finds both done in this order, however the
    // worker is woken: a port that was just attached is there for the first message.
    #[test]
    fn a_command_is_obeyed_before_a_job_that_follows_it() {
        let (queue, mut inbox) = Queue::new("w");
        let worker = std::thread::spawn(move || {
            let mut last = 0;
            loop {
                match next(&mut inbox) {
                    Next::Command(number) => last = number,
                    Next::Job(number) => assert_eq!(number, last, "the command came after its job"),
                    _ => return last,
                }
            }
        });
        for number in 1..=20_000_u32 {
            queue.command(number);
            while queue.try_put(number).is_err() {
                std::thread::yield_now();
            }
        }
        queue.stop();
        assert_eq!(worker.join().unwrap(), 20_000);
    }

    #[test]
    fn a_release_stays_in_line() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        queue.try_put(1).unwrap();
        queue.release(&Release::Mode(ModeIx(1)));
        queue.try_put(2).unwrap();
        assert_eq!(next(&mut inbox), Next::Job(1));
        assert_eq!(next(&mut inbox), Next::Release(Release::Mode(ModeIx(1))));
        assert_eq!(next(&mut inbox), Next::Job(2));
    }

    // At 12 000 events a second, a worker that gets no processor for 200 ms loses nothing.
    #[test]
    fn a_worker_that_gets_no_processor_for_a_while_loses_nothing() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        let behind = 12_000 / 5;
        (0..behind).for_each(|n| queue.try_put(n).unwrap());
        (0..behind).for_each(|n| assert_eq!(next(&mut inbox), Next::Job(n)));
        assert_eq!(queue.counters().queue_full.load(Ordering::Relaxed), 0);
    }

    // ENG-10: what has no room is not lost.
    #[test]
    fn a_release_that_finds_no_room_releases_everything_in_the_end() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        for n in 0..u32::try_from(QUEUE_CAPACITY).unwrap() {
            queue.try_put(n).unwrap();
        }
        assert_eq!(queue.try_put(0), Err(Reason::QueueFull));
        queue.release(&Release::Mode(ModeIx(1)));
        for n in 0..u32::try_from(QUEUE_CAPACITY).unwrap() {
            assert_eq!(next(&mut inbox), Next::Job(n));
        }
        assert_eq!(next(&mut inbox), Next::ReleaseAll);
        assert_eq!(inbox.mode(), ModeIx(1));
        assert_eq!(inbox.next(Some(Instant::now())), Next::Timeout);
        assert_eq!(queue.counters().queue_full.load(Ordering::Relaxed), 1);
    }

    // ENG-10: a note's end that has no room is not lost, either.
    #[test]
    fn a_job_that_switches_off_and_finds_no_room_releases_everything_in_the_end() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        let full = u32::try_from(QUEUE_CAPACITY).unwrap();
        for (last, expected) in [(0, Next::Timeout), (OFF, Next::ReleaseAll)] {
            (0..full).for_each(|n| queue.try_put(n).unwrap());
            assert_eq!(queue.try_put(last), Err(Reason::QueueFull));
            (0..full).for_each(|n| assert_eq!(next(&mut inbox), Next::Job(n)));
            assert_eq!(inbox.next(Some(Instant::now())), expected);
        }
    }

    #[test]
    fn a_worker_whom_nobody_can_reach_ends() {
        let (queue, mut inbox) = Queue::<u32, char>::new("w");
        queue.try_put(1).unwrap();
        drop(queue);
        assert_eq!(next(&mut inbox), Next::Job(1));
        assert_eq!(next(&mut inbox), Next::Stop);
    }
}
