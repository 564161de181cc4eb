#!/usr/bin/env python3
"""Judges what a lab run brought back, with roce.py's reading of the captures as the measure.

    judge.py RESULTS [--dissect roce-dissect] [--readme README.md]

For every NAME.pcap, what is there is compared with it, without being asked:
    NAME.top-a, -b     roce-top's last report on a machine: packets, bytes, opcodes, ECN, NAKs of each flow, and the sums
    NAME.record-a, -b  what roce-top recorded (.pcapng): the same, read by roce-dissect
    --dissect          `roce-dissect flows`: the same, and every ICRC
    NAME.count-a, -b   what rxe counted: sequence errors and RNR NAKs that it sent are in the capture of that machine
    NAME.fault-a, -b   what roce-fault reports: each packet it hit is in the sender's capture, byte for byte, and beyond those
                       nothing is missing, marked CE or broken on the machine's own side

And what the scenario wrote with `expect NAME WORDS` (N is a number, or a least number as in 3+):
    client|server ends N               its exit code
    client|server says REGEX           its output
    count OPCODE N                     packets of that name, e.g. count RC RDMA WRITE Middle 3+
    nak REASON N | rnr N | again N | again-response N | back N | ce [a|b] N | icrc-bad [a|b] N      (b: by the capture of b)
    rxe a|b COUNTER N
    finding [a|b] CODE | no-finding [a|b] CODE     `roce-dissect check` of a's capture, or of b's
    cause sequence_nak|rnr_nak|timeout N           what `roce-dissect flows` calls the cause of packets sent again
    injected a|b N                     faults that roce-fault reports on that machine
    hits a|b OPCODE[, OPCODE ...] all|nth N|psn +N   it hit those packets of each flow that the sender's capture has, and no other:
                                       every one, the Nth one, those of the flow's Nth PSN from 0
    nak-names-dropped a|b              the sequence NAKs of that machine name the PSNs that it lost, once each
    needless                           every request that came again was a duplicate for rxe on b: nothing had been lost on the way there
    pause a|b SECONDS                  the longest time without a packet from the other, N or N+
    nvme NAME N                        NVMe commands of that name (a dash for a space), read by roce-dissect
    nvme-writes|nvme-reads-end NSID:SLBA+BLOCKS ...  all Writes, the last Reads, in their order
    nvme-stat|iscsi-stat a|b           reads, writes and their sectors are those that the block device of that machine counted (NAME.stat-a)
    nfs NAME N | nfs-ops               NFSv4 operations of that name; every operation and call, by what the server's kernel counted (NAME.nfsd)

--readme: the row of the kernels' table that this run makes is in that file.
"""
import collections, json, os, re, subprocess, sys
import roce


class Verdicts:
    def __init__(self): self.good, self.bad = 0, []
    def check(self, name, what, ok, detail=""):
        if ok: self.good += 1
        else: self.bad.append((name, what, detail))


def holds(spec, n): return n >= int(spec[:-1]) if spec.endswith("+") else n == int(spec)


def key_of(row):
    """The flow of a JSON row. A source QP is part of it for datagrams only."""
    return (row["src"], row["dst"], row["dest_qp"], row["src_qp"] if row["transport"] == "UD" else None)


def compare(v, name, what, rows, packets, icrc):
    want = roce.flows(packets)
    have = {}
    for r in rows:
        v.check(name, what, key_of(r) not in have, f"flow twice: {key_of(r)}")
        have[key_of(r)] = r
    for k in sorted(set(want) | set(have), key=str):
        if k not in have: v.check(name, what, False, f"flow {k} is missing, {want[k]['packets']} packets"); continue
        if k not in want: v.check(name, what, False, f"flow {k} is not in the capture, {have[k]['packets']} packets"); continue
        w, h = want[k], have[k]
        for field in ("packets", "bytes", "rnr_naks", "ip_version", "vlan"):
            v.check(name, what, h[field] == w[field], f"flow {k}: {field} {h[field]}, in the capture {w[field]}")
        # what a packet with a wrong ICRC says about its opcode is not believed by the analysis
        if icrc: w["opcodes"] = collections.Counter(p.name for p in packets if p.flow == k and p.icrc != "bad")
        v.check(name, what, h["opcodes"] == dict(w["opcodes"]), f"flow {k}: opcodes {h['opcodes']}, in the capture {dict(w['opcodes'])}")
        for field in ("ecn", "naks") + (("icrc",) if icrc else ()):
            ours = {n: c for n, c in h[field].items() if c}
            theirs = dict(w[field])
            if field == "icrc": theirs["bad"] = theirs.get("bad", 0) + theirs.pop("flush", 0); theirs = {n: c for n, c in theirs.items() if c}
            v.check(name, what, ours == theirs, f"flow {k}: {field} {ours}, in the capture {theirs}")


def last_report(path):
    reports = [json.loads(l) for l in open(path) if l.strip()]
    return reports[-1] if reports else None


def dissect(program, *words):
    p = subprocess.run([program, *words], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def injections(report):
    """What a report of roce-fault says it did: a list of {action, opcode, psn, ...}."""
    return report["injections"]


def mac(side): return bytes.fromhex("52540000000" + side)


def each(packets): return collections.Counter((k.name, k.psn) for k in packets)


def few(counter):
    """Some of a counter's entries, for a message."""
    return ", ".join(f"{n} PSN {p}" + (f" x{c}" if c > 1 else "") for (n, p), c in list(counter.items())[:6]) or "none"


def judge_faults(v, name, side, report, captures, sent_by_rxe):
    """A report of roce-fault against both captures: nothing else is missing, marked or broken than what it says."""
    what, other = f"roce-fault on {side}", "ab".replace(side, "")
    done = injections(report)
    v.check(name, what, report["events_lost"] == 0 and report["injections_omitted"] == 0, f"{report['events_lost']} events lost, {report['injections_omitted']} left out")
    v.check(name, what, sum(r["injected"] for r in report["rules"]) == len(done), f"the rules say {sum(r['injected'] for r in report['rules'])} injected, {len(done)} are listed")
    if other not in captures or side not in captures: return
    sent = [k for k in captures[other] if k.mac == mac(other)]
    arrived = [k for k in captures[side] if k.mac == mac(other)]
    kinds = {(e["action"], e["direction"]) for e in done}
    for e in done:
        k = (e["opcode"], e["psn"])
        if e["direction"] != "in": continue
        head = bytes.fromhex(e["before"])
        v.check(name, what, any(p.frame.startswith(head) and (p.name, p.psn) == k for p in sent), f"{k[0]} PSN {k[1]}: {other} did not send these bytes")
    def those(*actions): return collections.Counter((e["opcode"], e["psn"]) for e in done if e["direction"] == "in" and e["action"] in actions)
    missing, extra, hit = each(sent) - each(arrived), each(arrived) - each(sent), those("drop", "blackhole", "flap")
    if not any(a in ("duplicate", "truncate") for a, _ in kinds):
        v.check(name, what, missing == hit and not extra, f"reported and not missing: {few(hit - missing)}; missing and not reported: {few(missing - hit)}; from nowhere: {few(extra)}")
    marked, hit = each(k for k in arrived if k.ecn == 3) - each(k for k in sent if k.ecn == 3), those("ce")
    v.check(name, what, marked == hit, f"reported and not marked: {few(hit - marked)}; marked and not reported: {few(marked - hit)}")
    broken, hit = each(k for k in arrived if k.icrc == "bad") - each(k for k in sent if k.icrc == "bad"), those("corrupt", "corrupt-icrc", "corrupt-payload", "icrc", "payload")
    v.check(name, what, broken == hit, f"reported and its ICRC right: {few(hit - broken)}; wrong and not reported: {few(broken - hit)}")
    out = sum(e["direction"] == "out" and e["action"] == "drop" for e in done)
    own = sum(k.mac == mac(side) for k in captures[side])
    if out: v.check(name, what, sent_by_rxe == own + out, f"rxe sent {sent_by_rxe}, {own} of them are in the capture of {side} and {out} reported as dropped on the way out")


def hits(report, packets, words):
    """(hit and should not be, should be hit and is not) by the sender's capture."""
    names, which = re.fullmatch(r"(.+) (all|nth \d+|psn \+\d+)", words).groups()
    names, per_flow, want = names.split(", "), {}, collections.Counter()
    for k in packets:
        f = per_flow.setdefault(k.flow, [k.psn, 0])
        if k.name not in names: continue
        f[1] += 1
        if which == "all" or which == f"nth {f[1]}" or which == f"psn +{(k.psn - f[0]) & 0xffffff}": want[(k.name, k.psn)] += 1
    have = collections.Counter((e["opcode"], e["psn"]) for e in injections(report))
    return have - want, want - have


def judge(v, folder, name, program):
    def path(suffix): return os.path.join(folder, name + suffix)
    def text(suffix):
        try: return open(path(suffix), errors="replace").read()
        except FileNotFoundError: return None
    captures = {}
    for side, suffix in (("a", ".pcap"), ("b", ".b.pcap")):
        if os.path.exists(path(suffix)): captures[side] = roce.read(path(suffix))[1]
    packets = captures.get("a", [])
    for side in "ab":
        if os.path.exists(path(f".top-{side}")):
            what = f"roce-top on {side}"
            try: report = last_report(path(f".top-{side}"))
            except ValueError as e: report = None; v.check(name, what, False, f"no JSON: {e}")
            v.check(name, what, report is not None, f"no report; it said: {(text(f'.top-err-{side}') or '').strip()[-300:]}")
            if report and side in captures:
                t = report["totals"]
                compare(v, name, what, report["flows"], captures[side], False)
                v.check(name, what, sum(r["packets"] for r in report["flows"]) + t["overflow_packets"] == t["roce_packets"], f"flows and overflow do not add up to {t['roce_packets']}")
                v.check(name, what, t["roce_packets"] == len(captures[side]), f"totals say {t['roce_packets']} RoCE packets, the capture has {len(captures[side])}")
                v.check(name, what, t["overflow_packets"] == 0 and t["events_lost"] == 0, f"lost: {t}")
            recording = path(f".record-{side}.pcapng")
            if program and side in captures and os.path.exists(recording):
                rc, out, err = dissect(program, "flows", "--json", recording)
                v.check(name, f"{what}: its recording", rc == 0, err.strip())
                if rc == 0: compare(v, name, f"{what}: its recording", json.loads(out), captures[side], False)
    if program:
        for side, suffix in (("a", ".pcap"), ("b", ".b.pcap")):
            if side not in captures: continue
            rc, out, err = dissect(program, "flows", "--json", path(suffix))
            v.check(name, "roce-dissect flows", rc == 0, err.strip())
            if rc == 0: compare(v, name, f"roce-dissect flows of {side}", json.loads(out), captures[side], True)
            rc, out, err = dissect(program, "check", "--json", path(suffix))
            v.check(name, "roce-dissect check", rc in (0, 1), f"exit {rc}: {err.strip()}")
    rxe = {}
    for side in "ab":
        rxe[side] = {l.split()[0]: int(l.split()[1]) for l in (text(f".count-{side}") or "").splitlines()}
        if side in captures and os.path.exists(path(f".top-{side}")):
            address = {k.src for k in captures[side] if k.mac == bytes.fromhex("52540000000" + side)}
            sent = [k for k in captures[side] if k.src in address]
            for counter, n in (("out_of_seq_request", sum(k.nak == "psn_sequence_error" for k in sent)), ("send_rnr_err", sum(k.rnr for k in sent))):
                v.check(name, f"rxe on {side}", rxe[side].get(counter, 0) == n, f"{counter} {rxe[side].get(counter, 0)}, in the capture {n}")
    reports = {}
    for side in "ab":
        if os.path.exists(path(f".fault-{side}")):
            try: reports[side] = json.loads(text(f".fault-{side}"))
            except ValueError as e: v.check(name, f"roce-fault on {side}", False, f"no JSON: {e}"); continue
            judge_faults(v, name, side, reports[side], captures, rxe[side].get("sent_pkts", 0))
    naks = collections.Counter(k.nak for k in packets if k.nak)
    again, again_response, back = roce.repeats(packets)
    simple = {"rnr": sum(k.rnr for k in packets), "again": again, "again-response": again_response, "back": back,
              "ce": sum(k.ecn == 3 for k in packets), "icrc-bad": sum(k.icrc == "bad" for k in packets)}
    for line in (text(".expect") or "").splitlines():
        w = line.split()
        try:
            if w[0] in ("client", "server"):
                side = "a" if w[0] == "client" else "b"
                if w[1] == "ends": rc = (text(f".rc-{side}") or "-1").strip(); v.check(name, line, holds(w[2], int(rc)), f"exit code {rc}; it said: {(text(f'.say-{side}') or '').strip()[-300:]}")
                else: v.check(name, line, re.search(line.split(None, 2)[2], text(f".say-{side}") or "") is not None, f"it said: {(text(f'.say-{side}') or '').strip()[-300:]}")
            elif w[0] == "count": n = sum(k.name == " ".join(w[1:-1]) for k in packets); v.check(name, line, holds(w[-1], n), f"{n} in the capture")
            elif w[0] == "nak": v.check(name, line, holds(w[2], naks[w[1]]), f"{naks[w[1]]} in the capture")
            elif w[0] in ("ce", "icrc-bad") and len(w) == 3:
                n = sum(k.ecn == 3 if w[0] == "ce" else k.icrc == "bad" for k in captures[w[1]])
                v.check(name, line, holds(w[2], n), f"{n} in the capture of {w[1]}")
            elif w[0] in simple: v.check(name, line, holds(w[1], simple[w[0]]), f"{simple[w[0]]} in the capture")
            elif w[0] == "rxe": n = rxe[w[1]].get(w[2], 0); v.check(name, line, holds(w[3], n), f"rxe counted {n}")
            elif w[0] in ("finding", "no-finding"):
                rc, out, err = dissect(program, "check", "--json", path(".b.pcap" if w[1] == "b" else ".pcap"))
                found = [f["code"] for f in json.loads(out)] if rc in (0, 1) else []
                v.check(name, line, rc in (0, 1) and (w[-1] in found) == (w[0] == "finding"), err.strip() or f"found: {', '.join(found) or 'nothing'}")
            elif w[0] == "cause":
                rc, out, err = dissect(program, "flows", "--json", path(".pcap"))
                n = sum(r["retransmitted_after"][w[1]] for r in json.loads(out))
                v.check(name, line, holds(w[2], n), f"{n} by roce-dissect flows")
            elif w[0] == "injected":
                n = len(injections(reports[w[1]]))
                v.check(name, line, holds(w[2], n), f"{n} reported")
            elif w[0] == "hits":
                other = "ab".replace(w[1], "")
                wrong, left = hits(reports[w[1]], [k for k in captures[other] if k.mac == mac(other)], line.split(None, 2)[2])
                v.check(name, line, not wrong and not left, f"hit against the rule: {few(wrong)}; not hit: {few(left)}")
            elif w[0] == "nak-names-dropped":
                named = collections.Counter(k.psn for k in captures[w[1]] if k.mac == mac(w[1]) and k.nak == "psn_sequence_error")
                lost = collections.Counter(e["psn"] for e in injections(reports[w[1]]))
                v.check(name, line, named == lost, f"NAKs name {dict(named)}, lost {dict(lost)}")
            elif w[0] == "needless":
                n = rxe["b"].get("duplicate_request", 0)
                v.check(name, line, n == again, f"{again} requests again in the capture, rxe on b calls {n} duplicates")
            elif w[0] == "pause":
                other = "ab".replace(w[1], "")
                times = [k.time for k in captures[w[1]] if k.mac == mac(other)]
                longest = max((b - a for a, b in zip(times, times[1:])), default=0)
                least = float(w[2].rstrip("+"))
                v.check(name, line, longest >= least if w[2].endswith("+") else longest == least, f"{longest:.3f} s")
            else:
                found = judge_ulp(w, program, path, text)
                v.check(name, line, *(found or (False, "judge.py does not know these words")))
        except Exception as e: v.check(name, line, False, f"{type(e).__name__}: {e}")


NFS4 = {"ACCESS": 3, "CLOSE": 4, "COMMIT": 5, "CREATE": 6, "GETATTR": 9, "LOOKUP": 15, "OPEN": 18, "READ": 25, "READDIR": 26, "REMOVE": 28, "WRITE": 38}


def table(program, path, which, *fields):
    """Rows of roce-dissect's fields, a packet that was sent again counted once."""
    rc, out, err = dissect(program, "-r", path, "-Y", which, "-T", "fields", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", *[w for f in fields for w in ("-e", f)])
    if rc: raise ValueError(err.strip())
    rows = {}
    for l in out.splitlines():
        cells = l.split("\t")
        rows.setdefault((cells[0], cells[1]), cells[2:])
    return list(rows.values())


def number(text): return int(text, 0)


def nvme_io(program, path, opcode):
    """(namespace, first block, blocks) of the Reads or Writes on the queues of I/O."""
    rows = table(program, path, f"nvme.cmd.opc == {opcode} && nvme-rdma.cmd.qid > 0", "nvme.cmd.nsid", "nvme.cmd.slba", "nvme.cmd.nlb")
    return [tuple(number(c) for c in r) for r in rows]


def scsi_io(path):
    """(first block, blocks) of SCSI reads and of writes, from the CDBs of iSER's control messages (RFC 7145, RFC 7143, SBC-3)."""
    reads, writes, seen = [], [], set()
    for k in roce.read(path)[1]:
        body = k.body[12 + (4 if k.operation in (3, 5, 22, 23) else 0):]
        if k.transport != 0 or k.operation not in (0, 4, 23) or len(body) < 76 or body[0] >> 4 != 1 or body[28] & 0x3f != 1 or (k.qp, k.psn) in seen: continue
        seen.add((k.qp, k.psn))
        cdb = body[60:76]
        io = {0x28: lambda: (int.from_bytes(cdb[2:6], "big"), int.from_bytes(cdb[7:9], "big")), 0x88: lambda: (int.from_bytes(cdb[2:10], "big"), int.from_bytes(cdb[10:14], "big"))}
        if cdb[0] in io: reads.append(io[cdb[0]]())
        elif cdb[0] & ~2 in io and cdb[0] & 2: writes.append(io[cdb[0] & ~2]())
    return reads, writes


def judge_ulp(w, program, path, text):
    """Whether an expectation about an upper protocol holds, and what was found; None for words of others."""
    pcap = path(".pcap")
    if w[0] == "nvme":
        n = sum(r[0].startswith(w[1].replace("-", " ")) for r in table(program, pcap, "nvme.cmd.opc || nvme.fabrics.cmd.fctype", "nvme.cmd.name"))
        return holds(w[2], n), f"{n} in the capture"
    if w[0] in ("nvme-writes", "nvme-reads-end"):
        io = [f"{n}:{at}+{blocks}" for n, at, blocks in nvme_io(program, pcap, 1 if w[0] == "nvme-writes" else 2)]
        return (io if w[0] == "nvme-writes" else io[-len(w[1:]):]) == w[1:], f"roce-dissect read {' '.join(io) or 'none'}"
    if w[0] in ("nvme-stat", "iscsi-stat"):
        lines = [[int(n) for n in l.split()] for l in text(f".stat-{w[1]}").splitlines()]
        want = [a - b for a, b in zip(lines[-1], lines[0] if len(lines) > 1 else [0] * 4)]
        if w[0] == "nvme-stat": io = [[b for *_, b in nvme_io(program, pcap, opcode)] for opcode in (2, 1)]
        else: io = [[b for _, b in some] for some in scsi_io(pcap)]
        have = [n for some in io for n in (len(some), sum(some))]
        return have == want, f"reads, sectors, writes, sectors: {have} on the wire, the block device counted {want}"
    if w[0] in ("nfs", "nfs-ops"):
        calls = table(program, pcap, "rpc.msgtyp == 0 && rpc.program == 100003", "rpc.xid", "nfs.opcode")
        ops = {xid: [number(o) for o in o.split(",") if o] for xid, o in calls}
        if w[0] == "nfs":
            n = sum(o == NFS4[w[1]] for some in ops.values() for o in some)
            return holds(w[2], n), f"{n} in the capture"
        # a compound that fails ends at the operation that failed
        failed = {r[0] for r in table(program, pcap, "rpc.msgtyp == 1 && nfs.status != 0", "rpc.xid")}
        least = collections.Counter(o for xid, some in ops.items() for o in (some[:1] if xid in failed else some))
        most = collections.Counter(o for some in ops.values() for o in some)
        lines = {l.split()[0]: [int(n) for n in l.split()[1:]] for l in text(".nfsd").splitlines() if l.startswith(("rpc ", "proc4ops "))}
        counted = {o: n for o, n in enumerate(lines["proc4ops"][1:]) if n}
        wrong = {o: (most[o], counted.get(o, 0)) for o in set(most) | set(counted) if not least[o] <= counted.get(o, 0) <= most[o]}
        return not wrong and lines["rpc"][0] == len(ops), f"{len(ops)} calls, the server counted {lines['rpc'][0]}; operations (by number) that differ: {wrong or 'none'}"
    return None


def row(folder):
    """The row of the kernels' table that these results make, or None if they hold no roce-top and roce-fault."""
    def lines(suffix, after):
        for f in sorted(os.listdir(folder)):
            if suffix in f:
                for l in open(os.path.join(folder, f), errors="replace"):
                    m = re.search(after + r" \S+ \((.*?)\)", l)
                    if m: yield f, m[1]
    tops = {}
    for f, how in lines(".top-err-", "watching"):
        mtu = open(os.path.join(folder, f.replace(".top-err-", ".mtu-"))).read().strip()
        tops.setdefault(mtu, set()).add(how)
    faults = sorted({h for _, how in lines(".say-", "active on") for h in how.split(", ")}, reverse=True)
    if not tops or not faults or not os.path.exists(os.path.join(folder, "boot-a.txt")): return None
    kernel = ".".join(open(os.path.join(folder, "boot-a.txt")).read().split(".")[:2])
    seen = "; ".join(f"{' or '.join(sorted(how))} (MTU {mtu})" for mtu, how in sorted(tops.items()))
    return f"| {kernel} | {seen} | {', '.join(faults)} |"


def main():
    words, given = sys.argv[1:], {"--dissect": None, "--readme": None}
    for option in given:
        if option in words[:-1]:
            at = words.index(option)
            given[option] = words[at + 1]; del words[at:at + 2]
    program = given["--dissect"]
    if len(words) != 1: sys.exit(__doc__)
    folder = words[0]
    names = sorted({f[:-5] for f in os.listdir(folder) if f.endswith(".pcap") and not f.endswith(".b.pcap")} | {f[:-7] for f in os.listdir(folder) if f.endswith(".expect")})
    v = Verdicts()
    for name in names: judge(v, folder, name, program)
    made = row(folder)
    if made and given["--readme"]:
        have = [l.strip() for l in open(given["--readme"])]
        v.check("kernels", given["--readme"], made in have, f"this run makes the row {made}")
    for name, what, detail in v.bad: print(f"FAIL {name}: {what}: {detail if len(detail) < 700 else detail[:700] + ' ...'}")
    print(f"{len(names)} recordings, {v.good} comparisons hold, {len(v.bad)} do not")
    sys.exit(1 if v.bad else 0)


if __name__ == "__main__": main()
