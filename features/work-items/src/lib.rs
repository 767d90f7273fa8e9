//! Work items: small tasks that people and agents leave each other.
//!
//! This is the worked example: every kind of contribution is in it, each in a few lines. Tools read
//! and change the items; hooks remark on tool calls; a background task watches for changes; an
//! action tells the model what happened on the controller; a skill says how to use it all.
//!
//! The host may hold several instances at once (tools and hooks in one, the task in another, actions
//! in the real-time lane). They share the store and nothing else.

use std::cell::RefCell;

use conductor_feature::alerts::Sink as AlertSink;
use conductor_feature::hook_registrar::{Band, Point, Registrar as Hooks};
use conductor_feature::json::{answer, register, schema};
use conductor_feature::notifications::Sink as NotificationSink;
use conductor_feature::runs::Run;
use conductor_feature::runtime_controls::Controls;
use conductor_feature::store::Table;
use conductor_feature::{
    Actions, Context, Decision, Error, Event, Invocation, Lifecycle, Prepared, ReadOnlyTools, Reader, StatefulTools,
    Tasks, ToolCall, ToolHooks, action_registrar, skill_registrar, task_registrar, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod item;
mod shelf;

use item::Item;

struct WorkItems;

/// What `install` opened, and the uses of the action.
#[derive(Default)]
struct State {
    table: Option<Table>,
    /// Without a grant nothing is notified, and everything else works.
    notify: Option<NotificationSink>,
    alert: Option<AlertSink>,
    marks: Prepared<Mark>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Works with the store.
fn with_table<T>(work: impl FnOnce(&Table) -> Result<T, Error>) -> Result<T, Error> {
    STATE.with_borrow(|state| work(state.table.as_ref().ok_or_else(|| Error::Failed("not installed".into()))?))
}

fn notify(text: &str) {
    STATE.with_borrow(|state| {
        if let Some(sink) = &state.notify {
            sink.emit(text);
        }
    });
}

impl Lifecycle for WorkItems {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<List, Listed>(&tools, "work_items_list")?;
        register::<Create, Item>(&tools, "work_item_create")?;
        register::<Comment, Item>(&tools, "work_item_comment")?;
        register::<Complete, Item>(&tools, "work_item_complete")?;
        action_registrar::Registrar::open(ctx)?.register("WorkItemMark", &schema::<Mark>())?;
        let hooks = Hooks::open(ctx)?;
        hooks.register(Point::PreToolCall, Band::Normal)?;
        hooks.register(Point::PostToolCall, Band::Late)?;
        task_registrar::Registrar::open(ctx)?.register("watch")?;
        skill_registrar::Registrar::open(ctx)?.register("work-items", include_str!("SKILL.md"))?;
        let (table, notify, alert) = (Table::open(ctx)?, NotificationSink::open(ctx).ok(), AlertSink::open(ctx).ok());
        STATE.set(State { table: Some(table), notify, alert, marks: Prepared::default() });
        Ok(())
    }
}

/// What `work_items_list` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Items that are done, too. Default: false.
    #[serde(default)]
    all: bool,
}

/// What `work_items_list` answers.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// The items, newest first.
    items: Vec<Item>,
}

/// What `work_item_create` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// One line: what will be different when it is done. At most 120 characters.
    title: String,
    /// What there is to know. At most 4000 characters. Default: nothing.
    #[serde(default)]
    description: String,
}

/// What `work_item_comment` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Comment {
    /// The item's number.
    number: u32,
    /// What to add. At most 4000 characters.
    comment: String,
}

/// What `work_item_complete` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Complete {
    /// The item's number.
    number: u32,
}

fn unknown(name: &str) -> Error {
    Error::Invalid(format!("there is no tool {name}"))
}

impl ReadOnlyTools for WorkItems {
    fn call(name: String, args: String, _: &Invocation, _: &Reader) -> Result<String, Error> {
        if name != "work_items_list" {
            return Err(unknown(&name));
        }
        answer(&args, |List { all }| {
            let mut items = with_table(shelf::all)?;
            items.retain(|item| all || item.done.is_none());
            items.reverse();
            Ok(Listed { items })
        })
    }
}

impl StatefulTools for WorkItems {
    fn call(name: String, args: String, _: &Invocation, _: &Reader, _: &Controls) -> Result<String, Error> {
        match name.as_str() {
            "work_item_create" => answer(&args, |Create { title, description }| {
                with_table(|table| shelf::open(table, &title, &description))
            }),
            "work_item_comment" => answer(&args, |Comment { number, comment }| {
                with_table(|table| shelf::change(table, number, |item| item.comment(&comment)))
            }),
            "work_item_complete" => answer(&args, |Complete { number }| {
                let now = conductor_feature::clock::now();
                with_table(|table| shelf::change(table, number, |item| item.complete(now)))
            }),
            _ => Err(unknown(&name)),
        }
    }
}

/// The number of the item that a call of ours is about.
fn item_of(call: &ToolCall) -> Option<u32> {
    #[derive(Deserialize)]
    struct About {
        number: u32,
    }
    let ours = call.feature == "builtin:work-items";
    ours.then(|| serde_json::from_str::<About>(&call.args).ok()).flatten().map(|about| about.number)
}

impl ToolHooks for WorkItems {
    fn before_call(call: ToolCall) -> Decision {
        let done = |number| with_table(|table| shelf::item(table, number)).is_ok_and(|item| item.done.is_some());
        match item_of(&call) {
            Some(number) if call.tool == "work_item_comment" && done(number) => {
                Decision::Deny(format!("item {number} is done; open another that refers to it"))
            }
            Some(number) => Decision::Annotate(format!("about item {number}")),
            None => Decision::Proceed,
        }
    }

    fn after_call(call: ToolCall, failed: Option<String>) -> Option<String> {
        let number = item_of(&call)?;
        failed.map(|_| format!("item {number} is as it was"))
    }
}

/// The pause between two polls of the watch, in milliseconds.
const POLL_INTERVAL_MS: u32 = 1000;
/// Items that wait at once before the person is notified.
const MANY: usize = 10;

impl Tasks for WorkItems {
    fn start(_name: String, run: &Run) -> Result<(), Error> {
        let mut known = with_table(shelf::all)?;
        while run.wait(POLL_INTERVAL_MS) {
            let items = with_table(shelf::all)?;
            for item in &items {
                match known.iter().find(|before| before.number == item.number) {
                    None => notify(&format!("work item {} was opened: {}", item.number, item.title)),
                    Some(before) if before.done != item.done => {
                        notify(&format!("work item {} is done: {}", item.number, item.title));
                    }
                    Some(_) => {}
                }
            }
            let waiting = |items: &[Item]| items.iter().filter(|item| item.done.is_none()).count();
            if waiting(&items) >= MANY && waiting(&known) < MANY {
                STATE.with_borrow(|state| {
                    if let Some(sink) = &state.alert {
                        sink.emit(&format!("{MANY} work items are waiting"));
                    }
                });
            }
            known = items;
        }
        Ok(())
    }
}

/// The parameters of `WorkItemMark`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mark {
    /// What to tell the model, such as "the singer wants more reverb".
    text: String,
}

impl Actions for WorkItems {
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let mark: Mark = serde_json::from_str(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        if mark.text.trim().is_empty() {
            return Err(Error::Invalid("`text` is empty".into()));
        }
        STATE.with_borrow_mut(|state| state.marks.keep(mark))
    }

    fn perform(action: u32, _event: Event) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let mark = state.marks.get(action)?;
            let sink = state.notify.as_ref();
            sink.ok_or_else(|| Error::Denied("notifying needs a grant".into()))?.emit(&mark.text);
            Ok(())
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| state.marks.release(action));
    }
}

conductor_feature::feature!(
    WorkItems,
    "../feature.toml",
    [actions, read_only_tools, stateful_tools, tool_hooks, tasks]
);
