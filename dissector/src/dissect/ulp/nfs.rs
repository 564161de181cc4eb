//! Names of ONC RPC programs and procedures, and the operations in an NFSv4 COMPOUND call.

use super::xdr::Xdr;

/// Port mapper.
pub const PORTMAP: u32 = 100_000;
/// NFS.
pub const NFS: u32 = 100_003;
/// Mount.
pub const MOUNT: u32 = 100_005;
/// Network lock manager.
pub const NLM: u32 = 100_021;
/// NFS access control lists.
pub const NFSACL: u32 = 100_227;
/// NFSv4 callbacks; the client chooses the number in this range.
pub const NFS_CALLBACK: u32 = 0x4000_0000;

/// Name of a program.
pub const fn program_name(program: u32) -> Option<&'static str> {
    Some(match program {
        PORTMAP => "PORTMAP",
        NFS => "NFS",
        MOUNT => "MOUNT",
        NLM => "NLM",
        NFSACL => "NFSACL",
        NFS_CALLBACK => "NFS callback",
        _ => return None,
    })
}

const V3: [&str; 22] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    "READ",
    "WRITE",
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
];
const V2: [&str; 18] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "ROOT",
    "LOOKUP",
    "READLINK",
    "READ",
    "WRITECACHE",
    "WRITE",
    "CREATE",
    "REMOVE",
    "RENAME",
    "LINK",
    "SYMLINK",
    "MKDIR",
    "RMDIR",
    "READDIR",
    "STATFS",
];
const MOUNT_NAMES: [&str; 6] = ["NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"];

/// Name of a procedure.
pub fn procedure_name(program: u32, version: u32, procedure: u32) -> Option<&'static str> {
    let n = usize::try_from(procedure).ok()?;
    match (program, version) {
        (NFS, 2) => V2.get(n).copied(),
        (NFS, 3) => V3.get(n).copied(),
        (NFS | NFS_CALLBACK, _) => ["NULL", "COMPOUND"].get(n).copied(),
        (MOUNT, _) => MOUNT_NAMES.get(n).copied(),
        _ if procedure == 0 => Some("NULL"),
        _ => None,
    }
}

/// Name of an NFSv4 operation and how its arguments are laid out, in letters:
/// `u` 32 bits, `U` 64 bits, `s` state id, `S` session id, `v` verifier, `o` opaque or string, `b` bitmap,
/// `f` attributes, `A` an array of state ids, `R` opaque that a read chunk may carry, capitals beyond those their
/// own shapes; `.` ends what can be followed.
const OPERATIONS: [(u32, &str, &str); 74] = [
    (3, "ACCESS", "u"),
    (4, "CLOSE", "us"),
    (5, "COMMIT", "Uu"),
    (6, "CREATE", "Tof"),
    (7, "DELEGPURGE", "U"),
    (8, "DELEGRETURN", "s"),
    (9, "GETATTR", "b"),
    (10, "GETFH", ""),
    (11, "LINK", "o"),
    (12, "LOCK", "uuUUK"),
    (13, "LOCKT", "uUUUo"),
    (14, "LOCKU", "uusUU"),
    (15, "LOOKUP", "o"),
    (16, "LOOKUPP", ""),
    (17, "NVERIFY", "f"),
    (18, "OPEN", "uuuUoHC"),
    (19, "OPENATTR", "u"),
    (20, "OPEN_CONFIRM", "su"),
    (21, "OPEN_DOWNGRADE", "suuu"),
    (22, "PUTFH", "o"),
    (23, "PUTPUBFH", ""),
    (24, "PUTROOTFH", ""),
    (25, "READ", "sUu"),
    (26, "READDIR", "Uvuub"),
    (27, "READLINK", ""),
    (28, "REMOVE", "o"),
    (29, "RENAME", "oo"),
    (30, "RENEW", "U"),
    (31, "RESTOREFH", ""),
    (32, "SAVEFH", ""),
    (33, "SECINFO", "o"),
    (34, "SETATTR", "sf"),
    (35, "SETCLIENTID", "vouoou"),
    (36, "SETCLIENTID_CONFIRM", "Uv"),
    (37, "VERIFY", "f"),
    (38, "WRITE", "sUuR"),
    (39, "RELEASE_LOCKOWNER", "Uo"),
    (40, "BACKCHANNEL_CTL", "."),
    (41, "BIND_CONN_TO_SESSION", "Suu"),
    (42, "EXCHANGE_ID", "vouPI"),
    (43, "CREATE_SESSION", "UuuNN."),
    (44, "DESTROY_SESSION", "S"),
    (45, "FREE_STATEID", "s"),
    (46, "GET_DIR_DELEGATION", "."),
    (47, "GETDEVICEINFO", "Suub"),
    (48, "GETDEVICELIST", "uuUv"),
    (49, "LAYOUTCOMMIT", "."),
    (50, "LAYOUTGET", "uuuUUUsu"),
    (51, "LAYOUTRETURN", "."),
    (52, "SECINFO_NO_NAME", "u"),
    (53, "SEQUENCE", "Suuuu"),
    (54, "SET_SSV", "oo"),
    (55, "TEST_STATEID", "A"),
    (56, "WANT_DELEGATION", "."),
    (57, "DESTROY_CLIENTID", "U"),
    (58, "RECLAIM_COMPLETE", "u"),
    (59, "ALLOCATE", "sUU"),
    (60, "COPY", "."),
    (61, "COPY_NOTIFY", "."),
    (62, "DEALLOCATE", "sUU"),
    (63, "IO_ADVISE", "sUUb"),
    (64, "LAYOUTERROR", "."),
    (65, "LAYOUTSTATS", "."),
    (66, "OFFLOAD_CANCEL", "s"),
    (67, "OFFLOAD_STATUS", "s"),
    (68, "READ_PLUS", "sUu"),
    (69, "SEEK", "sUu"),
    (70, "WRITE_SAME", "."),
    (71, "CLONE", "ssUUU"),
    (72, "GETXATTR", "o"),
    (73, "SETXATTR", "uoo"),
    (74, "LISTXATTRS", "Uu"),
    (75, "REMOVEXATTR", "o"),
    (10044, "ILLEGAL", "."),
];

/// Operations of the callback program.
const CALLBACKS: [(u32, &str); 13] = [
    (3, "CB_GETATTR"),
    (4, "CB_RECALL"),
    (5, "CB_LAYOUTRECALL"),
    (6, "CB_NOTIFY"),
    (7, "CB_PUSH_DELEG"),
    (8, "CB_RECALL_ANY"),
    (9, "CB_RECALLABLE_OBJ_AVAIL"),
    (10, "CB_RECALL_SLOT"),
    (11, "CB_SEQUENCE"),
    (12, "CB_WANTS_CANCELLED"),
    (13, "CB_NOTIFY_LOCK"),
    (14, "CB_NOTIFY_DEVICEID"),
    (15, "CB_OFFLOAD"),
];

/// Name of an NFSv4 operation.
pub fn operation_name(op: u32) -> Option<&'static str> {
    OPERATIONS.iter().find(|o| o.0 == op).map(|o| o.1)
}

/// Status of NFS in words; codes of version 3 and 4 are the same up to 10008.
pub const fn status_name(status: u32) -> Option<&'static str> {
    Some(match status {
        0 => "OK",
        1 => "PERM",
        2 => "NOENT",
        5 => "IO",
        6 => "NXIO",
        13 => "ACCESS",
        17 => "EXIST",
        18 => "XDEV",
        20 => "NOTDIR",
        21 => "ISDIR",
        22 => "INVAL",
        27 => "FBIG",
        28 => "NOSPC",
        30 => "ROFS",
        31 => "MLINK",
        63 => "NAMETOOLONG",
        66 => "NOTEMPTY",
        69 => "DQUOT",
        70 => "STALE",
        10001 => "BADHANDLE",
        10003 => "BAD_COOKIE",
        10004 => "NOTSUPP",
        10005 => "TOOSMALL",
        10006 => "SERVERFAULT",
        10007 => "BADTYPE",
        10008 => "DELAY",
        10010 => "DENIED",
        10011 => "EXPIRED",
        10012 => "LOCKED",
        10013 => "GRACE",
        10014 => "FHEXPIRED",
        10016 => "WRONGSEC",
        10018 => "RESOURCE",
        10020 => "NOFILEHANDLE",
        10021 => "MINOR_VERS_MISMATCH",
        10022 => "STALE_CLIENTID",
        10023 => "STALE_STATEID",
        10024 => "OLD_STATEID",
        10025 => "BAD_STATEID",
        10026 => "BAD_SEQID",
        10032 => "ATTRNOTSUPP",
        10036 => "BADXDR",
        10044 => "OP_ILLEGAL",
        10052 => "BADSESSION",
        10053 => "BADSLOT",
        10054 => "COMPLETE_ALREADY",
        10055 => "CONN_NOT_BOUND_TO_SESSION",
        10063 => "SEQ_MISORDERED",
        10068 => "RETRY_UNCACHED_REP",
        10071 => "OP_NOT_IN_SESSION",
        10078 => "DEADSESSION",
        _ => return None,
    })
}

/// Operations looked at in one COMPOUND.
const MAX_OPERATIONS: u32 = 32;

/// An operation of a COMPOUND call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number.
    pub number: u32,
    /// First byte, from the start of the COMPOUND's arguments.
    pub at: usize,
}

/// A COMPOUND call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compound {
    /// Minor version of NFSv4.
    pub minor: u32,
    /// Operations that the count announces.
    pub announced: u32,
    /// Those that could be reached.
    pub operations: Vec<Operation>,
}

impl Compound {
    /// Reads the arguments. `moved` is where (in them) a read chunk took opaque data out.
    pub fn read(arguments: &[u8], moved: Option<usize>, callback: bool) -> Option<Self> {
        let mut x = Xdr::new(arguments);
        x.opaque()?; // tag
        let minor = x.u32()?;
        if callback {
            x.u32()?; // identifier
        }
        let announced = x.u32()?;
        let mut all = Self { minor, announced, operations: Vec::new() };
        for _ in 0..announced.min(MAX_OPERATIONS) {
            let at = x.position();
            let Some(number) = x.u32() else { break };
            all.operations.push(Operation { number, at });
            // callbacks have few operations; the first says what it is about
            let Some((.., layout)) = OPERATIONS.iter().find(|o| o.0 == number).filter(|_| !callback) else { break };
            if layout.chars().try_for_each(|c| argument(&mut x, c, moved)).is_none() {
                break;
            }
        }
        Some(all)
    }

    /// `SEQUENCE, PUTFH, READ`.
    pub fn words(&self, callback: bool) -> String {
        let name = |n: u32| {
            if callback { CALLBACKS.iter().find(|c| c.0 == n).map(|c| c.1) } else { operation_name(n) }
        };
        let mut names: Vec<_> = self
            .operations
            .iter()
            .map(|o| name(o.number).map_or_else(|| format!("op {}", o.number), str::to_owned))
            .collect();
        if u32::try_from(self.operations.len()).is_ok_and(|n| n < self.announced) {
            names.push("…".to_owned());
        }
        names.join(", ")
    }
}

/// Passes over one argument.
fn argument(x: &mut Xdr<'_>, letter: char, moved: Option<usize>) -> Option<()> {
    match letter {
        'u' => x.u32().map(drop),
        'U' => x.u64().map(drop),
        's' | 'S' => x.skip(16),
        'v' => x.skip(8),
        'o' => x.opaque().map(drop),
        'b' => bitmap(x),
        'f' => attributes(x),
        'A' => {
            let n = usize::try_from(x.u32()?).ok()?;
            x.skip(n.checked_mul(16)?)
        }
        // data of WRITE: their length stays, the bytes may have gone into a read chunk
        'R' => {
            let len = usize::try_from(x.u32()?).ok()?;
            if moved == Some(x.position()) { Some(()) } else { x.skip(len) }
        }
        // type of CREATE
        'T' => match x.u32()? {
            5 => x.opaque().map(drop),
            3 | 4 => x.u64().map(drop),
            _ => Some(()),
        },
        // owner of LOCK
        'K' => {
            if x.u32()? == 0 {
                x.skip(20)
            } else {
                x.skip(4 + 16 + 4 + 8)?;
                x.opaque().map(drop)
            }
        }
        // how OPEN creates
        'H' => {
            if x.u32()? == 0 {
                return Some(());
            }
            match x.u32()? {
                0 | 1 => attributes(x),
                2 => x.skip(8),
                3 => {
                    x.skip(8)?;
                    attributes(x)
                }
                _ => None,
            }
        }
        // what OPEN claims
        'C' => match x.u32()? {
            0 | 3 => x.opaque().map(drop),
            1 => x.u32().map(drop),
            2 => {
                x.skip(16)?;
                x.opaque().map(drop)
            }
            5 => x.skip(16),
            4 | 6 => Some(()),
            _ => None,
        },
        // state protection of EXCHANGE_ID
        'P' => match x.u32()? {
            0 => Some(()),
            1 => {
                bitmap(x)?;
                bitmap(x)
            }
            _ => None,
        },
        // implementation of EXCHANGE_ID
        'I' => {
            for _ in 0..x.u32()?.min(1) {
                x.opaque()?;
                x.opaque()?;
                x.skip(12)?;
            }
            Some(())
        }
        // channel of CREATE_SESSION
        'N' => {
            x.skip(24)?;
            let n = usize::try_from(x.u32()?).ok()?;
            x.skip(n.checked_mul(4)?)
        }
        _ => None,
    }
}

fn bitmap(x: &mut Xdr<'_>) -> Option<()> {
    let n = usize::try_from(x.u32()?).ok()?;
    x.skip(n.checked_mul(4)?)
}

fn attributes(x: &mut Xdr<'_>) -> Option<()> {
    bitmap(x)?;
    x.opaque().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[u32]) -> Vec<u8> {
        list.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn operations_are_in_order_and_once() {
        assert!(OPERATIONS.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!((operation_name(53), operation_name(2)), (Some("SEQUENCE"), None));
    }

    #[test]
    fn a_write_whose_data_went_into_a_chunk() {
        let mut a = words(&[0, 1, 3]);
        a.extend(words(&[53, 1, 2, 3, 4, 5, 6, 7, 8]));
        a.extend(words(&[38, 0, 0, 0, 0, 0, 0, 2, 12000]));
        let here = a.len();
        a.extend(words(&[9, 1, 0x18]));
        let c = Compound::read(&a, Some(here), false).unwrap();
        assert_eq!((c.minor, c.words(false).as_str()), (1, "SEQUENCE, WRITE, GETATTR"));
        // without the chunk the data are missing, and so is what follows
        assert_eq!(Compound::read(&a, None, false).unwrap().words(false), "SEQUENCE, WRITE, …");
    }

    #[test]
    fn every_cut_and_flip_ends() {
        let mut a = words(&[0, 1, 4]);
        a.extend(words(&[18, 0, 1, 2, 9, 9, 3, 0x6162_6300, 1, 1, 1, 7, 4, 0, 0, 2, 0x6162_0000]));
        a.extend(words(&[42, 1, 2, 3, 0x6162_6300, 0, 0, 1, 0, 0, 0, 0, 0]));
        a.extend(words(&[24, 10]));
        assert_eq!(Compound::read(&a, None, false).unwrap().words(false), "OPEN, EXCHANGE_ID, PUTROOTFH, GETFH");
        for n in 0..a.len() {
            let _ = Compound::read(&a[..n], None, false);
            let mut b = a.clone();
            b[n] = 0xff;
            assert!(Compound::read(&b, None, false).is_none_or(|c| c.operations.len() <= 32));
        }
    }
}
