//! The one table of keys: dispatch, footer and help all read it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Give the terminal to the shell until `fg`.
    Suspend,
    /// Show or hide the help.
    Help,
    /// Leave the page, the pop-up, the filter.
    Back,
    /// Go to a page.
    Page(Page),
    /// Go to the next page.
    NextPage,
    /// Go to the page before.
    PreviousPage,
    /// Move the cursor.
    Move(Step),
    /// Open what the cursor is on.
    Open,
    /// Pick the column to sort by out of a list.
    SortMenu,
    /// Sort by the column to the right.
    SortRight,
    /// Sort by the column to the left.
    SortLeft,
    /// Turn the order round.
    Reverse,
    /// Type a filter.
    Filter,
    /// One line a host pair, or one a flow.
    Group,
    /// Hold the picture; counting goes on.
    Freeze,
    /// Rates or totals.
    Totals,
    /// Bits or bytes.
    Units,
    /// Hide flows without packets in the interval.
    HideIdle,
    /// Shorter interval.
    Faster,
    /// Longer interval.
    Slower,
}

/// How far the cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
}

/// A page of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// All flows.
    #[default]
    Overview,
    /// One flow, both directions.
    Flow,
    /// What the rules found.
    Findings,
    /// What roce-fault does here.
    Faults,
}

impl Page {
    /// In the order of their keys.
    pub const ALL: [Self; 4] = [Self::Overview, Self::Flow, Self::Findings, Self::Faults];

    /// On the tab.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Flow => "Flow",
            Self::Findings => "Findings",
            Self::Faults => "Faults",
        }
    }
}

/// Where a key means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// On every page.
    Everywhere,
    /// On the overview only.
    Overview,
    /// On the page of findings only.
    Findings,
    /// While a list is up from which a column is picked.
    Menu,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The keys, any of which will do.
    pub keys: &'static [(KeyCode, KeyModifiers)],
    /// As they are written.
    pub label: &'static str,
    /// Where they work.
    pub context: Context,
    /// What they do.
    pub action: Action,
    /// In the help.
    pub help: &'static str,
    /// In the footer, if it is worth the room.
    pub footer: Option<&'static str>,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

macro_rules! bindings {
    ($($context:ident $label:literal [$($key:expr),*] $action:expr, $help:literal $(, $footer:literal)?;)*) => {
        &[$(Binding {
            keys: &[$($key),*], label: $label, context: Context::$context, action: $action, help: $help,
            footer: bindings!(@footer $($footer)?),
        }),*]
    };
    (@footer $footer:literal) => { Some($footer) };
    (@footer) => { None };
}

const fn c(c: char) -> (KeyCode, KeyModifiers) {
    (KeyCode::Char(c), NONE)
}

const fn k(k: KeyCode) -> (KeyCode, KeyModifiers) {
    (k, NONE)
}

/// All keys.
pub const BINDINGS: &[Binding] = bindings! {
    Everywhere "?" [c('?'), k(KeyCode::F(1)), c('h')] Action::Help, "this help", "help";
    Everywhere "q" [c('q'), (KeyCode::Char('c'), CTRL), k(KeyCode::F(10))] Action::Quit, "quit; the programs are detached", "quit";
    Everywhere "C-z" [(KeyCode::Char('z'), CTRL)] Action::Suspend, "to the shell; fg comes back, counting goes on";
    Everywhere "Esc" [k(KeyCode::Esc), k(KeyCode::Backspace)] Action::Back, "back: close help, leave a page, drop the filter", "back";
    Overview "Enter" [k(KeyCode::Enter)] Action::Open, "open the flow or the host pair under the cursor", "open";
    Findings "Enter" [k(KeyCode::Enter)] Action::Open, "open the flow that the finding is about", "open";
    Menu "Enter" [k(KeyCode::Enter)] Action::Open, "sort by that column";
    Everywhere "↑ k" [k(KeyCode::Up), c('k')] Action::Move(Step::Up), "up";
    Everywhere "↓ j" [k(KeyCode::Down), c('j')] Action::Move(Step::Down), "down";
    Everywhere "PgUp" [k(KeyCode::PageUp), (KeyCode::Char('b'), CTRL)] Action::Move(Step::PageUp), "a screen up";
    Everywhere "PgDn" [k(KeyCode::PageDown), (KeyCode::Char('f'), CTRL)] Action::Move(Step::PageDown), "a screen down";
    Everywhere "Home" [k(KeyCode::Home)] Action::Move(Step::First), "first line";
    Everywhere "End" [k(KeyCode::End), c('G')] Action::Move(Step::Last), "last line";
    Overview "/" [c('/'), c('f'), k(KeyCode::F(4))] Action::Filter, "filter the flows", "filter";
    Overview "s" [c('s'), k(KeyCode::F(6))] Action::SortMenu, "pick the column to sort by", "sort";
    Overview "> →" [c('>'), k(KeyCode::Right), c('l')] Action::SortRight, "sort by the next column";
    Overview "< ←" [c('<'), k(KeyCode::Left)] Action::SortLeft, "sort by the column before";
    Overview "r" [c('r'), c('R')] Action::Reverse, "turn the order round";
    Overview "g" [c('g')] Action::Group, "group by host pair", "group";
    Everywhere "t" [c('t')] Action::Totals, "rates, or totals since the start", "totals";
    Everywhere "u" [c('u')] Action::Units, "bits or bytes", "units";
    Overview "i" [c('i')] Action::HideIdle, "hide or show idle and ended flows", "idle";
    Everywhere "Space" [c(' '), c('p')] Action::Freeze, "hold the picture (counting goes on)", "freeze";
    Everywhere "-" [c('-')] Action::Faster, "shorter interval";
    Everywhere "+" [c('+'), c('=')] Action::Slower, "longer interval";
    Everywhere "Tab" [k(KeyCode::Tab)] Action::NextPage, "next page", "page";
    Everywhere "S-Tab" [(KeyCode::BackTab, KeyModifiers::SHIFT), k(KeyCode::BackTab)] Action::PreviousPage, "page before";
    Everywhere "1" [c('1')] Action::Page(Page::Overview), "overview";
    Everywhere "2" [c('2')] Action::Page(Page::Flow), "flow under the cursor";
    Everywhere "3" [c('3')] Action::Page(Page::Findings), "findings";
    Everywhere "4" [c('4')] Action::Page(Page::Faults), "faults that roce-fault injects here";
};

/// The binding of a key, the nearer context first.
pub fn find(key: KeyEvent, context: Context) -> Option<&'static Binding> {
    // upper case letters come with shift on some terminals and without on others
    let modifiers = match key.code {
        KeyCode::Char(_) => key.modifiers - KeyModifiers::SHIFT,
        _ => key.modifiers,
    };
    let matches = |b: &&Binding, c: Context| b.context == c && b.keys.contains(&(key.code, modifiers));
    BINDINGS.iter().find(|b| matches(b, context)).or_else(|| BINDINGS.iter().find(|b| matches(b, Context::Everywhere)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_context() {
        for (i, a) in BINDINGS.iter().enumerate() {
            for b in BINDINGS.iter().skip(i + 1) {
                if a.context == b.context || a.context == Context::Everywhere || b.context == Context::Everywhere {
                    for key in a.keys {
                        assert!(!b.keys.contains(key), "{} and {} share {key:?}", a.label, b.label);
                    }
                }
            }
        }
    }

    #[test]
    fn shifted_letters_are_found() {
        let key = KeyEvent::new(KeyCode::Char('R'), KeyModifiers::SHIFT);
        assert_eq!(find(key, Context::Overview).map(|b| b.action), Some(Action::Reverse));
        assert_eq!(find(key, Context::Everywhere).map(|b| b.action), None);
    }
}
