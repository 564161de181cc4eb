"""A second reading of RoCEv2 captures, for judging the project's programs: it shares nothing with them, and is written for being
checked by eye.  Ethernet, VLAN tags, IPv4 and IPv6 without extension headers, UDP port 4791, BTH, DETH, AETH, RETH, ICRC."""
import collections, ipaddress, struct, zlib

TRANSPORT = {0: "RC", 1: "UC", 2: "RD", 3: "UD", 5: "XRC"}
OPERATION = {
    0: "SEND First", 1: "SEND Middle", 2: "SEND Last", 3: "SEND Last with Immediate", 4: "SEND Only", 5: "SEND Only with Immediate",
    6: "RDMA WRITE First", 7: "RDMA WRITE Middle", 8: "RDMA WRITE Last", 9: "RDMA WRITE Last with Immediate", 10: "RDMA WRITE Only",
    11: "RDMA WRITE Only with Immediate", 12: "RDMA READ Request", 13: "RDMA READ response First", 14: "RDMA READ response Middle",
    15: "RDMA READ response Last", 16: "RDMA READ response Only", 17: "Acknowledge", 18: "ATOMIC Acknowledge", 19: "CmpSwap", 20: "FetchAdd",
    21: "RESYNC", 22: "SEND Last with Invalidate", 23: "SEND Only with Invalidate", 28: "FLUSH", 29: "ATOMIC WRITE"}
NAK = {0: "psn_sequence_error", 1: "invalid_request", 2: "remote_access_error", 3: "remote_operational_error", 4: "invalid_rd_request"}
CM = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ", 0x18: "SIDR_REP", 0x19: "LAP", 0x1a: "APR"}
ECN = ("not_ect", "ect1", "ect0", "ce")


def opcode_name(opcode):
    if opcode == 0x81: return "CNP"
    t, o = TRANSPORT.get(opcode >> 5), OPERATION.get(opcode & 31)
    return f"{t} {o}" if t and o else f"0x{opcode:02x}"


class Packet:
    """One RoCEv2 packet; `number` counts every frame of the file from 1."""
    def __init__(self, **k): self.__dict__.update(k)
    @property
    def name(self): return opcode_name(self.opcode)
    @property
    def transport(self): return self.opcode >> 5
    @property
    def operation(self): return self.opcode & 31
    @property
    def is_response(self): return self.transport in (0, 5) and 13 <= self.operation <= 18
    @property
    def bears_data(self): return self.is_response and self.operation != 17
    @property
    def is_request(self): return self.opcode != 0x81 and not self.is_response
    @property
    def has_aeth(self): return self.transport in (0, 5) and self.operation in (13, 15, 16, 17, 18)
    @property
    def nak(self):
        return NAK.get(self.syndrome & 31, "?") if self.has_aeth and self.operation == 17 and self.syndrome >> 5 == 3 else None
    @property
    def rnr(self): return self.has_aeth and self.operation == 17 and self.syndrome >> 5 == 1
    @property
    def flow(self):
        """What the project calls a flow: source, destination, destination QP, and for datagrams the source QP."""
        return (self.src, self.dst, self.qp, self.src_qp)


def frames(path):
    """(time, bytes, length on the wire) of a classic little-endian pcap of Ethernet."""
    b = open(path, "rb").read()
    if b[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"): raise ValueError(f"{path} is not a little-endian pcap")
    unit = 1e-9 if b[0] == 0x4d else 1e-6
    if struct.unpack_from("<I", b, 20)[0] & 0xffff != 1: raise ValueError(f"{path} is not of Ethernet")
    o = 24
    while o + 16 <= len(b):
        s, us, cl, ol = struct.unpack_from("<IIII", b, o)
        yield s + us * unit, b[o + 16:o + 16 + cl], ol
        o += 16 + cl


def icrc_of(l3, version, twice=False):
    """The invariant CRC over the packet from its IP header on, with the fields masked that change on the way.
    `twice`: what rdma_rxe 6.12 puts into a FLUSH, the transport headers going through the CRC two times."""
    m = bytearray(l3[:-4])
    header = (m[0] & 15) * 4 if version == 4 else 40
    if version == 4:
        m[1] = m[8] = m[10] = m[11] = 0xff
    else:
        m[0] |= 0x0f; m[1] = m[2] = m[3] = m[7] = 0xff
    m[header + 6] = m[header + 7] = m[header + 12] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(m) + (bytes(l3[header + 8:-4]) if twice else b"")) & 0xffffffff)


def dissect(number, time, f, wire):
    """A Packet, or None if the frame is not (or not certainly) RoCEv2."""
    if len(f) < 14: return None
    kind, o, vlan = struct.unpack_from(">H", f, 12)[0], 14, None
    while kind in (0x8100, 0x88a8) and len(f) >= o + 4:
        if vlan is None: vlan = struct.unpack_from(">H", f, o)[0] & 0xfff
        kind = struct.unpack_from(">H", f, o + 2)[0]; o += 4
    if kind == 0x800:
        if len(f) < o + 20 or f[o + 9] != 17 or struct.unpack_from(">H", f, o + 6)[0] & 0x1fff: return None
        version, header, total, tos = 4, (f[o] & 15) * 4, struct.unpack_from(">H", f, o + 2)[0], f[o + 1]
        src, dst = f[o + 12:o + 16], f[o + 16:o + 20]
        ident = struct.unpack_from(">H", f, o + 4)[0]
    elif kind == 0x86dd:
        if len(f) < o + 40 or f[o + 6] != 17: return None
        version, header, total = 6, 40, 40 + struct.unpack_from(">H", f, o + 4)[0]
        tos = (struct.unpack_from(">H", f, o)[0] >> 4) & 0xff
        src, dst, ident = f[o + 8:o + 24], f[o + 24:o + 40], None
    else: return None
    l3 = f[o:o + total]
    if len(l3) < header + 8 + 16 or struct.unpack_from(">H", l3, header + 2)[0] != 4791: return None
    p = l3[header + 8:]
    opcode = p[0]
    t, op = opcode >> 5, opcode & 31
    src_qp = int.from_bytes(p[17:20], "big") if t == 3 and len(p) >= 24 else None
    k = Packet(number=number, time=time, frame=f, wire=wire, truncated=len(f) != wire, vlan=vlan, version=version, ecn=tos & 3, dscp=tos >> 2, ident=ident,
               src=str(ipaddress.ip_address(src)), dst=str(ipaddress.ip_address(dst)), src_port=struct.unpack_from(">H", l3, header)[0], mac=f[6:12],
               opcode=opcode, solicited=bool(p[1] & 0x80), pad=(p[1] >> 4) & 3, becn=bool(p[4] & 0x40), ack_req=bool(p[8] & 0x80),
               qp=int.from_bytes(p[5:8], "big"), psn=int.from_bytes(p[9:12], "big"), src_qp=src_qp, syndrome=None, cm=None, body=p,
               icrc="unchecked" if len(f) != wire else "good" if icrc_of(l3, version) == l3[-4:] else "bad")
    if k.icrc == "bad" and opcode == 0x1c and icrc_of(l3, version, twice=True) == l3[-4:]: k.icrc = "flush"
    if k.has_aeth and len(p) >= 16: k.syndrome = p[12]
    if k.qp == 1 and t == 3 and len(p) >= 20 + 24 and p[21] == 7: k.cm = CM.get(struct.unpack_from(">H", p, 36)[0], "?")
    return k


def read(path):
    """(all frames' count, RoCEv2 packets) of a file."""
    all_, n = [], 0
    for n, (t, f, wire) in enumerate(frames(path), 1):
        k = dissect(n, t, f, wire)
        if k: all_.append(k)
    return n, all_


def flows(packets):
    """Per flow what a counter must say: packets, bytes, opcodes, ecn, naks, rnr_naks, icrc."""
    out = {}
    for k in packets:
        r = out.setdefault(k.flow, dict(packets=0, bytes=0, opcodes=collections.Counter(), ecn=collections.Counter(), naks=collections.Counter(), rnr_naks=0, icrc=collections.Counter(), ip_version=k.version, vlan=k.vlan))
        r["packets"] += 1; r["bytes"] += k.wire; r["opcodes"][k.name] += 1; r["ecn"][ECN[k.ecn]] += 1; r["icrc"][k.icrc] += 1
        if k.nak: r["naks"][k.nak] += 1
        r["rnr_naks"] += bool(k.rnr)
    return out


def repeats(packets):
    """How often a PSN came again: requests, data-bearing responses; and how often a requester's PSN went down."""
    seen, last, again, again_response, back = set(), {}, 0, 0, 0
    for k in packets:
        if k.icrc == "bad" or k.opcode == 0x81 or (k.transport == 3 and k.qp == 1) or k.operation == 17: continue
        key = (k.src, k.qp, k.is_response, k.psn) + ((k.src_qp,) if k.transport == 3 else ())
        if key in seen:
            if k.is_response: again_response += 1
            else: again += 1
        seen.add(key)
        if k.transport == 0 and not k.is_response:
            l = last.get((k.src, k.qp))
            if l is not None and ((k.psn - l) & 0xffffff) >= 0x800000: back += 1
            last[(k.src, k.qp)] = k.psn
    return again, again_response, back
