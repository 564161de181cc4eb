#!/usr/bin/env python3
"""The index of tests/captures: what is in each file, by the reading of roce.py.

    index.py collect FOLDER RESULTS...   copies the captures of lab runs into FOLDER, and what rxe counted into FOLDER/counters.json
    index.py write FOLDER                writes FOLDER/INDEX.md (says in the row where tshark, if installed, counts otherwise)
    index.py check FOLDER                whether the index says what the files hold; needs python3 alone
"""
import collections, json, os, shutil, subprocess, sys
import roce

NAK = {"psn_sequence_error": "PSN sequence error", "invalid_request": "invalid request", "remote_access_error": "remote access error",
       "remote_operational_error": "remote operational error", "invalid_rd_request": "invalid RD request"}
HERE = os.path.dirname(os.path.abspath(__file__))


def collect(folder, results):
    os.makedirs(folder, exist_ok=True)
    cf = os.path.join(folder, "counters.json")
    counts = json.load(open(cf)) if os.path.exists(cf) else {}
    for d in results:
        for f in sorted(os.listdir(d)):
            p = os.path.join(d, f)
            if f.endswith(".pcap") and os.path.getsize(p) > 24:
                shutil.copyfile(p, os.path.join(folder, f))
            elif f.endswith((".count-a", ".count-b")):
                k = {l.split()[0]: int(l.split()[1]) for l in open(p)}
                if k: counts.setdefault(f[:-8], {})[f[-1]] = k
    counts = {n: c for n, c in counts.items() if os.path.exists(os.path.join(folder, n + ".pcap"))}
    with open(cf, "w") as o:
        o.write("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(counts[n], sort_keys=True)}" for n in sorted(counts)) + "\n}\n")


def pairs(counter, between): return between.join(f"{n} x{c}" for n, c in counter.items())


def spelled(name):
    """RC RDMA WRITE Last with Immediate: RC_WRITE_LAST_IMM"""
    for long, short in (("RDMA ", ""), (" with Immediate", "_IMM"), (" with Invalidate", "_INV"), ("response", "RESP"), ("ATOMIC Acknowledge", "ATOMIC_ACK"),
                        ("Acknowledge", "ACK"), ("CmpSwap", "CMP_SWAP"), ("FetchAdd", "FETCH_ADD")): name = name.replace(long, short)
    return name.upper().replace(" ", "_")


def counted(packets):
    """Opcodes as the index has them; packets with a wrong ICRC say nothing."""
    ops = collections.Counter(spelled(k.name) for k in packets if k.icrc != "bad")
    return " ".join(f"{k}:{v}" for k, v in sorted(ops.items()))


def row(path, counts):
    """The cells of a file that its bytes alone decide."""
    name = os.path.basename(path)[:-5]
    total, packets = roce.read(path)
    good = [k for k in packets if k.icrc not in ("bad", "flush")]
    again, again_response, back = roce.repeats(packets)
    x = []
    def say(what, n):
        if n: x.append(f"{what}: {n}")
    naks = collections.Counter(NAK[k.nak] for k in good if k.nak)
    if naks: x.append("NAK: " + pairs(naks, ", "))
    rnr = sum(k.rnr for k in good)
    if rnr: x.append(f"RNR NAK x{rnr}")
    say("request PSNs seen again", again); say("response PSNs seen again", again_response)
    if back: x.append(f"request PSN goes back: {back} times")
    say("ICRC wrong", sum(k.icrc == "bad" for k in packets))
    say("FLUSH with rxe's own ICRC (headers counted twice, not the standard's)", sum(k.icrc == "flush" for k in packets))
    say("ECN CE", sum(k.ecn == 3 for k in packets)); say("ECT", sum(k.ecn in (1, 2) for k in packets))
    say("VLAN tag", sum(k.vlan is not None for k in packets)); say("IPv6", sum(k.version == 6 for k in packets)); say("BECN", sum(k.becn for k in packets))
    cm = collections.Counter(k.cm for k in good if k.cm)
    if cm: x.append("CM: " + pairs(cm, " "))
    say("solicited", sum(k.solicited for k in good))
    pad = collections.Counter(k.pad for k in good if k.pad)
    if pad: x.append("pad " + " ".join(f"{k}:{c}" for k, c in sorted(pad.items())))
    say("TRUNCATED", sum(k.truncated for k in packets))
    for e in "ab":
        k = {n: c for n, c in counts.get(name, {}).get(e, {}).items() if n not in ("sent_pkts", "rcvd_pkts")}
        if k: x.append(f"rxe counters {e}: " + " ".join(f"{n} {c}" for n, c in sorted(k.items())))
    k = counts.get(name, {}).get("a", {})
    if k:
        mine = sum(k.mac == bytes.fromhex("52540000000a") for k in packets)
        ds, dr = k.get("sent_pkts", 0) - mine, k.get("rcvd_pkts", 0) - (len(packets) - mine)
        if ds or dr: x.append(f"not in the file: {ds} sent, {dr} received")
    qps = len({(k.src, k.qp) for k in good})
    return [f"{name}.pcap", os.path.getsize(path), total, len(packets), qps, counted(packets)], x, packets


def differs_from_tshark(path, packets):
    try: out = subprocess.run(["tshark", "-r", path, "-Y", "infiniband.bth", "-T", "fields", "-e", "infiniband.bth.opcode"], capture_output=True, text=True).stdout
    except FileNotFoundError: return ""
    theirs = collections.Counter(int(l.split(",")[0], 0) for l in out.split("\n") if l.strip())
    ours = collections.Counter(k.opcode for k in packets)
    return ", ".join(f"0x{k:02x}: {ours[k]} here, {theirs[k]} in tshark" for k in sorted(set(ours) | set(theirs)) if ours[k] != theirs[k])


def table(folder, tshark):
    counts = json.load(open(os.path.join(folder, "counters.json")))
    notes = json.load(open(os.path.join(HERE, "notes.json")))
    files = sorted(f for f in os.listdir(folder) if f.endswith(".pcap"))
    lines, sums, everything = [], [0, 0, 0], []
    for f in files:
        cells, notable, packets = row(os.path.join(folder, f), counts)
        d = differs_from_tshark(os.path.join(folder, f), packets) if tshark else ""
        if d: notable.append("other than tshark: " + d)
        if notes.get(f[:-5]): notable.append(notes[f[:-5]])
        lines.append("| " + " | ".join(map(str, cells + ["; ".join(notable)])) + " |")
        for i, v in enumerate(cells[1:4]): sums[i] += v
        everything += packets
    head = open(os.path.join(HERE, "index-head.md")).read()
    return (head + f"\n{len(files)} files, {sums[1]} packets ({sums[2]} RoCEv2), {sums[0]} bytes.\n\nOpcodes over all files (packets whose ICRC is right):\n\n"
            + counted(everything)
            + "\n\n| file | bytes | packets | RoCEv2 | destination QPs | opcodes | notable |\n|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("collect", "write", "check"): sys.exit(__doc__)
    folder = sys.argv[2]; index = os.path.join(folder, "INDEX.md")
    if sys.argv[1] == "collect": collect(folder, sys.argv[3:])
    elif sys.argv[1] == "write":
        with open(index, "w") as o: o.write(table(folder, True))
    else:
        want, have = table(folder, False).split("\n"), open(index).read().split("\n")
        strip = lambda l: "; ".join(p for p in l.removesuffix(" |").split("; ") if not p.startswith("other than tshark: "))
        have, want = [strip(l) for l in have], [strip(l) for l in want]
        bad = [f"has      {l}" for l in have if l not in want] + [f"expected {l}" for l in want if l not in have]
        if bad: sys.exit(f"{index} does not say what the files hold (tests/lab/index.py write {folder} makes it anew):\n" + "\n".join(l[:400] for l in bad[:12]))
        print(f"{index} holds: {len([l for l in want if l.startswith('| ')]) - 1} files")


if __name__ == "__main__": main()
