//! Objects of tensors, saved and loaded.

use std::io::Cursor;
use std::path::PathBuf;

use crate::show::fixture;
use flambeau_base::{Complex64, DType, Device, ErrorKind, Layout, Scalar};
use flambeau_engine::{Storage, Tensor, with_element};
use flambeau_io::pickle::parse;
use flambeau_io::pt::{self, DictKind, PtReader};
use flambeau_io::{Dict, Object};

fn loaded(name: &str) -> Object {
    pt::read(Cursor::new(fixture(name))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn round_trip(object: &Object) -> Object {
    let mut file = Vec::new();
    pt::write(&mut file, object).unwrap();
    pt::read(Cursor::new(file)).unwrap()
}

fn scalars(object: Option<&Object>) -> Vec<Scalar> {
    object.and_then(Object::as_tensor).expect("a tensor").to_scalars().unwrap()
}

fn floats(object: &Object) -> Vec<f64> {
    scalars(Some(object)).into_iter().map(Scalar::to_f64).collect()
}

/// A file of this process that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("flambeau-io-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn values_of_every_dtype() {
    let file = loaded("dtypes");
    let again = round_trip(&file);
    for dtype in DType::ALL {
        for object in [&file, &again] {
            let tensor = object.get(dtype.name()).and_then(Object::as_tensor).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[3][..]));
            let values: Vec<f64> = tensor.to_scalars().unwrap().into_iter().map(Scalar::to_f64).collect();
            assert_eq!(values, if dtype == DType::Bool { [0.0, 1.0, 1.0] } else { [0.0, 1.0, 2.0] }, "{dtype}");
        }
    }
}

/// What PyTorch saved is, loaded and saved by us, the same pickle.
#[test]
fn our_pickles_are_pytorch_s() {
    for name in ["requires_grad", "state_dict", "scalar_and_empty", "meta", "nested", "parameter"] {
        let mut ours = Vec::new();
        pt::write(&mut ours, &loaded(name)).unwrap();
        let pickle = |bytes: &[u8]| parse(&PtReader::new(Cursor::new(bytes)).unwrap().record("data.pkl").unwrap()).unwrap();
        let (ours, theirs) = (pickle(&ours), pickle(&fixture(name)));
        // Nodes are numbered as they come to be, so compare what is seen from the root.
        assert_eq!(flambeau_io::pickle::write(&ours).unwrap(), flambeau_io::pickle::write(&theirs).unwrap(), "{name}");
    }
}

#[test]
fn views_share_their_storage() {
    for object in [loaded("views"), round_trip(&loaded("views")), loaded("views.legacy")] {
        let views: Vec<&Tensor> = object.as_items().unwrap().iter().map(|o| o.as_tensor().unwrap()).collect();
        assert!(views[0].shares_storage(views[1]) && views[0].shares_storage(views[2]));
        assert_eq!(views[1].to_vec::<f32>().unwrap(), [4.0, 5.0, 6.0, 7.0]);
        assert_eq!(views[2].strides(), [1, 4]);
    }
}

#[test]
fn shared_objects_stay_shared() {
    let inner = Object::list([1.into()]);
    let tensor = Object::from(Tensor::from_slice(&[1i64], &[1]).unwrap());
    let back = round_trip(&Object::tuple([inner.clone(), inner, tensor.clone(), tensor]));
    let items = back.as_items().unwrap();
    let id = |object: &Object| match object {
        Object::List(items) => items.id(),
        other => other.as_tensor().unwrap().id(),
    };
    assert_eq!(id(&items[0]), id(&items[1]));
    assert_eq!(id(&items[2]), id(&items[3]));
}

#[test]
fn plain_objects_go_round() {
    let metadata = Object::dict([("_metadata", Object::dict([("", Object::dict([("version", 1.into())]))]))]);
    let ordered = Dict::new(DictKind::Ordered, [("k".into(), Object::None)], Some(metadata));
    let counter = Dict::new(DictKind::Counter, [("a".into(), 2.into())], None);
    let object = Object::list([
        Object::None,
        true.into(),
        i64::MIN.into(),
        (-5).into(),
        Object::BigInt([0, 0, 0, 0, 0, 0, 0, 0, 1].into()),
        0.1.into(),
        f64::NEG_INFINITY.into(),
        Object::Complex(Complex64::new(0.0, -1.0)),
        "é€\n".into(),
        Object::Bytes([0, 255, 13, 10].into()),
        Object::Bytes([].into()),
        Object::tuple([]),
        Object::tuple([1.into()]),
        Object::Set([Object::from(3)].into_iter().collect()),
        Object::Size([2, 3].into()),
        DType::F8E5M2.into(),
        Object::Device("cuda:1".into()),
        Object::Dict(ordered),
        Object::Dict(counter),
        Object::list((0..2500).map(Object::from)),
    ]);
    let back = round_trip(&object);
    assert_eq!(back.to_string(), object.to_string());
    let items = back.as_items().unwrap();
    assert!(matches!(&items[4], Object::BigInt(digits) if **digits == [0, 0, 0, 0, 0, 0, 0, 0, 1]));
    assert!(matches!(&items[9], Object::Bytes(bytes) if **bytes == [0, 255, 13, 10]));
    assert_eq!(items[17].as_dict().unwrap().kind(), DictKind::Ordered);
    assert_eq!(items[17].as_dict().unwrap().attributes().unwrap().to_string(), "{'_metadata': {'': {'version': 1}}}");
    assert_eq!(items[18].as_dict().unwrap().kind(), DictKind::Counter);
    assert_eq!(items[19].as_items().unwrap()[2499].as_int(), Some(2499));
}

#[test]
fn kinds_of_tensors() {
    assert!(loaded("requires_grad").as_tensor().unwrap().requires_grad());
    let parameter = round_trip(&loaded("parameter"));
    assert!(matches!(&parameter, Object::Parameter(tensor) if tensor.requires_grad()));
    assert!(loaded("meta").as_tensor().unwrap().device().is_meta());
    assert_eq!(floats(&loaded("attributes")), [1.0, 1.0]);
    let conj = loaded("conj");
    let conj = conj.as_items().unwrap();
    assert_eq!(scalars(conj.first()), [Scalar::Complex(Complex64::new(1.0, -2.0))]);
    assert_eq!(floats(&conj[1]), [-4.0]);
    let empty = round_trip(&loaded("scalar_and_empty"));
    assert_eq!(empty.as_items().unwrap()[1].as_tensor().unwrap().shape(), [0, 3]);
}

#[test]
fn files_of_every_length_of_name_are_read() {
    // The name stands in every record, so its length moves all of them.
    for length in 1..130 {
        let scratch = Scratch(std::env::temp_dir().join(format!("{}{}", "n".repeat(length), std::process::id())));
        for count in 0..3 {
            let tensors = (0..count).map(|i| (format!("t{i}"), Tensor::from_slice(&[i as f32], &[1]).unwrap()));
            pt::save_state_dict(&scratch.0, tensors).unwrap();
            assert_eq!(pt::load_state_dict(&scratch.0).unwrap().len(), count, "a name of {length} letters, {count} tensors");
        }
    }
}

#[test]
fn state_dicts() {
    let scratch = Scratch::new("state.pt");
    let tensors =
        [("a.weight", Tensor::from_slice(&[1.0f32, 2.0], &[2, 1]).unwrap()), ("a.bias", Tensor::from_slice(&[3.0f64], &[1]).unwrap())];
    pt::save_state_dict(&scratch.0, tensors).unwrap();
    let back = pt::load_state_dict(&scratch.0).unwrap();
    assert_eq!(back.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a.weight", "a.bias"]);
    assert_eq!(back[1].1.to_vec::<f64>().unwrap(), [3.0]);
    // The folder in the archive is the file's name.
    let names: Vec<u8> = std::fs::read(&scratch.0).unwrap();
    let stem = scratch.0.file_stem().unwrap().to_str().unwrap();
    assert_eq!(&names[30..30 + stem.len()], stem.as_bytes());

    pt::save(&scratch.0, &Object::dict([("epoch", 3.into())])).unwrap();
    let error = pt::load_state_dict(&scratch.0).unwrap_err();
    assert!(error.message().contains("epoch") && error.message().contains("an int"), "{error}");
}

#[test]
fn mapped_tensors_are_the_file_until_written() {
    let scratch = Scratch::new("mapped.pt");
    let data: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let tensor = Tensor::from_slice(&data, &[50, 100]).unwrap();
    pt::save(&scratch.0, &Object::dict([("x", tensor.into())])).unwrap();
    let before = std::fs::read(&scratch.0).unwrap();

    let object = pt::load_mapped(&scratch.0).unwrap();
    let mapped = object.get("x").and_then(Object::as_tensor).unwrap();
    assert_eq!(mapped.to_vec::<f32>().unwrap(), data);
    // SAFETY: the tensor has 5,000 elements, and nobody else looks at it.
    unsafe { *mapped.data_ptr_mut().unwrap().cast::<f32>() = -1.0 };
    assert_eq!(mapped.to_vec::<f32>().unwrap()[..2], [-1.0, 1.0]);
    assert_eq!(std::fs::read(&scratch.0).unwrap(), before);
    drop(object);

    // Files whose bytes cannot be used where they are are read instead.
    for name in ["views.legacy", "dtypes", "dtypes.legacy"] {
        std::fs::write(&scratch.0, fixture(name)).unwrap();
        assert_eq!(pt::load_mapped(&scratch.0).unwrap().to_string(), loaded(name).to_string());
    }
}

#[test]
fn what_cannot_be_saved_leaves_the_file_alone() {
    let scratch = Scratch::new("kept.pt");
    std::fs::write(&scratch.0, b"kept").unwrap();
    let storage = Storage::allocate(Device::CPU, 8, true).unwrap();
    let as_dtype = |dtype: DType| Tensor::from_storage(storage.clone(), Layout::contiguous(&[1]).unwrap(), dtype).unwrap();
    let two = Object::list([as_dtype(DType::F32).into(), as_dtype(DType::I64).into()]);
    let error = pt::save(&scratch.0, &two).unwrap_err();
    assert!(error.message().contains("float32") && error.message().contains("int64"), "{error}");

    let mut deep = Object::None;
    for _ in 0..1_000_000 {
        deep = Object::list([deep]);
    }
    assert!(pt::save(&scratch.0, &deep).unwrap_err().message().contains("1000 deep"));
    assert_eq!(std::fs::read(&scratch.0).unwrap(), b"kept");
    assert_eq!(pt::load(Scratch::new("absent").0.clone()).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn storages_seen_as_untyped_bytes_are_shared() {
    let storage = Storage::allocate(Device::CPU, 4, true).unwrap();
    let as_dtype = |dtype: DType, n| Tensor::from_storage(storage.clone(), Layout::contiguous(&[n]).unwrap(), dtype).unwrap();
    let back = round_trip(&Object::list([as_dtype(DType::U16, 2).into(), as_dtype(DType::F8E5M2, 4).into()]));
    let tensors: Vec<&Tensor> = back.as_items().unwrap().iter().map(|o| o.as_tensor().unwrap()).collect();
    assert!(tensors[0].shares_storage(tensors[1]));
}

#[test]
fn layouts_of_every_dtype_go_round() {
    for dtype in DType::ALL {
        with_element!(dtype, T => {
            let values: Vec<T> = (0..24).map(|i| flambeau_engine::tensor::Element::from_scalar(Scalar::Int(i % 2))).collect();
            let base = Tensor::from_slice(&values, &[24]).unwrap();
            let layout = Layout::strided("test", &[3, 2, 1, 0], &[2, 9, 0, 5], 4).unwrap();
            let empty = Tensor::from_storage(base.storage().clone(), layout, dtype).unwrap();
            let layout = Layout::strided("test", &[3, 2, 4], &[2, 9, 0], 4).unwrap();
            let view = Tensor::from_storage(base.storage().clone(), layout, dtype).unwrap();
            let back = round_trip(&Object::tuple([base.into(), view.clone().into(), empty.into()]));
            let items = back.as_items().unwrap();
            let tensor = items[1].as_tensor().unwrap();
            assert_eq!((tensor.strides(), tensor.layout().offset()), (view.strides(), 4));
            assert_eq!(tensor.to_scalars().unwrap(), view.to_scalars().unwrap());
            assert!(tensor.shares_storage(items[0].as_tensor().unwrap()));
            assert_eq!(items[2].as_tensor().unwrap().numel(), 0);
        });
    }
}
