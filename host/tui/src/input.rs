//! Keys: one table says which key does what where. Keys are looked up in it, and the help line, the list of all keys and
//! clicks on the help line are made from it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The screens, by the numbers that choose them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Screen {
    Status,
    Live,
    Flow,
    Mappings,
    Plans,
    Features,
    Chat,
    Learn,
}

impl Screen {
    pub(crate) const ALL: [Self; 8] =
        [Self::Status, Self::Live, Self::Flow, Self::Mappings, Self::Plans, Self::Features, Self::Chat, Self::Learn];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Status => "Status",
            Self::Live => "Live",
            Self::Flow => "Flow",
            Self::Mappings => "Mappings",
            Self::Plans => "Plans",
            Self::Features => "Features",
            Self::Chat => "Chat",
            Self::Learn => "Learn",
        }
    }

    /// The screen this many places further, round about.
    pub(crate) fn step(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// Where keys are typed: what is in front, and below it the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Any screen, with nothing in front of it.
    Everywhere,
    Status,
    Live,
    Flow,
    Mappings,
    Plans,
    Features,
    /// The list of conversations.
    Conversations,
    /// One conversation.
    Conversation,
    Learn,
    /// An event that was opened.
    Explanation,
    /// A question that is answered by yes or no.
    Question,
    /// A line that is typed.
    Line,
    /// The list of all keys.
    Keys,
    /// A terminal that is too small.
    TooSmall,
}

impl Context {
    /// What the list of all keys calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Everywhere => "Everywhere",
            Self::Status => "Status",
            Self::Live => "Live",
            Self::Flow => "Flow",
            Self::Mappings => "Mappings",
            Self::Plans => "Plans",
            Self::Features => "Features",
            Self::Conversations => "Chat: conversations",
            Self::Conversation => "Chat: a conversation",
            Self::Learn => "Learn",
            Self::Explanation => "An event that is open",
            Self::Question => "A question",
            Self::Line => "A line that is typed",
            Self::Keys => "This list",
            Self::TooSmall => "A terminal that is too small",
        }
    }

    pub(crate) const ALL: [Self; 15] = [
        Self::Everywhere,
        Self::Status,
        Self::Live,
        Self::Flow,
        Self::Mappings,
        Self::Plans,
        Self::Features,
        Self::Conversations,
        Self::Conversation,
        Self::Learn,
        Self::Explanation,
        Self::Question,
        Self::Line,
        Self::Keys,
        Self::TooSmall,
    ];
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Quit,
    Keys,
    Show(Screen),
    NextScreen,
    PreviousScreen,
    OtherPane,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Pause,
    Filter,
    Kinds,
    OnlyDevice,
    Clear,
    Map,
    SetUp,
    ChangeMapping,
    LightMapping,
    RemoveMapping,
    Mute,
    SwitchMode,
    Lock,
    Apply,
    Reject,
    Undo,
    Redo,
    Lift,
    Enable,
    Disable,
    Begin,
    Write,
    CancelTurn,
    Agree,
    Decline,
    ListenStart,
    ListenStop,
    NextMode,
    AnyDevice,
    Gesture,
    Yes,
    No,
    Submit,
    Complete,
    AsLine,
    EraseBack,
    EraseAhead,
    EraseAll,
    Left,
    Right,
}

/// A key as the table has it. Shift is part of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    code: KeyCode,
    has_control: bool,
}

const fn key(code: KeyCode) -> Key {
    Key { code, has_control: false }
}

const fn letter(letter: char) -> Key {
    key(KeyCode::Char(letter))
}

const fn control(letter: char) -> Key {
    Key { code: KeyCode::Char(letter), has_control: true }
}

impl Key {
    /// The key of an event. `None` with Alt, which means nothing here: terminals send Escape and the letter for it.
    pub(crate) fn new(event: KeyEvent) -> Option<Self> {
        let code = if event.code == KeyCode::BackTab { KeyCode::Tab } else { event.code };
        let has = |modifier| event.modifiers.contains(modifier);
        match (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT)) {
            (false, true) => None,
            // Both together are AltGr, with which signs are typed.
            (has_control, has_alt) => Some(Self { code, has_control: has_control && !has_alt }),
        }
    }

    /// The letter that it types into a line.
    pub(crate) fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter) if !self.has_control => Some(letter),
            _ => None,
        }
    }

    /// What people call it.
    pub(crate) fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(letter) => letter.to_string(),
            KeyCode::Up => "↑".to_owned(),
            KeyCode::Down => "↓".to_owned(),
            KeyCode::Left => "←".to_owned(),
            KeyCode::Right => "→".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            KeyCode::Delete => "Del".to_owned(),
            KeyCode::Backspace => "Bksp".to_owned(),
            KeyCode::F(number) => format!("F{number}"),
            other => format!("{other:?}"),
        };
        if self.has_control { format!("^{}", name.to_uppercase()) } else { name }
    }
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) context: Context,
    /// The first is the one that the help line has.
    pub(crate) keys: &'static [Key],
    pub(crate) command: Command,
    /// A word for the help line; empty if it is only in the list of all keys.
    pub(crate) word: &'static str,
    /// What it does.
    pub(crate) what: &'static str,
}

const fn bind(
    context: Context,
    keys: &'static [Key],
    command: Command,
    word: &'static str,
    what: &'static str,
) -> Binding {
    Binding { context, keys, command, word, what }
}

/// All keys. Of what is in front the first counts.
pub(crate) const BINDINGS: &[Binding] = &{
    use Command as C;
    use Context as X;
    [
        bind(X::Everywhere, &[letter('?'), key(KeyCode::F(1))], C::Keys, "keys", "all keys, and what the words mean"),
        bind(X::Everywhere, &[letter('q'), control('c')], C::Quit, "quit", "end this program; the host goes on"),
        bind(X::Everywhere, &[letter('1')], C::Show(Screen::Status), "", "the host, its ports, modes and doubts"),
        bind(X::Everywhere, &[letter('2')], C::Show(Screen::Live), "", "events as they come"),
        bind(X::Everywhere, &[letter('3')], C::Show(Screen::Flow), "", "from ports to actions"),
        bind(X::Everywhere, &[letter('4')], C::Show(Screen::Mappings), "", "mappings"),
        bind(X::Everywhere, &[letter('5')], C::Show(Screen::Plans), "", "plans that wait for you"),
        bind(X::Everywhere, &[letter('6')], C::Show(Screen::Features), "", "features and what they use"),
        bind(X::Everywhere, &[letter('7')], C::Show(Screen::Chat), "", "conversations with models"),
        bind(X::Everywhere, &[letter('8')], C::Show(Screen::Learn), "", "learn which control was moved"),
        bind(X::Everywhere, &[key(KeyCode::Right)], C::NextScreen, "", "the next screen"),
        bind(X::Everywhere, &[key(KeyCode::Left)], C::PreviousScreen, "", "the screen before"),
        bind(X::Everywhere, &[key(KeyCode::Up), letter('k')], C::Up, "", "one up"),
        bind(X::Everywhere, &[key(KeyCode::Down), letter('j')], C::Down, "", "one down"),
        bind(
            X::Everywhere,
            &[key(KeyCode::PageUp), control('b')],
            C::PageUp,
            "",
            "a page up, of the lower part where there are two",
        ),
        bind(X::Everywhere, &[key(KeyCode::PageDown), control('f')], C::PageDown, "", "a page down"),
        bind(X::Everywhere, &[key(KeyCode::Home), letter('g')], C::First, "", "to the first"),
        bind(X::Everywhere, &[key(KeyCode::End), letter('G')], C::Last, "", "to the last; events as they come"),
        bind(X::Status, &[key(KeyCode::Enter)], C::SwitchMode, "switch mode", "make the chosen mode active"),
        bind(X::Status, &[letter('L')], C::Lock, "lock", "lock the show, or unlock it"),
        bind(
            X::Live,
            &[key(KeyCode::Enter)],
            C::Open,
            "explain",
            "which rules look at the event, and why; or all of what happened",
        ),
        bind(X::Live, &[letter(' ')], C::Pause, "pause", "stop the events here, or go on; none is lost"),
        bind(X::Live, &[key(KeyCode::Tab)], C::OtherPane, "sources", "choose among sources, or among events"),
        bind(X::Live, &[letter('m')], C::Map, "map", "map the control of the chosen event, or learn from the source"),
        bind(
            X::Live,
            &[letter('s')],
            C::SetUp,
            "set up",
            "propose a binding, mappings and lights for the chosen source",
        ),
        bind(X::Live, &[letter('x')], C::Mute, "mute", "mute the chosen source until the host ends, or hear it again"),
        bind(X::Live, &[letter('/')], C::Filter, "filter", "only what has this text"),
        bind(X::Live, &[letter('f')], C::Kinds, "kinds", "all, events, events that fired, all but events, trouble"),
        bind(X::Live, &[letter('d')], C::OnlyDevice, "", "only events of the chosen source"),
        bind(X::Live, &[key(KeyCode::Esc)], C::Clear, "", "no filter"),
        bind(X::Flow, &[letter('/')], C::Filter, "filter", "only mappings with this text"),
        bind(X::Flow, &[key(KeyCode::Esc)], C::Clear, "", "no filter"),
        bind(X::Mappings, &[letter('/')], C::Filter, "search", "only mappings with this text"),
        bind(X::Mappings, &[letter('c')], C::ChangeMapping, "change", "propose another action for the chosen mapping"),
        bind(X::Mappings, &[letter('l')], C::LightMapping, "light", "propose the light of its pad, or none"),
        bind(X::Mappings, &[letter('x')], C::RemoveMapping, "remove", "propose to remove the chosen mapping"),
        bind(X::Mappings, &[key(KeyCode::Esc)], C::Clear, "", "all mappings"),
        bind(X::Plans, &[letter('a')], C::Apply, "apply", "apply the chosen plan"),
        bind(X::Plans, &[letter('r')], C::Reject, "reject", "take the chosen plan off the list"),
        bind(X::Plans, &[letter('u')], C::Undo, "undo", "take the last applied plan back"),
        bind(X::Plans, &[letter('R')], C::Redo, "redo", "apply again what was undone last"),
        bind(X::Plans, &[key(KeyCode::PageDown), control('f')], C::PageDown, "more", "a page down, of the chosen plan"),
        bind(X::Features, &[letter('l')], C::Lift, "lift", "end the quarantine of the chosen feature"),
        bind(X::Features, &[letter('e')], C::Enable, "enable", "have hosts load the chosen feature, which is disabled"),
        bind(X::Features, &[letter('d')], C::Disable, "disable", "keep the chosen feature, but have no host load it"),
        bind(X::Conversations, &[key(KeyCode::Enter)], C::Open, "open", "open the chosen conversation"),
        bind(X::Conversations, &[letter('n')], C::Begin, "new", "begin a conversation"),
        bind(X::Conversation, &[key(KeyCode::Enter), letter('i')], C::Write, "write", "say something"),
        bind(X::Conversation, &[letter('y')], C::Agree, "agree", "agree to the call that waits"),
        bind(X::Conversation, &[letter('n')], C::Decline, "decline", "do not agree to it"),
        bind(X::Conversation, &[letter('a')], C::Apply, "apply", "apply the plan that waits"),
        bind(X::Conversation, &[letter('r')], C::Reject, "reject", "take that plan off the list"),
        bind(X::Conversation, &[letter('c')], C::CancelTurn, "cancel", "end the turn that is under way"),
        bind(X::Conversation, &[letter('u')], C::Undo, "", "take the last applied plan back"),
        bind(X::Conversation, &[key(KeyCode::Esc)], C::Back, "back", "back to the conversations"),
        bind(X::Learn, &[letter('s')], C::ListenStart, "start", "listen to every port"),
        bind(X::Learn, &[key(KeyCode::Enter)], C::Map, "map", "say what the chosen control should do"),
        bind(X::Learn, &[letter('o')], C::NextMode, "mode", "the mode that the mapping is for"),
        bind(X::Learn, &[letter('t')], C::AnyDevice, "this/any", "from this device alone, or from any"),
        bind(X::Learn, &[letter('w')], C::Gesture, "gesture", "wait for the gesture, or for the control alone"),
        bind(X::Learn, &[key(KeyCode::Esc)], C::ListenStop, "stop", "stop listening"),
        bind(X::Explanation, &[key(KeyCode::Esc), key(KeyCode::Enter), letter('q')], C::Back, "close", "close it"),
        bind(X::Explanation, &[key(KeyCode::Up), letter('k')], C::Up, "", "one line up"),
        bind(X::Explanation, &[key(KeyCode::Down), letter('j')], C::Down, "", "one line down"),
        bind(X::Explanation, &[key(KeyCode::PageUp)], C::PageUp, "", "a page up"),
        bind(X::Explanation, &[key(KeyCode::PageDown)], C::PageDown, "more", "a page down"),
        bind(X::Explanation, &[control('c')], C::Quit, "", "end this program"),
        bind(X::Question, &[letter('y')], C::Yes, "yes", "do it"),
        bind(X::Question, &[letter('n'), key(KeyCode::Esc)], C::No, "no", "leave it"),
        bind(X::Question, &[key(KeyCode::Up), letter('k')], C::Up, "", "one line up"),
        bind(X::Question, &[key(KeyCode::Down), letter('j')], C::Down, "", "one line down"),
        bind(X::Question, &[key(KeyCode::PageUp)], C::PageUp, "", "a page up"),
        bind(X::Question, &[key(KeyCode::PageDown)], C::PageDown, "more", "a page down"),
        bind(X::Question, &[control('c')], C::Quit, "", "end this program"),
        bind(X::Line, &[key(KeyCode::Enter)], C::Submit, "done", "take the line"),
        bind(
            X::Line,
            &[key(KeyCode::Tab)],
            C::Complete,
            "complete",
            "write an action's name and its keys, or the next colour",
        ),
        bind(X::Line, &[key(KeyCode::Up)], C::Up, "", "the action or the field above"),
        bind(X::Line, &[key(KeyCode::Down)], C::Down, "", "the action or the field below"),
        bind(X::Line, &[control('t')], C::AsLine, "as TOML", "the fields of an action as one line of TOML"),
        bind(X::Line, &[key(KeyCode::Esc)], C::Back, "leave", "throw it away"),
        bind(X::Line, &[key(KeyCode::Backspace), control('h')], C::EraseBack, "", "erase the letter before"),
        bind(X::Line, &[key(KeyCode::Delete)], C::EraseAhead, "", "erase the letter behind"),
        bind(X::Line, &[control('u')], C::EraseAll, "erase all", "erase the line"),
        bind(X::Line, &[key(KeyCode::Left)], C::Left, "", "one letter left"),
        bind(X::Line, &[key(KeyCode::Right)], C::Right, "", "one letter right"),
        bind(X::Line, &[key(KeyCode::Home), control('a')], C::First, "", "to the beginning"),
        bind(X::Line, &[key(KeyCode::End), control('e')], C::Last, "", "to the end"),
        bind(X::Line, &[control('c')], C::Quit, "", "end this program"),
        bind(
            X::Keys,
            &[key(KeyCode::Esc), letter('?'), letter('q'), key(KeyCode::Enter)],
            C::Back,
            "close",
            "close it",
        ),
        bind(X::Keys, &[key(KeyCode::Up), letter('k')], C::Up, "up", "one line up"),
        bind(X::Keys, &[key(KeyCode::Down), letter('j')], C::Down, "down", "one line down"),
        bind(X::Keys, &[key(KeyCode::PageUp)], C::PageUp, "", "a page up"),
        bind(X::Keys, &[key(KeyCode::PageDown)], C::PageDown, "", "a page down"),
        bind(X::Keys, &[control('c')], C::Quit, "", "end this program"),
        bind(X::TooSmall, &[letter('q'), control('c')], C::Quit, "quit", "end this program; the host goes on"),
    ]
};

/// The bindings that count in these contexts, the innermost first.
pub(crate) fn bindings(contexts: &[Context]) -> impl Iterator<Item = &'static Binding> {
    contexts.iter().flat_map(|context| BINDINGS.iter().filter(move |binding| binding.context == *context))
}

/// The key that asks for this there, as people call it.
pub(crate) fn key_of(context: Context, command: Command) -> String {
    let binding = bindings(&[context]).find(|binding| binding.command == command);
    binding.and_then(|binding| binding.keys.first()).map(|key| key.name()).unwrap_or_default()
}

/// What a key asks for in these contexts.
pub(crate) fn lookup(contexts: &[Context], key: Key) -> Option<Command> {
    bindings(contexts).find(|binding| binding.keys.contains(&key)).map(|binding| binding.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_of_the_table_is_hidden_by_another() {
        for context in Context::ALL {
            let contexts: &[Context] = match context {
                Context::Everywhere => &[Context::Everywhere],
                Context::Explanation | Context::Question | Context::Line | Context::Keys | Context::TooSmall => {
                    &[context]
                }
                _ => &[context, Context::Everywhere],
            };
            for binding in BINDINGS.iter().filter(|binding| binding.context == context) {
                for key in binding.keys {
                    assert_eq!(lookup(contexts, *key), Some(binding.command), "{context:?} {}", key.name());
                }
            }
            // On every screen the keys for everywhere mean the same, but where a screen has a use of its own for one.
            assert!(BINDINGS.iter().any(|binding| binding.context == context), "{context:?}");
        }
    }

    #[test]
    fn alt_is_no_letter_and_altgr_is() {
        let key = |modifiers| Key::new(KeyEvent::new(KeyCode::Char('@'), modifiers)).and_then(Key::typed);
        assert_eq!(key(KeyModifiers::ALT), None);
        assert_eq!(key(KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyModifiers::ALT | KeyModifiers::CONTROL), Some('@'));
        assert_eq!(key(KeyModifiers::SHIFT), Some('@'));
    }

    #[test]
    fn keys_have_names() {
        let names: Vec<String> =
            [letter('a'), letter(' '), control('c'), key(KeyCode::Up), key(KeyCode::F(1))].map(Key::name).into();
        assert_eq!(names, ["a", "Space", "^C", "↑", "F1"]);
    }
}
