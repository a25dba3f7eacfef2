//! Safetensors files.
#[path = "pt/backend.rs"]
mod backend;

use flambeau_base::{DType, ErrorKind};
use flambeau_engine::tensor::Element;
use flambeau_engine::{Tensor, with_element};
use flambeau_io::safetensors::{SafeTensors, load, read, save, write};
use proptest::prelude::*;

const NO_METADATA: [(&str, &str); 0] = [];

fn counted(dtype: DType) -> Tensor {
    with_element!(dtype, T => {
        let values: Vec<T> = (0..6).map(|i| Element::from_scalar(Scalar::Int(i))).collect();
        Tensor::from_slice(&values, &[2, 3]).unwrap()
    })
}

#[test]
fn every_dtype_goes_round() {
    let tensors: Vec<(&str, Tensor)> =
        DType::ALL.into_iter().filter(|&dtype| dtype != DType::C128).map(|dtype| (dtype.name(), counted(dtype))).collect();
    let pairs = || tensors.iter().map(|(name, tensor)| (*name, tensor));
    let path = std::env::temp_dir().join(format!("flambeau-io-{}.safetensors", std::process::id()));
    save(&path, pairs(), [("format", "pt")]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), write(pairs(), [("format", "pt")]).unwrap());
    let mapped = SafeTensors::open(&path).unwrap();
    let copied = SafeTensors::from_bytes(std::fs::read(&path).unwrap()).unwrap();
    for file in [&mapped, &copied] {
        assert_eq!(file.metadata()["format"], "pt");
        for (name, tensor) in &tensors {
            assert_eq!((file.dtype(name).unwrap(), file.shape(name).unwrap()), (tensor.dtype(), &[2, 3][..]));
            assert_eq!(file.tensor(name).unwrap().to_scalars().unwrap(), tensor.to_scalars().unwrap());
        }
    }
    assert_eq!(load(&path).unwrap().len(), 16);
    std::fs::remove_file(&path).unwrap();
    let error = write([("z", &counted(DType::C128))], NO_METADATA).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
}

/// Bytes put together by the format's description, with names out of order and an empty tensor between others.
#[test]
fn a_known_file() {
    let header = br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,2],"data_offsets":[4,4]},"b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0, 0, 0, 0x3f, 1, 0, 2, 0]);
    let tensors = read(bytes).unwrap();
    let find = |name: &str| &tensors.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(find("a").to_vec::<f32>().unwrap(), [0.5]);
    assert_eq!(find("b").to_vec::<i16>().unwrap(), [1, 2]);
    assert_eq!(find("e").shape(), [0, 2]);
}

#[test]
fn broken_files_are_refused() {
    let whole = write([("x", &counted(DType::F64)), ("y", &counted(DType::U8))], [("k", "v")]).unwrap();
    for length in 0..whole.len() {
        assert_eq!(read(whole[..length].to_vec()).unwrap_err().kind(), ErrorKind::Runtime, "cut to {length}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(read(longer).is_err());
    let with_header = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        read(bytes)
    };
    for (header, data) in [
        (r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, 4),
        (r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, 8),
        (r#"{"x":{"dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,0]}}"#, 0),
        (r#"{"x":{"dtype":"F32","shape":[4611686018427387904,0],"data_offsets":[0,18446744073709551615]}}"#, 0),
        (r#"{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#, 4),
        (r#"{"x":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}"#, 4),
        (r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, 4),
        ("[]", 0),
        ("{", 0),
    ] {
        assert!(with_header(header, data).is_err(), "{header}");
    }
    let unknown = with_header(r#"{"x":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}}"#, 1);
    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotImplemented);
    let file = SafeTensors::from_bytes(whole).unwrap();
    assert!(file.tensor("z").unwrap_err().message().contains("'z'"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_do_no_harm(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..5)) {
        let mut bytes = write([("x", &counted(DType::F64)), ("y", &counted(DType::U8))], [("k", "v")]).unwrap();
        for (place, value) in edits {
            let place = place % bytes.len();
            bytes[place] = value;
        }
        if let Ok(tensors) = read(bytes) {
            for (_, tensor) in tensors {
                prop_assert!(tensor.to_scalars().unwrap().len() <= 54);
            }
        }
    }
}
