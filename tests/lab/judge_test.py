#!/usr/bin/env python3
"""Whether judge.py is red when it should be: results of real runs (kept/, ../captures) as they are, and with one thing wrong.

    judge_test.py ROCE_DISSECT
"""
import collections, json, os, shutil, struct, sys, tempfile
import judge, roce

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT, CAPTURES = os.path.join(HERE, "kept"), os.path.join(HERE, "../captures")

EXPECT = {
    "fault_ce": ["hits b RC RDMA WRITE First, RC RDMA WRITE Last all", "injected b 10", "ce b 10", "ce 0", "nak psn_sequence_error 0", "again 0", "back 0", "needless", "icrc-bad b 0",
                 "client says done 5 bad 0", "client ends 0", "server ends 0", "count RC RDMA WRITE First 5", "no-finding loss", "pause b 0+"],
    "fault_retry_exceeded": ["hits b RC RDMA WRITE Only psn +2", "injected b 4", "rxe a retry_exceeded_err 1", "finding retry-exceeded", "client says transport retry counter exceeded", "again 3", "cause timeout 3"],
    "fault_egress": ["injected a 1", "count RC RDMA READ Request 4", "client says done 4 bad 0"],
    "fault_icrc": ["hits b RC SEND Only nth 4", "icrc-bad b 1", "icrc-bad 0", "nak psn_sequence_error 1", "rxe b out_of_seq_request 1", "finding b bad-icrc", "server says received 10 bad 0"],
    "ulp_nvme_rdma": ["nvme Connect 2", "nvme Identify 6", "nvme Property-Get 6", "nvme-writes 1:0+8 1:8+8 1:16+8", "nvme-reads-end 1:0+16 1:16+16", "nvme-stat a"],
    "ulp_nfs_files": ["nfs-ops", "nfs READ 1", "nfs OPEN 2", "nfs LOOKUP 1"],
    "ulp_iser": ["iscsi-stat a"],
}
# what kernels counted beside the captures that are part of the corpus
COUNTED = {"ulp_nvme_rdma.stat-a": "0 0 0 0\n5 56 3 24\n", "ulp_iser.stat-a": "5 56 3 24\n",
           "ulp_nfs_files.nfsd": "rpc 28 0 0 0 0\nproc4ops 76 0 0 0 4 2 0 0 0 1 18 3 0 0 0 0 1 0 0 2 0 0 0 20 0 1 1 1 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 2 1 1 0 0 0 0 0 0 0 0 22 0 0 0 1 1 0 0\n"}


class Results:
    """A folder with what a run brought back for one step, to be changed."""
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        for f in os.listdir(KEPT):
            if f.startswith(name + "."): shutil.copyfile(os.path.join(KEPT, f), os.path.join(folder, f))
        if not os.path.exists(self.path(".pcap")): shutil.copyfile(os.path.join(CAPTURES, name + ".pcap"), self.path(".pcap"))
        for f, text in COUNTED.items():
            if f.startswith(name + "."): open(os.path.join(folder, f), "w").write(text)
        self.expect(EXPECT[name])
    def path(self, suffix): return os.path.join(self.folder, self.name + suffix)
    def expect(self, lines): open(self.path(".expect"), "w").write("\n".join(lines) + "\n")
    def text(self, suffix, change):
        text = open(self.path(suffix)).read()
        changed = change(text)
        assert changed != text, f"{self.name}{suffix}: nothing was changed"
        open(self.path(suffix), "w").write(changed)
    def report(self, suffix, change):
        r = json.load(open(self.path(suffix)))
        change(r)
        json.dump(r, open(self.path(suffix), "w"))
    def frames(self, suffix, change):
        """change(list of [record header, frame, packet or None]) in a capture."""
        b = open(self.path(suffix), "rb").read()
        o, all_ = 24, []
        for n, (t, f, wire) in enumerate(roce.frames(self.path(suffix)), 1):
            all_.append([b[o:o + 16], bytearray(f), roce.dissect(n, t, f, wire)])
            o += 16 + len(f)
        change(all_)
        open(self.path(suffix), "wb").write(b[:24] + b"".join(h + bytes(f) for h, f, _ in all_))


def without(which):
    """A change of a capture: the first packet that fits is not there."""
    def change(all_): del all_[next(i for i, (_, _, k) in enumerate(all_) if k and which(k))]
    return change


def with_byte(which, at, to):
    """A change of a capture: a byte of the first packet that fits."""
    def change(all_):
        f = next(f for _, f, k in all_ if k and which(k))
        f[at] = to(f[at])
    return change


def opcode(name): return lambda k: k.name == name


def entry(change): return lambda r: change(r["injections"])


def recount(r): r["rules"][0]["injected"] = len(r["injections"])


def psn(n): return entry(lambda i: i[n].update(psn=i[n]["psn"] + 1))


def fewer(r): r["injections"].pop(); recount(r)


def more(r): r["injections"].append(dict(r["injections"][-1])); recount(r)


TOS = 15        # of an IPv4 header behind Ethernet
# (step, what is wrong, words that the judge must say, the change)
WRONG = [
    ("fault_ce", "one PSN", "did not send these bytes", lambda r: r.report(".fault-b", psn(0))),
    ("fault_ce", "an injection is not reported", "marked and not reported", lambda r: r.report(".fault-b", fewer)),
    ("fault_ce", "an injection is reported twice", "reported and not marked", lambda r: r.report(".fault-b", more)),
    ("fault_ce", "the rule's sum", "the rules say", lambda r: r.report(".fault-b", lambda x: x["rules"][0].update(injected=11))),
    ("fault_ce", "events were lost", "events lost", lambda r: r.report(".fault-b", lambda x: x.update(events_lost=1))),
    ("fault_ce", "the bytes before", "did not send these bytes", lambda r: r.report(".fault-b", entry(lambda i: i[0].update(before="00" + i[0]["before"][2:])))),
    ("fault_ce", "b lacks a packet", "missing and not reported", lambda r: r.frames(".b.pcap", without(opcode("RC RDMA WRITE Middle")))),
    ("fault_ce", "a lacks a packet", "from nowhere", lambda r: r.frames(".pcap", without(opcode("RC RDMA WRITE Middle")))),
    ("fault_ce", "a mark is not there", "reported and not marked", lambda r: r.frames(".b.pcap", with_byte(lambda k: k.ecn == 3, TOS, lambda b: b & ~1))),
    ("fault_ce", "a mark nobody reports", "marked and not reported", lambda r: r.frames(".b.pcap", with_byte(opcode("RC RDMA WRITE Middle"), TOS, lambda b: b | 3))),
    ("fault_ce", "a duplicate for rxe", "needless", lambda r: r.text(".count-b", lambda t: t + "duplicate_request 1\n")),
    ("fault_ce", "the client's exit code", "exit code 1", lambda r: r.text(".rc-a", lambda t: "1\n")),
    ("fault_ce", "what the client says", "client says", lambda r: r.text(".say-a", lambda t: t.replace("bad 0", "bad 1"))),
    ("fault_ce", "no report", "no JSON", lambda r: r.text(".fault-b", lambda t: t[:100])),
    ("fault_ce", "no server's exit code", "server ends", lambda r: os.remove(r.path(".rc-b"))),
    ("fault_ce", "words nobody knows", "does not know these words", lambda r: r.expect(["misspelt 1"])),
    ("fault_retry_exceeded", "one PSN", "reported and not missing", lambda r: r.report(".fault-b", psn(1))),
    ("fault_retry_exceeded", "a loss that is not reported", "missing and not reported", lambda r: r.report(".fault-b", fewer)),
    ("fault_retry_exceeded", "another packet is missing", "missing and not reported", lambda r: r.frames(".b.pcap", without(opcode("RC RDMA WRITE Only")))),
    ("fault_retry_exceeded", "rxe saw no error", "rxe a retry_exceeded_err", lambda r: r.text(".count-a", lambda t: t.replace("retry_exceeded_err 1", "retry_exceeded_err 0"))),
    ("fault_retry_exceeded", "no such finding", "finding no-such-code", lambda r: r.expect(["finding no-such-code"])),
    ("fault_retry_exceeded", "a finding that should not be", "no-finding retry-exceeded", lambda r: r.expect(["no-finding retry-exceeded"])),
    ("fault_retry_exceeded", "NAKs that name nothing", "nak-names-dropped", lambda r: r.expect(["nak-names-dropped b"])),
    ("fault_retry_exceeded", "a pause that was not", "pause b", lambda r: r.expect(["pause b 3600+"])),
    ("fault_egress", "rxe sent one more", "rxe sent", lambda r: r.text(".count-a", lambda t: "\n".join(f"sent_pkts {int(l.split()[1]) + 1}" if l.startswith("sent_pkts ") else l for l in t.splitlines()))),
    ("fault_egress", "the dropped one was sent", "rxe sent", lambda r: r.frames(".pcap", lambda all_: all_.append(next(x for x in all_ if x[2] and x[2].mac == judge.mac("a"))))),
    ("fault_icrc", "the ICRC is right", "reported and its ICRC right", lambda r: shutil.copyfile(r.path(".pcap"), r.path(".b.pcap"))),
    ("fault_icrc", "another ICRC is wrong", "wrong and not reported", lambda r: r.frames(".b.pcap", with_byte(lambda k: k.icrc == "good" and k.name == "RC SEND Only", -1, lambda b: b ^ 1))),
    ("fault_icrc", "the NAK is not there", "nak psn_sequence_error", lambda r: r.frames(".pcap", without(lambda k: k.nak))),
    ("ulp_nvme_rdma", "a Write is not there", "nvme-writes", lambda r: r.frames(".pcap", without(lambda k: k.name == "RC SEND First" and k.body[12] == 1))),
    ("ulp_nvme_rdma", "the device counted another read", "the block device counted", lambda r: r.text(".stat-a", lambda t: t.replace("5 56", "6 64"))),
    ("ulp_nvme_rdma", "another place", "nvme-reads-end", lambda r: r.expect(["nvme-reads-end 1:0+16 1:24+16"])),
    ("ulp_nfs_files", "the server counted another READ", "nfs-ops", lambda r: r.text(".nfsd", lambda t: t.replace(" 20 0 1 1 1", " 20 0 2 1 1"))),
    ("ulp_nfs_files", "the server counted another call", "nfs-ops", lambda r: r.text(".nfsd", lambda t: t.replace("rpc 28", "rpc 29"))),
    ("ulp_iser", "the device counted another write", "the block device counted", lambda r: r.text(".stat-a", lambda t: t.replace("3 24", "4 32"))),
]


def verdicts(name, change, program):
    with tempfile.TemporaryDirectory() as folder:
        r = Results(folder, name)
        if change: change(r)
        v = judge.Verdicts()
        judge.judge(v, folder, name, program)
        return v


def main():
    program, bad, reds = sys.argv[1], [], 0
    for name, lines in EXPECT.items():
        v = verdicts(name, None, program)
        if v.bad: bad.append(f"{name} as it was is red: {v.bad}")
        # each expectation with a number is red with the number next to it
        for line in lines:
            words = line.split()
            if not words[-1].isdigit() or words[1] == "says": continue
            v = verdicts(name, lambda r: r.expect([" ".join(words[:-1] + [str(int(words[-1]) + 1)])]), program)
            reds += 1
            if len(v.bad) != 1: bad.append(f"{name}: {line} plus one: {v.bad}")
    for name, wrong, says, change in WRONG:
        v = verdicts(name, change, program)
        reds += 1
        if not any(says in f"{what}: {detail}" for _, what, detail in v.bad): bad.append(f"{name} with {wrong} wrong: no word of {says!r}: {v.bad}")
    print("\n".join(bad) or f"{len(EXPECT)} steps hold, {reds} wrong ones are red")
    sys.exit(bool(bad))


if __name__ == "__main__": main()
