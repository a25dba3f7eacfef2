//! Archives and pickles, written: beside what PyTorch writes, and read back.

use std::io::Cursor;

use crate::show::fixture;
use flambeau_io::pickle::{Node, Pickle, Value, parse, write};
use flambeau_io::pt::{PtReader, PtWriter};

const FIXTURES: [&str; 12] = [
    "attributes",
    "conj",
    "dtypes",
    "meta",
    "nested",
    "parameter",
    "plain",
    "requires_grad",
    "ring",
    "scalar_and_empty",
    "state_dict",
    "views",
];

/// The same records in the same order give the same file, up to the serialization id at its end.
#[test]
fn archives_are_laid_out_as_pytorch_lays_them_out() {
    for name in FIXTURES {
        let theirs = fixture(name);
        let mut reader = PtReader::new(Cursor::new(&theirs)).unwrap();
        let storages: Vec<String> = reader.names().filter_map(|n| n.strip_prefix("data/")).map(String::from).collect();
        let mut ours = Vec::new();
        let mut writer = PtWriter::new(&mut ours, name);
        writer.pickle(&reader.record("data.pkl").unwrap()).unwrap();
        for key in storages {
            writer.storage(&key, &reader.record(&format!("data/{key}")).unwrap()).unwrap();
        }
        writer.finish().unwrap();

        assert_eq!(ours.len(), theirs.len(), "{name}");
        let id = |file: &[u8]| PtReader::new(Cursor::new(file)).unwrap().position(".data/serialization_id").unwrap().unwrap();
        let id = id(&theirs);
        let differing: Vec<usize> = (0..ours.len()).filter(|&i| ours[i] != theirs[i]).collect();
        // The id, its checksum after it, and its checksum in the table of contents.
        let (start, end) = (id.start as usize, id.end as usize);
        let allowed = |i: usize| (start..end + 8).contains(&i) || (ours.len() - 220..ours.len()).contains(&i);
        assert!(differing.iter().all(|&i| allowed(i)) && differing.len() <= 48, "{name}: {differing:?}");
    }
}

/// What PyTorch pickles, parsed and written, is the same program.
#[test]
fn pickles_are_written_as_pytorch_writes_them() {
    for name in FIXTURES {
        let theirs = PtReader::new(Cursor::new(fixture(name))).unwrap().record("data.pkl").unwrap();
        let parsed = parse(&theirs).unwrap();
        let ours = write(&parsed).unwrap();
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn storages_are_aligned() {
    let mut file = Vec::new();
    let mut writer = PtWriter::new(&mut file, "a name with spaces");
    writer.pickle(b"\x80\x02N.").unwrap();
    for key in 0..70 {
        writer.storage(&key.to_string(), &vec![key; usize::from(key)]).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = PtReader::new(Cursor::new(file)).unwrap();
    for key in 0..70u8 {
        let name = format!("data/{key}");
        assert_eq!(reader.position(&name).unwrap().unwrap().start % 64, 0);
        assert_eq!(reader.record(&name).unwrap(), vec![key; usize::from(key)]);
    }
}

#[test]
fn a_record_is_not_written_twice() {
    let mut writer = PtWriter::new(Vec::new(), "archive");
    writer.record("notes", b"1").unwrap();
    assert!(writer.record("notes", b"2").unwrap_err().message().contains("twice"));
}

#[test]
fn shared_objects_stay_shared_and_rings_are_closed() {
    let mut pickle = Pickle::new();
    let inner = pickle.add(Node::List(vec![Value::Int(1)]));
    let tuple = pickle.tuple([inner, inner]);
    let Value::Node(id) = inner else { unreachable!() };
    let Node::List(items) = pickle.node_mut(id) else { unreachable!() };
    items.push(tuple);
    pickle.set_root(tuple);

    let back = parse(&write(&pickle).unwrap()).unwrap();
    let items = back.as_tuple(back.root()).unwrap();
    assert_eq!(items[0], items[1]);
    assert_eq!(back.list(items[0]).unwrap(), [Value::Int(1), back.root()]);
}

#[test]
fn what_makes_itself_is_refused() {
    let mut pickle = Pickle::new();
    let class = pickle.global("m", "C");
    let object = pickle.reduce(class, [Value::None]);
    let Some(Node::Made(made)) = pickle.get(object) else { unreachable!() };
    let Value::Node(args) = made.args else { unreachable!() };
    *pickle.node_mut(args) = Node::Tuple([object].into());
    pickle.set_root(object);
    assert!(write(&pickle).unwrap_err().message().contains("make itself"));
}

#[test]
fn a_million_lists_in_each_other() {
    let mut deep = Pickle::new();
    let mut inner = Value::None;
    for _ in 0..1_000_000 {
        inner = deep.add(Node::List(vec![inner]));
    }
    deep.set_root(inner);
    let back = parse(&write(&deep).unwrap()).unwrap();
    assert_eq!(back.len(), 1_000_000);
    let mut depth = 0;
    let mut value = back.root();
    while let Some(&[next]) = back.list(value) {
        (value, depth) = (next, depth + 1);
    }
    assert_eq!((value, depth), (Value::None, 1_000_000));
}
