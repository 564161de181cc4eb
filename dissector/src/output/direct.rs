//! Columns of transport fields, read straight out of the packet.
//!
//! `-T fields` with nothing but fields that stand in a packet once and are plain numbers needs no tree. What is
//! printed is the same, and a test says so for every field of the table.

use super::columns::Columns;
use super::value;
use crate::dissect::{Field, transport as t};
use crate::wire::Packet;

/// Reads a field, if the packet has it.
type Read = fn(&Packet<'_>) -> Option<u64>;

/// Fields that can be read so.
static DIRECT: &[(&Field, Read)] = &[
    (&t::BTH_OPCODE, |p| Some(p.bth.opcode().into())),
    (&t::BTH_PADCNT, |p| Some(p.bth.pad_count().into())),
    (&t::BTH_P_KEY, |p| Some(p.bth.p_key().0.into())),
    (&t::BTH_DESTQP, |p| Some(p.bth.dest_qp().get().into())),
    (&t::BTH_PSN, |p| Some(p.bth.psn().get().into())),
    (&t::AETH_SYNDROME, |p| p.ext.aeth.map(|a| a.syndrome().0.into())),
    (&t::AETH_MSN, |p| p.ext.aeth.map(|a| a.msn().into())),
    (&t::DETH_SRCQP, |p| p.ext.deth.map(|d| d.src_qp().get().into())),
];

/// Columns that need no tree.
#[derive(Clone, Debug)]
pub struct Direct {
    columns: Vec<(&'static Field, Read)>,
    separator: u8,
    quote: Option<u8>,
}

impl Direct {
    /// If every column can be read so. (How occurrences are joined does not matter: there is one at most.)
    pub fn new(columns: &Columns) -> Option<Self> {
        let find = |f: &&'static Field| DIRECT.iter().find(|(d, _)| d.is(f)).map(|(_, read)| (*f, *read));
        Some(Self {
            columns: columns.fields.iter().map(|f| find(f)).collect::<Option<_>>()?,
            separator: columns.separator,
            quote: columns.quote,
        })
    }

    /// One packet; `None` for a frame without BTH.
    pub fn packet(&self, packet: Option<&Packet<'_>>, out: &mut Vec<u8>) {
        for (i, (field, read)) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(self.separator);
            }
            if let Some(v) = packet.and_then(read) {
                out.extend(self.quote);
                value::integer(field, v, out);
                out.extend(self.quote);
            }
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Reader;
    use crate::dissect::{Input, RecordInfo, Tree, Wanted, dissect};
    use crate::frame::{Frame, LinkType};

    #[test]
    fn the_same_as_with_a_tree() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/captures");
        let mut lines = 0;
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "pcap") {
                continue;
            }
            let mut columns = Columns::new(DIRECT.iter().map(|(f, _)| *f).collect());
            columns.quote = Some(b'"');
            let direct = Direct::new(&columns).unwrap();
            let mut wanted = Wanted::NONE;
            columns.fields.iter().for_each(|f| wanted.insert(f));
            let mut reader = Reader::open(path).unwrap();
            while let Some(r) = reader.next().unwrap() {
                // whole, and cut inside the headers
                for n in [r.bytes.len(), r.bytes.len().min(58), r.bytes.len().min(50)] {
                    let bytes = &r.bytes[..n];
                    let frame = Frame::parse(bytes, r.wire_len as usize, LinkType(r.link), crate::wire::ROCE_UDP_PORT);
                    let packet = frame.packet();
                    let input = Input {
                        record: RecordInfo::default(),
                        frame: &frame,
                        packet: packet.as_ref(),
                        icrc: None,
                        context: None,
                        analysis: None,
                    };
                    let mut tree = Tree::for_fields(&wanted);
                    dissect(&input, &mut tree);
                    let (mut with, mut without) = (Vec::new(), Vec::new());
                    columns.packet(&tree, &mut with);
                    direct.packet(packet.as_ref().and_then(|p| p.as_ref().ok()), &mut without);
                    assert_eq!(String::from_utf8(with), String::from_utf8(without));
                    lines += 1;
                }
            }
        }
        assert!(lines > 10_000);
    }
}
