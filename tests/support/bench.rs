//! The kernel programs by themselves: loaded, attached to nothing, fed with frames by `BPF_PROG_TEST_RUN`.

use aya::Ebpf;
use aya::programs::{TestRun, TestRunOptions};
use roce_ebpf::abi::{self, Direction, Flow, global};
use roce_user::load::{self, Options};
use roce_user::maps::{self, Table};
use roce_user::snapshot::{Counts, Snapshot};

/// A loaded object. Make one a test: loading takes the verifier a moment.
pub struct Bench {
    /// The object.
    pub ebpf: Ebpf,
    base: abi::Totals,
}

/// The shortest frame that the kernel lets a test run with.
pub const SHORTEST: usize = 14;

impl Bench {
    /// Loads all programs, on this thread's CPU alone, so that a flow is on one CPU.
    pub fn new(options: &Options) -> Self {
        let mut one = nix::sched::CpuSet::new();
        one.set(0).expect("there is a CPU 0");
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).expect("a thread may choose its CPU");
        let mut ebpf = load::load(options).expect("the object loads");
        load::xdp(&mut ebpf, global::XDP_INGRESS).expect("the XDP program loads");
        load::classifier(&mut ebpf, global::TC_EGRESS).expect("the egress program loads");
        Self { ebpf, base: abi::Totals::ZERO }
    }

    /// What XDP says about a frame.
    pub fn xdp(&mut self, frame: &[u8]) -> u32 {
        let program = load::xdp(&mut self.ebpf, global::XDP_INGRESS).expect("loaded");
        let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::new() };
        program.test_run(options).expect("a test run").return_value
    }

    /// What TC egress says about a frame; `None` if the kernel makes no such packet in a test run (larger than a
    /// page).
    pub fn tc(&mut self, frame: &[u8]) -> Option<i32> {
        let program = load::classifier(&mut self.ebpf, global::TC_EGRESS).expect("loaded");
        let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::new() };
        program.test_run(options).ok().map(|r| r.return_value.cast_signed())
    }

    /// Totals since the last [`Bench::clear`].
    pub fn totals(&self, direction: Direction) -> abi::Totals {
        let mut now = maps::totals(&self.ebpf, direction).expect("the totals can be read");
        if direction == Direction::In {
            for (n, b) in now.opcodes.iter_mut().zip(self.base.opcodes) {
                *n -= b;
            }
            now.roce_bytes -= self.base.roce_bytes;
            now.other_packets -= self.base.other_packets;
            now.other_bytes -= self.base.other_bytes;
            now.overflow_packets -= self.base.overflow_packets;
            now.fragments -= self.base.fragments;
            now.malformed -= self.base.malformed;
        }
        now
    }

    /// Rows of what was counted.
    pub fn snapshot(&self) -> Snapshot {
        Counts::default().take(&[&self.ebpf]).expect("the maps can be read")
    }

    /// All flows.
    pub fn flows(&self) -> Vec<Flow> {
        let table = Table::of(&self.ebpf).expect("it is there");
        let used = table.used().expect("readable");
        (0..used).filter_map(|n| table.get(n)).filter(|f| f.family() != 0).collect()
    }

    /// Forgets all flows, and the totals so far.
    pub fn clear(&mut self) {
        self.base = maps::totals(&self.ebpf, Direction::In).expect("the totals can be read");
        let table = Table::of(&self.ebpf).expect("it is there");
        for slot in 0..table.used().expect("readable") {
            let flow = table.get(slot).expect("inside");
            if flow.family() != 0 {
                table.retire(slot, &flow).expect("it can be removed");
                table.give_back(slot).expect("it can be given back");
            }
        }
    }
}
