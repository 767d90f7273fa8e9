//! Conversations that are kept: listing, searching, showing, exporting, forking, deleting.

use std::fmt::Write as _;

use serde_json::json;

use super::super::audit::time;
use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths};
use super::ChatCommand;
use conductor_api::client::Client;
use conductor_api::types::ConversationEvents;
use conductor_chat::costs::dollars;
use conductor_chat::record::{ChatEvent, Outcome, Recorded};
use conductor_chat::store::{ConversationQuery, ConversationView};
use conductor_terminal::{self as terminal, Lines, Table, outln};

pub(super) fn run(places: &Paths, command: &ChatCommand) -> CommandResult {
    let client = Client::new(&places.home);
    match command {
        ChatCommand::List(output) => list(&client, None, output.json),
        ChatCommand::Search { words, output } => list(&client, Some(words), output.json),
        ChatCommand::Show { id, output } | ChatCommand::Export { id, output } => {
            let (view, events) = read(&client, *id)?;
            if output.json {
                terminal::json(&json!({ "conversation": view, "events": events }))?;
            } else if matches!(command, ChatCommand::Export { .. }) {
                terminal::document(&markdown(&view, &events));
            } else {
                let mut lines = Lines::new();
                lines.push_text("", &markdown(&view, &events));
                terminal::print(&lines);
            }
            Ok(())
        }
        ChatCommand::Fork { id, through, output } => {
            let fork = client.fork_conversation(*id, *through)?;
            if output.json {
                terminal::json(&fork)?;
            } else {
                outln!("conversation {}; go on with: conductor chat --conversation {}", fork.id, fork.id);
            }
            Ok(())
        }
        ChatCommand::Delete { id, yes } => {
            let view = client.conversation(*id)?;
            let question = format!("Delete the conversation {id}, {:?}?", view.title);
            if plan::agrees(&question, &Agreed::said(*yes))? {
                client.delete_conversation(*id)?;
            }
            Ok(())
        }
    }
}

fn list(client: &Client, search: Option<&str>, as_json: bool) -> CommandResult {
    let query = ConversationQuery { limit: None, search: search.map(str::to_owned) };
    let views = client.conversations(&query)?;
    if as_json {
        terminal::json(&views)?;
        return Ok(());
    }
    if views.is_empty() {
        outln!("there is no conversation{}", if search.is_some() { " in which that was said" } else { "" });
        return Ok(());
    }
    let mut table = Table::new(["CHAT", "CHANGED", "TITLE", if search.is_some() { "FOUND" } else { "" }]);
    for ConversationView { id, changed, title, found, .. } in &views {
        let changed = time(i64::try_from(*changed).unwrap_or(i64::MAX));
        table.row([id, &changed, title, &found.as_deref().unwrap_or_default()]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn read(client: &Client, id: u64) -> Result<(ConversationView, Vec<Recorded>), Failure> {
    let view = client.conversation(id)?;
    let mut events = Vec::new();
    client.conversation_events(id, &ConversationEvents::default(), |one| {
        events.push(one);
        true
    })?;
    Ok((view, events))
}

/// A conversation for people. What tools said is quoted.
fn markdown(view: &ConversationView, events: &[Recorded]) -> String {
    let mut text = format!("# {}\n", view.title);
    let mut is_saying = false;
    for one in events {
        let says = matches!(one.event, ChatEvent::Text { .. });
        if is_saying && !says && !matches!(one.event, ChatEvent::Reasoning { .. } | ChatEvent::ReasoningEnded { .. }) {
            text.push('\n');
            is_saying = false;
        }
        // Writing to a string does not fail.
        let _ = match &one.event {
            ChatEvent::Message { text: said } => write!(text, "\n## You\n\n{said}\n"),
            ChatEvent::Asked { model } => write!(text, "\n## {model}\n\n"),
            ChatEvent::Text { text: said } => {
                is_saying = true;
                write!(text, "{said}")
            }
            ChatEvent::Call { tool, args, .. } => writeln!(text, "- called `{tool}` with `{args}`"),
            ChatEvent::CallEnded { tool, result, failed, .. } => {
                let what = if *failed { "failed" } else { "returned" };
                let quoted = terminal::excerpt_lines(result, 2000).replace('\n', "\n  > ");
                writeln!(text, "- `{tool}` {what}:\n  > {quoted}")
            }
            ChatEvent::Approval { asked, .. } => {
                writeln!(text, "- asked whether to call `{}`, which {}", asked.tool, asked.effect)
            }
            ChatEvent::ApprovalDecided { agreed, .. } => {
                writeln!(text, "- you {} to it", if *agreed { "agreed" } else { "did not agree" })
            }
            ChatEvent::Plan { plan, description, .. } if description.is_empty() => {
                writeln!(text, "- proposed the plan `{plan}`")
            }
            ChatEvent::Plan { plan, description, .. } => writeln!(text, "- proposed the plan `{plan}`: {description}"),
            ChatEvent::PlanDecided { plan, outcome } => writeln!(text, "- the plan `{plan}`: {}", outcome.as_str()),
            ChatEvent::Notification { feature, text: said, .. } => {
                let quoted = terminal::excerpt_lines(said, 2000).replace('\n', "\n  > ");
                writeln!(text, "- `{feature}` notified:\n  > {quoted}")
            }
            ChatEvent::ModelFailed { error, .. } => writeln!(text, "- gave no answer: {error}"),
            ChatEvent::Answered { usage, cost, estimated, prices_as_of, .. } => {
                let mut cost = cost.map_or("at an unknown price".to_owned(), dollars);
                if let Some(day) = prices_as_of {
                    cost += &format!(" by prices as of {day}");
                }
                let about = if *estimated { "estimated: " } else { "" };
                writeln!(text, "\n*{about}{} tokens read, {} written, {cost}*", usage.input, usage.output)
            }
            ChatEvent::TurnEnded { outcome, why } if *outcome != Outcome::Done => {
                writeln!(text, "\n*The turn ended early: {}*", why.as_deref().unwrap_or("it was cancelled"))
            }
            _ => Ok(()),
        };
    }
    text
}
