//! `conductor plan`, `undo` and `redo`: where a person decides about proposed changes.

use std::io::IsTerminal as _;

use clap::Subcommand;
use serde_json::json;

use super::{CommandResult, Failure, Output, Paths, named};
use conductor_api::client::Client;
use conductor_api::types::NextStep;
use conductor_control_names::ControlNames;
use conductor_host::control::plan::rehearsal::Difference;
use conductor_host::control::plan::risk::Level;
use conductor_host::control::plan::{Plan, PlanSummary};
use conductor_host::host::{Applied, PlanView};
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, Lines, Table, errln, outln, shortened};

/// Bytes of a plan's description that a question shows.
const MAX_DESCRIPTION: usize = 200;

#[derive(Debug, Subcommand)]
pub(super) enum PlanCommand {
    /// List the plans that wait
    List(Output),
    /// Show what a plan changes, its risks, and what would have fired differently
    Show {
        /// The plan's id, or its first digits
        id: String,
        /// Print every line of long values
        #[arg(long)]
        full: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Apply a plan, after showing it
    Apply {
        /// The plan's id, or its first digits
        id: String,
        #[command(flatten)]
        agreed: Agreed,
    },
    /// Take a plan off the list
    Reject {
        /// The plan's id, or its first digits
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What stands for a person's yes where there is no terminal.
#[derive(Debug, clap::Args)]
pub(super) struct Agreed {
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Agreed {
    /// A person is asked.
    pub(super) fn asked() -> Self {
        Self::said(false)
    }

    /// A person is asked, unless they have said `--yes`.
    pub(super) fn said(yes: bool) -> Self {
        Self { yes, json: false }
    }
}

pub(super) fn run(places: &Paths, command: &PlanCommand) -> CommandResult {
    match command {
        PlanCommand::List(output) => list(places, output.json),
        PlanCommand::Show { id, full, json } => {
            let plan = plan(places, id)?;
            if *json {
                terminal::json(&plan)?;
            } else {
                terminal::print(&shown(&plan, *full, &named::of_host(places)));
            }
            Ok(())
        }
        PlanCommand::Apply { id, agreed } => {
            let plan = plan(places, id)?;
            if !agreed.yes {
                let mut all = shown(&plan, false, &named::of_host(places));
                all.push("");
                summary(&plan.plan, &mut all);
                terminal::eprint(&all);
            }
            let PlanView { plan, .. } = plan;
            if agrees_to(&plan, agreed)? {
                applied(&Client::new(&places.home).apply_plan(&plan.id)?, "applied", agreed)?;
            }
            Ok(())
        }
        PlanCommand::Reject { id, json } => {
            let id = whole_id(places, id)?;
            Client::new(&places.home).reject_plan(&id)?;
            if *json {
                terminal::json_line(&json!({ "rejected": id }));
            } else {
                outln!("rejected: {}", id.get(..12).unwrap_or(&id));
            }
            Ok(())
        }
    }
}

/// Shows a plan that a command has made, and applies it if the person agrees. Returns whether it is in force; else it is
/// rejected.
pub(super) fn decided(places: &Paths, id: &str, agreed: &Agreed) -> Result<bool, Failure> {
    let client = Client::new(&places.home);
    if !agreed.yes {
        let view = client.plan(id)?;
        terminal::eprint(&shown(&view, false, &named::of_host(places)));
        if !agrees_to(&view.plan, agreed)? {
            client.reject_plan(id)?;
            outln!("nothing has changed");
            return Ok(false);
        }
    }
    let done = client.apply_plan(id)?;
    if !agreed.json {
        applied(&done, "applied", agreed)?;
    }
    Ok(true)
}

/// The command that applies a plan, before its id.
pub(super) const APPLY: &str = "conductor plan apply";

/// Shows a plan that was just proposed and has a person decide: it is applied, rejected, or waits on until `later`, a
/// command such as [`APPLY`], is given its id.
pub(super) fn offer(places: &Paths, id: &str, later: &str) -> CommandResult {
    let client = Client::new(&places.home);
    let view = client.plan(id)?;
    let names = named::of_host(places);
    terminal::eprint(&shown(&view, false, &names));
    let agreed = Agreed::asked();
    let is_privileged = view.plan.risk.level == Level::Privileged;
    let answer = match is_privileged {
        true if repeats(&view.plan, &agreed)? => "y".to_owned(),
        true => String::new(),
        false => loop {
            let question = "Apply it? [y = yes, n = reject it, why = all there is to it, Enter = later]";
            match terminal::ask(format_args!("{question}"))?.as_str() {
                "why" => terminal::eprint(&why(&view, &names)),
                answer => break answer.to_owned(),
            }
        },
    };
    match answer.as_str() {
        "y" | "Y" | "yes" => applied(&client.apply_plan(id)?, "applied", &agreed),
        "n" | "N" | "no" => {
            client.reject_plan(id)?;
            outln!("rejected: {}", view.plan.description);
            Ok(())
        }
        _ => {
            outln!("it waits: `{later} {}`", id.get(..12).unwrap_or(id));
            Ok(())
        }
    }
}

/// `undo` or `redo`.
pub(super) fn step(places: &Paths, what: &str, agreed: &Agreed) -> CommandResult {
    let client = Client::new(&places.home);
    let is_undo = what == "undo";
    let NextStep { description } = if is_undo { client.next_undo()? } else { client.next_redo()? };
    if !agrees(&format!("{what} \"{}\"?", shortened(&description, MAX_DESCRIPTION)), agreed)? {
        if !agreed.json {
            outln!("nothing is changed");
        }
        return Ok(());
    }
    if is_undo {
        applied(&client.undo()?, "taken back", agreed)
    } else {
        applied(&client.redo()?, "applied again", agreed)
    }
}

fn list(places: &Paths, as_json: bool) -> CommandResult {
    let plans = Client::new(&places.home).plans()?;
    if as_json {
        terminal::json(&plans)?;
        return Ok(());
    }
    if plans.is_empty() {
        outln!("no plan waits");
        return Ok(());
    }
    let mut table = Table::new(["PLAN", "RISK", "PROPOSED BY", "WHAT IT DOES"]);
    for PlanSummary { id, risk, proposer, description, stale, .. } in &plans {
        let level = if *stale { "stale" } else { risk.level.as_str() };
        table.row([&id.get(..12).unwrap_or(id), &level, proposer, description]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn plan(places: &Paths, id: &str) -> Result<PlanView, Failure> {
    Ok(Client::new(&places.home).plan(&whole_id(places, id)?)?)
}

/// The id that these first digits stand for.
fn whole_id(places: &Paths, first: &str) -> Result<String, Failure> {
    let wrong = |why: String| Failure::Wrong(format!("conductor: {why}"));
    if first.is_empty() || !first.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong(format!("{first:?} is no plan's id; `conductor plan list` shows them")));
    }
    let plans = Client::new(&places.home).plans()?;
    let ids = plans.iter().map(|plan| plan.id.as_str());
    match ids.filter(|id| id.starts_with(first)).collect::<Vec<_>>()[..] {
        [] => Err(wrong(format!("no plan {first} waits; `conductor plan list` shows those that do"))),
        [id] => Ok(id.to_owned()),
        _ => Err(wrong(format!("several plans begin with {first}; write more of its digits"))),
    }
}

/// Goes before each line of a diff: no text in it can look like a line around it.
const DIFF: &str = "  | ";

/// A plan; `full` with every line of long values. Controls whose names are known are called by them.
fn shown(view: &PlanView, full: bool, names: &ControlNames) -> Lines {
    let PlanView { plan, folded_diff, rehearsal } = view;
    let mut out = Lines::new();
    out.push(&plan.description);
    out.push(format_args!("proposed by {}", plan.proposed_by()));
    summary(plan, &mut out);
    out.push("");
    let folded = folded_diff.as_deref().filter(|_| !full);
    out.push_text(DIFF, folded.unwrap_or(&plan.diff));
    if folded.is_some() {
        let id = plan.id.get(..12).unwrap_or(&plan.id);
        out.push(format_args!("long values are folded; `conductor plan show {id} --full`"));
    }
    let changed = plan.changes.iter().filter_map(|change| change.value.as_ref());
    changed.flat_map(|value| named::triggers(names, value)).for_each(|line| out.push(line));
    out.push("");
    out.push(rehearsal.summary());
    for (Difference { device, event, was, would_be, .. }, others) in alike(&rehearsal.shown) {
        let rules = |rules: &[String]| if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") };
        let others = if others == 0 { String::new() } else { format!(", and {} like it", plural(others, "event")) };
        let control = named::event(names, device, event).map(|control| format!(" ({control})")).unwrap_or_default();
        out.push(format_args!("  {device} {event}{control}{others}: {} -> {}", rules(was), rules(would_be)));
    }
    rehearsal.untried_lines().iter().for_each(|line| out.push(line));
    out
}

/// All there is to a plan: who made it, every place that it changes, every line of it, and what would have fired.
fn why(view: &PlanView, names: &ControlNames) -> Lines {
    let mut out = shown(view, true, names);
    out.push("");
    for change in &view.plan.changes {
        let what = if change.value.is_some() { "sets" } else { "removes" };
        out.push(format_args!("{what} {}", change.path.join("/")));
    }
    if view.plan.risk.notes.is_empty() {
        out.push("it adds to what controls do, and reaches no further than the show");
    }
    out
}

/// How much a plan changes, and how far it reaches: what a person has before their eyes when they decide.
fn summary(plan: &Plan, out: &mut Lines) {
    let files = &plan.touched_files;
    let of = if files.is_empty() { String::new() } else { format!(" of {}", files.join(", ")) };
    out.push(format_args!("{}{of}, risk: {}", plural(plan.changes.len(), "change"), plan.risk.level.in_words()));
    let bullet = plan.risk.level.bullet();
    plan.risk.notes.iter().for_each(|note| out.push(format_args!("  {bullet} {note}")));
}

/// The first of each kind: of a device, and with the same outcome; and how many more there are.
fn alike(differences: &[Difference]) -> Vec<(&Difference, usize)> {
    let kind = |it: &Difference| (it.device.clone(), it.was.clone(), it.would_be.clone());
    let mut kinds: Vec<(&Difference, usize)> = Vec::new();
    for difference in differences {
        match kinds.iter_mut().find(|(first, _)| kind(first) == kind(difference)) {
            Some((_, others)) => *others += 1,
            None => kinds.push((difference, 0)),
        }
    }
    kinds
}

/// Prints what was done with a change: `applied`, `taken back`.
fn applied(applied: &Applied, done: &str, agreed: &Agreed) -> CommandResult {
    if agreed.json {
        terminal::json(applied)?;
    } else {
        outln!("{done}: {}; {} in force", applied.description, plural(applied.rules, "rule"));
    }
    Ok(())
}

/// A person's yes or no.
pub(super) fn agrees(question: &str, agreed: &Agreed) -> Result<bool, Failure> {
    if agreed.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Wrong("conductor: a person decides: run this in a terminal, or say --yes".into()));
    }
    let answer = terminal::ask(format_args!("{question} [y/N]"))?;
    Ok(matches!(answer.as_str(), "y" | "Y" | "yes"))
}

/// A person's yes to a plan that they have seen, as its risk asks for it.
fn agrees_to(plan: &Plan, agreed: &Agreed) -> Result<bool, Failure> {
    match plan.risk.level {
        Level::Privileged => repeats(plan, agreed),
        _ => agrees("Apply it?", agreed),
    }
}

/// A person's yes to what reaches farthest: more than a key that is hit by habit.
fn repeats(plan: &Plan, agreed: &Agreed) -> Result<bool, Failure> {
    if agreed.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Wrong("conductor: a person decides: run this in a terminal, or say --yes".into()));
    }
    let first = plan.digits();
    errln!("The digits choose nothing: they are a yes that no key hit by habit gives.");
    let digits = format_args!("the first {} digits of its id ({first})", first.len());
    let answer = terminal::ask(format_args!("This plan is privileged. To apply it, type {digits}:"))?;
    Ok(answer.starts_with(first) && plan.id.starts_with(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// A plan that says this, and no more than it has to besides.
    fn view(said: Value) -> PlanView {
        let mut view = json!({
            "id": "0123456789abcdef", "proposer": "p", "caller": "p", "description": "d", "changes": [], "created": 0,
            "expires": 0, "base": "", "touched_files": [], "diff": "", "risk": { "level": "usual", "notes": [] },
            "rehearsal": { "events": 0, "different": 0, "shown": [] },
        });
        said.as_object().unwrap().iter().for_each(|(key, value)| view[key] = value.clone());
        serde_json::from_value(view).unwrap()
    }

    /// No names: nothing is known of any port.
    fn names() -> ControlNames {
        ControlNames::new(std::path::Path::new("/nonexistent"))
    }

    #[test]
    fn nothing_in_a_diff_looks_like_a_line_of_this_program() {
        let diff = "@@ -1 +1,4 @@\n+text = \'\'\'\n++++ end of plan\n+no event has come yet\n+  ! harmless\n";
        let change = json!({ "path": ["a"], "value": 1 });
        let plan = view(json!({
            "proposer": "project:x", "caller": "mcp:agent", "diff": diff, "changes": [change, change],
            "touched_files": ["config.toml"], "risk": { "level": "raised", "notes": ["types x"] },
        }));
        let text = shown(&plan, false, &names()).to_string();
        let own: Vec<&str> = text.lines().filter(|line| !line.starts_with(DIFF) && !line.is_empty()).collect();
        let changes = "2 changes of config.toml, risk: raised, for what is new or changed";
        let rehearsed = "no event has come since the last change that it could be tried on";
        assert_eq!(own, ["d", "proposed by mcp:agent, with project:x", changes, "  - types x", rehearsed], "{text}");
    }

    #[test]
    fn long_values_are_folded_unless_all_is_wanted() {
        let folded = "+the first lines\n… 59980 more lines of this value\n";
        let plan = view(json!({ "diff": "+all of it\n", "folded_diff": folded }));
        let folded = shown(&plan, false, &names()).to_string();
        assert!(
            folded.contains("  | … 59980 more lines") && folded.contains("plan show 0123456789ab --full"),
            "{folded}"
        );
        assert!(shown(&plan, true, &names()).to_string().contains("all of it"));
    }

    #[test]
    fn events_that_would_have_done_the_same_are_one_line() {
        let hit = |velocity: u8, device: &str| {
            let (was, would_be) = (["lights"], ["copy"]);
            json!({ "at": 0, "device": device, "event": format!("note-on 36 {velocity}"), "was": was, "would_be": would_be })
        };
        let differences = [hit(1, "pads"), hit(2, "pads"), hit(3, "keys"), hit(4, "pads")];
        let plan = view(json!({ "rehearsal": { "events": 9, "different": 4, "shown": differences } }));
        let text = shown(&plan, false, &names()).to_string();
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("tried")).skip(1).collect();
        let pads = "  pads note-on 36 1, and 2 events like it: lights -> copy";
        assert_eq!(lines, [pads, "  keys note-on 36 3: lights -> copy"], "{text}");
    }

    #[test]
    fn what_was_not_tried_is_said_after_what_was() {
        let text = |events: usize| {
            let tried =
                json!({ "events": events, "different": 0, "shown": [], "untried": ["snare"], "more_untried": 1 });
            shown(&view(json!({ "rehearsal": tried })), false, &names()).to_string()
        };
        let said = text(9);
        let lines: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("tried on")).skip(1).collect();
        let snare = "not tried: snare (nothing like its trigger came)";
        assert_eq!(lines, [snare, "not tried: 1 more mapping"], "{said}");
        assert!(!text(0).contains("not tried"), "no event came, which is said already");
    }
}
