//! The words of a scenario: what each means, what holds if it is left out, what it is counted in. The parser knows no
//! others, and `tests/faults/WORDS.md` is made of these.

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// As it is written.
    pub word: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// How its value is written.
    pub unit: &'static str,
}

const fn word(word: &'static str, meaning: &'static str, default: &'static str, unit: &'static str) -> Word {
    Word { word, meaning, default, unit }
}

const TEXT: &str = "text";
const NUMBER: &str = "number";
const RANGE: &str = "number or range: 5, \"2-\", \"64-128\", \">=1\"";
const TIME: &str = "\"250us\", \"200ms\", \"2s\", or seconds";
const CHANCE: &str = "0.01 or \"1%\"";
const FLAG: &str = "true, false";

/// Keys of the file.
pub const TOP: &[Word] = &[
    word("name", "what reports call the scenario", "the file's name", TEXT),
    word("description", "why it exists", "none", TEXT),
    word("seed", "decides what is hit by chance; --seed goes before it", "0", NUMBER),
    word("port", "UDP destination port that means RoCEv2", "4791", "UDP port"),
    word(
        "rule",
        "[[rule]]: what is hit, and what happens to it; 1 to 64, the first that fires acts",
        "must be there",
        "tables",
    ),
    word("run", "[run]: what runs meanwhile", "nothing", "table"),
    word("expect", "[expect]: what must be true at the end", "at least one packet was hit", "table"),
];

/// Keys of `[run]`.
pub const RUN: &[Word] = &[
    word(
        "command",
        "the command under test; one after -- goes before it",
        "none",
        "list of words, or a line for the shell",
    ),
    word("limit", "the run ends then at the latest; --for goes before it", "30 s", TIME),
];

/// Keys of `[expect]`.
pub const EXPECT: &[Word] = &[
    word("injections", "packets hit, by all rules or { rule = … }", "at least 1", RANGE),
    word("exit", "exit status of the command", "its status becomes ours", "0 to 255"),
    word("finish_within", "the command ends within", "not asked", TIME),
    word("retransmission_within", "what was lost to its receiver is sent again within", "not asked", TIME),
    word("nak_within", "each lost request is answered by a sequence NAK within", "not asked", TIME),
    word("cnp_within", "each CE mark is answered by a CNP within", "not asked", TIME),
    word("no_message_lost", "at the end no PSN is missing, and nothing that was hit stayed away", "false", FLAG),
    word("go_back_n", "after a sequence NAK the sender starts again exactly at the PSN that it names", "false", FLAG),
];

/// Keys of a rule.
pub const RULE: &[Word] = &[
    word("name", "what reports call it", "rule-1, rule-2 …", TEXT),
    word("type", "what happens", "must be there", "a type"),
    word("interface", "only on this interface", "every -i", TEXT),
    word("direction", "into the host, out of it", "both", "in, out, both"),
    word("src", "source address or prefix", "any", "address, address/bits"),
    word("dst", "destination address or prefix", "any", "address, address/bits"),
    word("qpn", "destination queue pair", "any", "24 bits, decimal or 0x…"),
    word("flow", "the n-th flow that the rule sees", "any", "from 1"),
    word("transport", "transport service", "any", "RC, UC, UD, RD, XRC, CNP"),
    word("opcode", "name of the opcode table, class, number, or a list of them", "any", "an opcode"),
    word("psn", "PSN; with + counted from the flow's first", "any", "104, \"104-110\", \"+4\", \"+4-+9\""),
    word("iter", "which transmission of the PSN: 1 the first, 2 the first retransmission", "any", RANGE),
    word("message", "the n-th message of that kind on the flow", "any", "from 1"),
    word("dscp", "DSCP", "any", "0 to 63"),
    word("size", "length of the frame, link header included", "any", "bytes, a range"),
    word("after", "not before this time from the start", "0", TIME),
    word("for", "for so long, from `after`", "to the end", TIME),
    word("period", "flap: length of a period", "none", TIME),
    word("down", "flap: active for so long at the beginning of each period", "none", TIME),
    word("armed_by", "only once the rule of this name has fired", "armed", "name of a rule"),
    word("nth", "only the n-th match", "every", "from 1"),
    word("every", "every n-th match", "every", "from 1"),
    word("probability", "by chance", "1", CHANCE),
    word("burst", "Gilbert-Elliott, as netem's gemodel", "none", "{ p, r, \"1-h\", \"1-k\" }"),
    word("count", "at most so many", "no limit", "from 1"),
    word("rate", "at most so many in a time", "no limit", "\"100/s\", \"30/min\""),
    word("per", "whose counters nth, every, count, burst and rate are", "flow", "flow, rule"),
    word("offset", "corrupt: which payload byte", "0", "bytes"),
    word("xor", "corrupt: which bits of it", "1", "1 to 255"),
    word("value", "dscp: the new DSCP", "must be there", "0 to 63"),
    word("length", "truncate: what stays of the frame", "must be there", "bytes, from 14"),
    word("any_ecn", "ce: mark packets that are not ECT too", "false", FLAG),
    word(
        "queue",
        "ce: only when a queue that is not there says so, which marks as RED does",
        "none",
        "{ rate, kmin, kmax, pmax }",
    ),
];

/// Keys of `burst`, with netem's names.
pub const BURST: &[Word] = &[
    word("p", "a good spell turns bad", "must be there", CHANCE),
    word("r", "a bad spell turns good", "1-p", CHANCE),
    word("1-h", "a packet is hit in a bad spell", "1", CHANCE),
    word("1-k", "a packet is hit in a good spell", "0", CHANCE),
];

/// Keys of `queue`.
pub const QUEUE: &[Word] = &[
    word("rate", "how fast it drains", "must be there", "\"10Gbit\""),
    word("kmin", "below this nothing is marked", "must be there", "\"100KB\""),
    word("kmax", "from this on everything is", "must be there", "\"400KB\""),
    word("pmax", "chance just below kmax", "must be there", CHANCE),
];

/// Values of `type`: word, meaning.
pub const TYPES: &[(&str, &str)] = &[
    ("drop", "the packet vanishes"),
    ("ce", "ECN becomes CE; also: ecn"),
    ("icrc", "only the ICRC becomes wrong; also: bit-error"),
    ("corrupt", "a payload byte changes"),
    ("clear-ect", "ECN becomes not-ECT"),
    ("dscp", "DSCP is set"),
    ("truncate", "the frame is cut, its length fields stay"),
    ("duplicate", "the packet comes twice"),
    ("blackhole", "everything that matches vanishes, in the time window"),
    ("flap", "everything that matches vanishes during part of each period"),
];
