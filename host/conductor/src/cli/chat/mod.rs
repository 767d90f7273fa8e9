//! `conductor chat`: talks with a model about this host; plans and calls that need a person are decided here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Subcommand};

use super::{CommandResult, Failure, Output, Paths, models, plan, signals, tool};
use conductor_api::client::Client;
use conductor_api::types::{ApprovalAnswer, ConversationEvents, Say};
use conductor_chat::record::{Approval, ChatEvent, Outcome};
use conductor_host::control::confirmation::Confirmation;
use conductor_terminal::editor::{LineEditor, Typed};
use conductor_terminal::{self as terminal, Progress, errln};

use commands::{Next, PLAN};
use shown::Shown;

mod commands;
mod kept;
mod shown;

/// The file in the home that remembers the lines of before.
const HISTORY: &str = "chat_history";

#[derive(Debug, Args)]
pub(super) struct ChatArguments {
    /// What to say, for one turn; without it you talk in the terminal
    text: Option<String>,
    /// The model, by its name under [models] [default: as [chat] says]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Go on with this conversation
    #[arg(long, value_name = "NUMBER")]
    conversation: Option<u64>,
    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<ChatCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ChatCommand {
    /// List conversations, the last changed first
    List(Output),
    /// List the conversations in which one message has all these words, of the last one its beginning
    Search {
        /// The words
        words: String,
        #[command(flatten)]
        output: Output,
    },
    /// Show a conversation
    Show {
        /// Its number
        id: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Print a conversation as Markdown, or as JSON with everything in it
    Export {
        /// Its number
        id: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Begin another conversation with what was said in this one; both go on for themselves
    Fork {
        /// Its number
        id: u64,
        /// Only up to the event with this number, as `chat show ID --json` has them [default: all]
        #[arg(long, value_name = "NUMBER")]
        through: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Delete a conversation; what it cost is kept
    Delete {
        /// Its number
        id: u64,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn run(places: &Paths, arguments: &ChatArguments) -> CommandResult {
    let ChatArguments { text, model, conversation, json, command } = arguments;
    if let Some(command) = command {
        return kept::run(places, command);
    }
    if text.is_none() && !terminal::is_interactive() {
        return Err(Failure::Wrong(
            "conductor: say something: conductor chat \"TEXT\"; or run it in a terminal".into(),
        ));
    }
    let client = Client::new(&places.home);
    let id = match conversation {
        Some(id) => client.conversation(*id)?.id,
        None => client.begin_conversation(model.as_deref())?.id,
    };
    let mut talk = Talk {
        places,
        client,
        id,
        model: model.clone(),
        json: *json,
        has_prompt: text.is_none(),
        turn: Arc::default(),
        shown: Shown::default(),
    };
    talk.end_turns_by_signals()?;
    match text {
        Some(text) => talk.turn(text)?.into_result(),
        None => talk.in_terminal(),
    }
}

/// How a turn ended.
struct TurnEnd {
    outcome: Outcome,
    why: Option<String>,
    /// Whether a signal cancelled it, if it was cancelled.
    by_signal: bool,
}

impl TurnEnd {
    fn into_result(self) -> CommandResult {
        let Self { outcome, why, by_signal } = self;
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Cancelled if by_signal => Err(Failure::Interrupted(ended(outcome, why.as_deref()))),
            _ => Err(Failure::Failed(anyhow::anyhow!("{}", ended(outcome, why.as_deref())))),
        }
    }
}

/// How a turn ended, for people.
fn ended(outcome: Outcome, why: Option<&str>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    match outcome {
        Outcome::Done => "the turn is over".to_owned(),
        Outcome::Cancelled => "the turn was cancelled".to_owned(),
        Outcome::Short => format!("the answer was cut short{why}"),
        Outcome::Limit => format!("the turn reached a limit{why}"),
        Outcome::Failed => format!("there is no answer{why}"),
        Outcome::CutOff => format!("the host ended in the middle of the turn{why}"),
    }
}

/// Whether nothing of an event is on the terminal: a person still waits.
fn shows_nothing(event: &ChatEvent) -> bool {
    matches!(event, ChatEvent::Reasoning { .. } | ChatEvent::ReasoningEnded { .. } | ChatEvent::CallBegun { .. })
}

/// A conversation at a terminal, or of one turn.
struct Talk<'p> {
    places: &'p Paths,
    client: Client,
    id: u64,
    /// The model to go on with, once.
    model: Option<String>,
    json: bool,
    /// Whether it goes on at a prompt, where commands are typed.
    has_prompt: bool,
    /// The conversation whose turn is under way; 0 if none is, or a signal has it cancelled.
    turn: Arc<AtomicU64>,
    shown: Shown,
}

impl Talk<'_> {
    /// Has Ctrl-C end the turn that is under way, and the program where none is, or when it comes again.
    fn end_turns_by_signals(&self) -> CommandResult {
        let (sender, asked) = crossbeam_channel::unbounded();
        signals::listen(sender, |_| ())?;
        let (turn, client) = (Arc::clone(&self.turn), self.client.clone());
        std::thread::Builder::new().name("cancel".into()).spawn(move || {
            for () in asked {
                let id = turn.swap(0, Ordering::SeqCst);
                if id == 0 || client.cancel_turn(id).is_err() {
                    std::process::exit(signals::INTERRUPTED.into());
                }
            }
        })?;
        Ok(())
    }

    fn in_terminal(&mut self) -> CommandResult {
        errln!("conversation {}; /help lists what you can do", self.id);
        if self.client.models()?.is_empty() {
            models::none().iter().for_each(|line| errln!("{line}"));
            errln!("do that in another terminal, and go on here");
        }
        let mut editor = LineEditor::open(&self.places.home.join(HISTORY), &commands::WORDS)?;
        loop {
            let line = match editor.read("> ")? {
                Typed::Line(line) => line,
                Typed::Interrupted => {
                    errln!("(Ctrl-D or /quit ends)");
                    continue;
                }
                Typed::End => break,
            };
            match self.command(&line)? {
                Next::Read => {}
                Next::Quit => break,
                // What went wrong is said, and the conversation goes on.
                Next::Say => match self.turn(&line) {
                    Ok(TurnEnd { outcome: Outcome::Done, .. }) => {}
                    Ok(TurnEnd { outcome, why, .. }) => errln!("({})", ended(outcome, why.as_deref())),
                    Err(Failure::Failed(error)) => errln!("{error:#}"),
                    Err(other) => return Err(other),
                },
            }
        }
        errln!("go on with: conductor chat --conversation {}", self.id);
        Ok(())
    }

    /// Says something, shows the answer as it comes, and has the person decide what it asks for.
    fn turn(&mut self, text: &str) -> Result<TurnEnd, Failure> {
        let say = Say { text: text.to_owned(), model: self.model.take() };
        let after = self.client.say(self.id, &say)?.after;
        self.turn.store(self.id, Ordering::SeqCst);
        let (mut plans, mut end, mut failed) = (Vec::new(), None, None);
        let mut waiting = None;
        let client = self.client.clone();
        let which = ConversationEvents { after, follow: true };
        let followed = client.conversation_events(self.id, &which, |one| {
            if self.json {
                if terminal::try_json_line(&one).is_err() {
                    return false;
                }
            } else {
                if !shows_nothing(&one.event) {
                    waiting = None;
                }
                self.shown.event(&one);
                if let ChatEvent::Asked { model } = &one.event {
                    waiting = Some(Progress::waiting(format_args!("waiting for {model}")));
                }
            }
            match one.event {
                ChatEvent::Plan { plan, .. } => plans.push(plan),
                ChatEvent::Approval { asked, .. } => failed = self.decide(asked).err(),
                ChatEvent::TurnEnded { outcome, why } => end = Some((outcome, why)),
                _ => {}
            }
            end.is_none() && failed.is_none()
        });
        drop(waiting);
        let by_signal = self.turn.swap(0, Ordering::SeqCst) == 0;
        if let Some(failed) = failed {
            return Err(failed);
        }
        followed?;
        for id in plans {
            if terminal::is_interactive() && !self.json {
                let later = if self.has_prompt { PLAN } else { plan::APPLY };
                plan::offer(self.places, &id, later)?;
            } else {
                errln!("a plan waits for a person: `conductor plan show {id}`");
            }
        }
        let (outcome, why) =
            end.ok_or_else(|| Failure::Failed(anyhow::anyhow!("the host stopped before the turn ended")))?;
        Ok(TurnEnd { outcome, why, by_signal })
    }

    /// Has a person agree to a call, or not. Rejected if there is no terminal.
    fn decide(&self, asked: Approval) -> CommandResult {
        let Approval { id, tool, effect, shown, phrase, expires_in_ms } = asked;
        let confirmation = Confirmation { id, expires_in_ms, tool, effect, shown, phrase };
        let agreed = terminal::is_interactive() && tool::agreed(&confirmation)?;
        if !terminal::is_interactive() {
            errln!("not called: a person agrees to {} in a terminal, with `conductor chat`", confirmation.tool);
        }
        let Confirmation { id, phrase, .. } = confirmation;
        let answer = ApprovalAnswer { id, agreed, phrase: phrase.filter(|_| agreed) };
        match self.client.approve(self.id, &answer) {
            Ok(()) => Ok(()),
            // It came too late: the turn says so itself.
            Err(error) => {
                errln!("{error}");
                Ok(())
            }
        }
    }
}
