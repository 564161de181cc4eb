//! `_ws.col.*`: the columns of the one-line text as fields, made only where somebody asks for them by name.

use super::{Input, Tree, summary};

/// Group of these fields; no set of all fields has it.
pub const GROUP: u16 = 31;

crate::fields! {
    group 31;
    NUMBER "_ws.col.number" "No." Str Dec { hidden: true } "Number column of the one-line text; also _ws.col.No.";
    COL_TIME "_ws.col.time" "Time" Str Dec { hidden: true } "Time column of the one-line text, as -t sets it.";
    LENGTH "_ws.col.length" "Length" Str Dec { hidden: true } "Length column of the one-line text.";
    PROTOCOL "_ws.col.protocol" "Protocol" Str Dec { hidden: true } "Protocol column of the one-line text.";
    SOURCE "_ws.col.source" "Source" Str Dec { hidden: true } "Source column of the one-line text.";
    DESTINATION "_ws.col.destination" "Destination" Str Dec { hidden: true } "Destination column of the one-line text.";
    INFO "_ws.col.info" "Info" Str Dec { hidden: true } "Info column of the one-line text.";
}

/// Adds the columns that are asked for.
pub fn build(input: &Input<'_, '_>, tree: &mut Tree<'_>) {
    tree.derive(&NUMBER, input.record.number.to_string());
    tree.derive(&COL_TIME, input.record.time.to_owned());
    tree.derive(&LENGTH, input.frame.lengths().1.to_string());
    tree.derive(&PROTOCOL, summary::protocol(input));
    if tree.wants(&SOURCE) || tree.wants(&DESTINATION) {
        let (src, dst) = summary::endpoints(input);
        tree.derive(&SOURCE, src);
        tree.derive(&DESTINATION, dst);
    }
    if tree.wants(&INFO) {
        let mut info = String::new();
        summary::info(input, &mut info);
        info.truncate(info.trim_end().len());
        tree.derive(&INFO, info);
    }
}
