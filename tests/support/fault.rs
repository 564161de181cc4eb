//! The fault programs by themselves: a scenario loaded and armed, attached to nothing, fed with frames by
//! `BPF_PROG_TEST_RUN`.

use std::time::Duration;

use aya::programs::{TestRun, TestRunOptions};
use roce_ebpf::abi::fault as abi;
use roce_user::attach::{Mode, Tc};
use roce_user::fault::engine::{Engine, Injection, Seen, Setup, Whole};
use roce_user::fault::scenario::Scenario;
use roce_user::load;

/// A scenario in the kernel.
pub struct Rig {
    /// The engine.
    pub engine: Engine,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on like this.
    Passed(Vec<u8>),
    /// It is gone.
    Dropped,
}

const XDP_DROP: u32 = 1;
const TC_ACT_SHOT: u32 = 2;
/// To an interface that does not exist: how a packet is lost on its way out.
const TC_ACT_REDIRECT: u32 = 7;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP ingress.
    Xdp,
    /// TC ingress.
    TcIn,
    /// TC egress.
    TcOut,
}

impl Rig {
    /// Loads the rules of a TOML text.
    pub fn new(toml: &str) -> Self {
        Self::with(toml, false, false)
    }

    /// Loads them, perhaps dry, perhaps watching.
    pub fn with(toml: &str, dry: bool, watch: bool) -> Self {
        let s = Scenario::parse("test.toml", toml).unwrap_or_else(|e| panic!("{e}"));
        let setup = Setup {
            rules: &s.rules,
            seed: s.seed,
            port: s.port,
            dry,
            watch,
            frames: true,
            mode: Mode::Auto,
            tc: Tc::Auto,
        };
        let mut engine = Engine::new(&setup, &[]).expect("the rules load");
        engine.arm(Duration::from_hours(1)).expect("the rules can be armed");
        Self { engine }
    }

    /// Runs a frame through a program; `None` if the kernel makes no such packet in a test run (larger than a page).
    pub fn run(&mut self, hook: Hook, frame: &[u8]) -> Option<Fate> {
        let mut out = vec![0; frame.len() + 64];
        let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::new() };
        let result = match hook {
            Hook::Xdp => load::xdp(self.engine.object(), abi::XDP_INGRESS).expect("loaded").test_run(options),
            Hook::TcIn => load::classifier(self.engine.object(), abi::TC_INGRESS).expect("loaded").test_run(options),
            Hook::TcOut => load::classifier(self.engine.object(), abi::TC_EGRESS).expect("loaded").test_run(options),
        };
        let result = result.ok()?;
        let gone = match hook {
            Hook::Xdp => XDP_DROP,
            Hook::TcIn => TC_ACT_SHOT,
            Hook::TcOut => TC_ACT_REDIRECT,
        };
        if result.return_value == gone {
            return Some(Fate::Dropped);
        }
        out.truncate(result.data_size_out as usize);
        Some(Fate::Passed(out))
    }

    /// Runs a frame through XDP.
    pub fn xdp(&mut self, frame: &[u8]) -> Fate {
        self.run(Hook::Xdp, frame).expect("the kernel makes a packet of it")
    }

    /// Whether XDP drops it.
    pub fn drops(&mut self, frame: &[u8]) -> bool {
        self.xdp(frame) == Fate::Dropped
    }

    /// All injections reported so far.
    pub fn injections(&mut self) -> Vec<Injection> {
        std::iter::from_fn(|| self.engine.next_injection()).collect()
    }

    /// All whole packets reported so far.
    pub fn frames(&mut self) -> Vec<Whole> {
        std::iter::from_fn(|| self.engine.next_frame()).collect()
    }

    /// All packets watched so far.
    pub fn seen(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.engine.next_seen()).collect()
    }
}
