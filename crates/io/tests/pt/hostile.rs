//! Files made to do harm, or damaged: each gives an error or a value, and takes memory in proportion to its length.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Cursor;

use crate::show::{fixture, show};
use flambeau_base::ErrorKind;
use flambeau_io::pickle::{Node, Pickle, Value, parse, write};
use flambeau_io::pt::{PtReader, PtWriter};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Counts what each thread holds.
struct Counting;

fn count(bytes: isize) {
    // A thread that ends has no counter any more, and nothing to count.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every request is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `f` and gives the most that was held at once, beyond what was held before.
fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let out = f();
    (out, (PEAK.get() - before) as usize)
}

/// An archive of a pickle and one storage.
fn archive(pickle: &[u8], storage: &[u8]) -> Vec<u8> {
    let mut writer = PtWriter::new(Vec::new(), "archive");
    writer.pickle(pickle).unwrap();
    writer.storage("0", storage).unwrap();
    writer.finish().unwrap()
}

/// A tensor of f32 on a storage of eight bytes, as PyTorch pickles it.
fn tensor(numel: i64, offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
    let mut p = Pickle::new();
    let (tag, class, key, device) = (p.str("storage"), p.global("torch", "FloatStorage"), p.str("0"), p.str("cpu"));
    let id = p.tuple([tag, class, key, device, Value::Int(numel)]);
    let storage = p.add(Node::Persistent(id));
    let ints = |p: &mut Pickle, v: &[i64]| p.tuple(v.iter().map(|&n| Value::Int(n)).collect::<Vec<_>>());
    let (sizes, strides) = (ints(&mut p, sizes), ints(&mut p, strides));
    let dict = p.global("collections", "OrderedDict");
    let hooks = p.reduce(dict, []);
    let function = p.global("torch._utils", "_rebuild_tensor_v2");
    let root = p.reduce(function, [storage, Value::Int(offset), sizes, strides, Value::Bool(false), hooks]);
    p.set_root(root);
    archive(&write(&p).unwrap(), &[0; 8])
}

#[test]
fn tensors_stay_inside_their_storage() {
    assert!(show(Cursor::new(tensor(2, 0, &[2], &[1]))).is_ok());
    assert!(show(Cursor::new(tensor(2, 1, &[5, 1], &[0, 9]))).is_ok());
    assert!(show(Cursor::new(tensor(2, 7, &[0], &[1]))).is_ok());
    let max = i64::MAX;
    for (numel, offset, sizes, strides) in [
        (2, 0, &[3][..], &[1][..]),
        (2, 1, &[2], &[1]),
        (2, -1, &[1], &[1]),
        (2, 0, &[-1], &[1]),
        (2, 1, &[2], &[-1]),
        (2, 0, &[2, 2], &[1]),
        (2, 0, &[2, max], &[0, 0]),
        (2, 0, &[2], &[max]),
        (2, max, &[2], &[1]),
        (2, 0, &[3, 3], &[max / 2, max / 2]),
        (1 << 40, 0, &[1 << 40], &[1]),
        (max, 0, &[1], &[1]),
        (-1, 0, &[1], &[1]),
        (1, 0, &[1], &[1]),
    ] {
        let (result, held) = peak(|| show(Cursor::new(tensor(numel, offset, sizes, strides))));
        assert!(result.is_err(), "{numel} {offset} {sizes:?} {strides:?}");
        assert!(held < 1 << 20, "{held} bytes");
    }
}

#[test]
fn lengths_are_not_believed() {
    for pickle in [
        &b"\x80\x02X\xff\xff\xff\xffabc."[..],
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc.",
        b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        b"\x80\x02]r\xff\xff\xff\xff.",
        b"\x80\x02]p4294967295\n.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x00abc.",
    ] {
        let (result, held) = peak(|| parse(pickle));
        assert_eq!(result.expect_err("a length that is not there").kind(), ErrorKind::Unpickling);
        assert!(held < 1 << 16, "{held} bytes");
    }
}

#[test]
fn broken_pickles_are_refused() {
    for pickle in [
        &b""[..],
        b".",
        b"0.",
        b"t.",
        b"(.",
        b"\x80\x09N.",
        b"a.",
        b"]a.",
        b"N(e.",
        b"(K\x01K\x02a.",
        b"K\x01K\x02a.",
        b"h\x00.",
        b"]N(NNNu.",
        b"}(Nu.",
        b"R.",
        b"NR.",
        b"]Nb.",
        b"\x93.",
        b"NN\x93.",
        b"\x82\x01.",
        b"\x97.",
        b"\xff.",
        b"X\x01\x00\x00\x00\xff.",
        b"Iten\n.",
        b"Sno quotes\n.",
        b"V\\uD800\n.",
        b"(o.",
        b"N",
        b"cos\nsystem",
    ] {
        let error = parse(pickle).expect_err(&format!("{pickle:?}"));
        assert!(matches!(error.kind(), ErrorKind::Unpickling | ErrorKind::NotImplemented), "{error:?}");
    }
}

#[test]
fn no_call_is_made() {
    for pickle in [
        &b"cos\nsystem\n(X\x04\x00\x00\x00exittR."[..],
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04exit\x85R.",
        b"(ios\nsystem\n.",
        b"(cos\nsystem\no.",
        b"cposix\nsystem\n)\x81.",
        b"cbuiltins\neval\n.",
        b"c__builtin__\ngetattr\nccollections\nOrderedDict\nX\x05\x00\x00\x00clear\x86R.",
        b"ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00__class__cos\nsystem\nsb.",
        b"ctorch._utils\n_rebuild_device_tensor_from_numpy\n)R.",
        b"cnumpy.core.multiarray\nscalar\n)R.",
        b"ctorch\nload\n)R.",
        b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nctorch\nTensor\n)}tR.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\ncos\nsystem\n)}tR.",
    ] {
        let error = show(Cursor::new(archive(pickle, &[]))).expect_err("a call");
        assert!(matches!(error.kind(), ErrorKind::Unpickling | ErrorKind::NotImplemented), "{error:?}");
    }
}

#[test]
fn calls_with_wrong_arguments_are_refused() {
    for pickle in [
        &b"ctorch\nSize\n)R."[..],
        b"ctorch\nSize\nN\x85R.",
        b"ctorch\ndevice\nK\x01\x85R.",
        b"ccollections\nOrderedDict\nK\x01\x85R.",
        b"ccollections\nOrderedDict\nNR.",
        b"ccollections\nOrderedDict\n)RNb.",
        b"c__builtin__\nset\nK\x01\x85R.",
        b"c__builtin__\ncomplex\nNN\x86R.",
        b"ctorch._utils\n_rebuild_parameter\n)R.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(NQK\x00))\x89NtR.",
        b"NQ.",
        b"(X\x07\x00\x00\x00storagecos\nsystem\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x00tQ.",
    ] {
        let error = show(Cursor::new(archive(pickle, &[]))).expect_err("wrong arguments");
        assert!(matches!(error.kind(), ErrorKind::Unpickling | ErrorKind::NotImplemented), "{error:?}");
    }
}

#[test]
fn depth_is_bounded_where_objects_are_made() {
    let nested = |n: usize| [vec![b']'; n], vec![b'a'; n - 1], vec![b'.']].concat();
    assert!(show(Cursor::new(archive(&nested(1000), &[]))).is_ok());
    let error = show(Cursor::new(archive(&nested(1_000_000), &[]))).unwrap_err();
    assert!(error.message().contains("1000 deep"), "{error}");
}

/// One list of 30,000 pairs, and 30,000 calls that each copy it.
#[test]
fn shared_arguments_are_not_multiplied() {
    let mut p = Pickle::new();
    let pair = p.tuple([Value::Int(1), Value::Int(2)]);
    let list = p.add(Node::List(vec![pair; 30_000]));
    let class = p.global("collections", "OrderedDict");
    let calls = (0..30_000).map(|_| p.reduce(class, [list])).collect();
    let root = p.add(Node::List(calls));
    p.set_root(root);
    let file = archive(&write(&p).unwrap(), &[]);
    let (result, held) = peak(|| show(Cursor::new(&file)));
    assert!(result.is_err());
    assert!(held < 100 * file.len(), "{held} bytes for a file of {}", file.len());
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: Some(Box::new(FileFailurePersistence::Off)), ..ProptestConfig::default() }
}

fn mutate(mut bytes: Vec<u8>, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    for &(place, how, value) in edits {
        let place = place % bytes.len().max(1);
        match how % 4 {
            0 if place < bytes.len() => bytes[place] = value,
            1 if place < bytes.len() => bytes[place] ^= 1 << (value % 8),
            2 => bytes.insert(place, value),
            _ => drop(bytes.drain(place..(place + usize::from(value)).min(bytes.len()))),
        }
    }
    bytes
}

/// Reads a file by text and as objects; what the one takes for sound, the other may still lack a kind of object for.
fn both(bytes: &[u8]) {
    let shown = show(Cursor::new(bytes));
    if let Ok(object) = flambeau_io::pt::read(Cursor::new(bytes)) {
        assert!(shown.is_ok(), "{object} was read, {shown:?}");
    }
}

/// What a file of a few kilobytes may take: buffers of the reader, and the values in the forms of this test.
const ALLOWANCE: usize = 4 << 20;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn mutated_files_do_no_harm(
        which in 0usize..6,
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let name = ["dtypes", "state_dict", "plain", "nested", "views.legacy", "dtypes.legacy"][which];
        let bytes = mutate(fixture(name), &edits);
        let (_, held) = peak(|| both(&bytes));
        prop_assert!(held < ALLOWANCE, "{} bytes", held);
    }

    /// The archive is sound and its pickle is not, so that the damage reaches what lies behind the checksums.
    #[test]
    fn mutated_pickles_do_no_harm(
        which in 0usize..6,
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let name = ["dtypes", "state_dict", "plain", "nested", "conj", "attributes"][which];
        let pickle = PtReader::new(Cursor::new(fixture(name))).unwrap().record("data.pkl").unwrap();
        let bytes = archive(&mutate(pickle, &edits), &[0; 48]);
        let (_, held) = peak(|| both(&bytes));
        prop_assert!(held < ALLOWANCE, "{} bytes", held);
    }

    #[test]
    fn noise_is_no_pickle_that_harms(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let (parsed, held) = peak(|| parse(&noise));
        prop_assert!(held < 100 * noise.len() + 4096, "{} bytes", held);
        if let Ok(pickle) = parsed {
            // What was read and can be written is read again as the same program (from the second time on: sets and
            // bytes are calls in protocol 2).
            if let Ok(written) = write(&pickle) {
                let again = write(&parse(&written).unwrap()).unwrap();
                let once_more = write(&parse(&again).unwrap()).unwrap();
                prop_assert_eq!(again, once_more);
            }
        }
    }
}
