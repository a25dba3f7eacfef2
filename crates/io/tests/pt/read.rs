//! Files that PyTorch 2.15 wrote (see `fixtures/record.py`), read.

use std::io::{Cursor, Write};

use crate::show::{fixture, show};
use flambeau_base::{DType, ErrorKind};
use flambeau_io::pickle::parse;
use flambeau_io::pt::{PtFile, PtReader, PtWriter, StorageInfo};

fn shown(name: &str) -> String {
    show(Cursor::new(fixture(name))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn refused(name: &str) -> flambeau_io::Error {
    show(Cursor::new(fixture(name))).expect_err(name)
}

/// The bytes of 0, 1, 2 in each dtype, from the definitions of the formats.
fn counted(dtype: DType) -> String {
    let elements = match dtype {
        DType::Bool => ["00", "01", "01"].map(String::from),
        DType::F8E4M3 => ["00", "38", "40"].map(String::from),
        DType::F8E5M2 => ["00", "3c", "40"].map(String::from),
        DType::F16 => ["0000", "003c", "0040"].map(String::from),
        DType::BF16 => ["0000", "803f", "0040"].map(String::from),
        DType::F32 => ["00000000", "0000803f", "00000040"].map(String::from),
        DType::C64 => ["00000000", "0000803f", "00000040"].map(|re| format!("{re}00000000")),
        DType::F64 => ["0000", "f03f", "0040"].map(|high| format!("000000000000{high}")),
        DType::C128 => ["0000", "f03f", "0040"].map(|high| format!("000000000000{high}0000000000000000")),
        integer => [0, 1, 2].map(|n| format!("{n:02x}{}", "00".repeat(integer.size() - 1))),
    };
    elements.concat()
}

#[test]
fn every_dtype() {
    let order = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];
    let text = shown("dtypes");
    for (i, dtype) in order.into_iter().enumerate() {
        let expected = format!("\"{dtype}\": <{dtype} [3] [1] at 0 of {i} {}>", counted(dtype));
        assert!(text.contains(&expected), "{expected} in {text}");
    }
    let legacy = shown("dtypes.legacy");
    for dtype in order {
        assert!(legacy.contains(&format!("\"{dtype}\": <{dtype} [3] [1] at 0 of ")), "{dtype} in {legacy}");
        assert!(legacy.contains(&format!(" {}>", counted(dtype))), "{dtype} in {legacy}");
    }
}

#[test]
fn views_share_their_storage() {
    let data: String = (0..12).flat_map(|i| (i as f32).to_le_bytes()).map(|b| format!("{b:02x}")).collect();
    let expected = |key: &str| {
        format!(
            "[<float32 [3, 4] [4, 1] at 0 of {key} {data}>, <float32 [4] [1] at 4 of {key} {data}>, \
             <float32 [4, 3] [1, 4] at 0 of {key} {data}>]"
        )
    };
    assert_eq!(shown("views"), expected("0"));
    let legacy = shown("views.legacy");
    let key = legacy.split(" of ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(legacy, expected(key));
}

/// Who brings a reader of pickles gets the same pickle and the storages.
#[test]
fn parts_of_both_formats() {
    for name in ["views", "views.legacy"] {
        let mut file = PtFile::new(Cursor::new(fixture(name))).unwrap();
        let bytes = file.pickle_bytes().unwrap();
        assert_eq!(&parse(&bytes).unwrap(), file.pickle(), "{name}");
        let key = shown(name).split(" of ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let info = StorageInfo { key, dtype: Some(DType::F32), nbytes: 48, location: "cpu".into() };
        let mut storages = file.into_storages();
        assert_eq!(storages.read(&info, DType::F32).unwrap()[4..8], 1f32.to_le_bytes());
        let longer = StorageInfo { nbytes: 52, ..info };
        assert!(storages.read(&longer, DType::F32).unwrap_err().message().contains("52 bytes"));
    }
}

#[test]
fn containers() {
    assert_eq!(
        shown("nested"),
        "{\"a\": [<float32 [2] [1] at 0 of 0 0000003f000000c0>, 3, \"x\", None], \
         \"b\": (<bool [] [] at 0 of 1 01>, 2.5), 7: 0x400000000000000000}"
    );
    assert_eq!(
        shown("plain"),
        "[[1], [1], Size[2, 3], device cpu, device cuda:1, bfloat16, {5}, complex(1.0, -2.0), bytearray[97, 98], \
         bytes[0, 255], -5, 300, 70000, -1099511627776, true, torch.strided, \"é€\", Counter{\"a\": 2, \"b\": 1}, \
         Ordered{\"k\": 1}, (), (1), (1, 2, 3, 4), 0.1]"
    );
    assert_eq!(shown("ring"), "[[...]]");
}

#[test]
fn state_dicts_keep_their_metadata() {
    let text = shown("state_dict");
    let legacy = shown("state_dict.legacy");
    for part in [
        "Ordered{\"0.weight\": <float32 [2, 1] [1, 1] at 0 of ",
        "\"1.num_batches_tracked\": <int64 [] [] at 0 of ",
        "} with {\"_metadata\": Ordered{\"\": {\"version\": 1}, \"0\": {\"version\": 1}, \"1\": {\"version\": 2}}}",
    ] {
        assert!(text.contains(part), "{part} in {text}");
        assert!(legacy.contains(part), "{part} in {legacy}");
    }
}

#[test]
fn kinds_of_tensors() {
    assert_eq!(shown("parameter"), "Parameter(<float32 [2] [1] at 0 of 0 0000803f0000803f>, true)");
    assert_eq!(shown("requires_grad"), "<float32 [2] [1] at 0 grad of 0 0000803f0000803f>");
    assert_eq!(shown("scalar_and_empty"), "[<int64 [] [] at 0 of 0 0700000000000000>, <float32 [0, 3] [3, 1] at 0 of 1 >]");
    assert_eq!(shown("meta"), "<float32 [2, 3] [3, 1] at 0 of nothing>");
    assert_eq!(shown("attributes"), "<float32 [2] [1] at 0 grad of 0 0000803f0000803f> with {\"note\": \"kept\"}");
    let conj = shown("conj");
    assert!(conj.contains("<complex64 [1] [1] at 0 conj of 0 0000803f00000040>"), "{conj}");
    assert!(conj.contains("<float32 [1] [2] at 1 neg of 1 0000404000008040>"), "{conj}");
    assert_eq!(shown("no_checksums"), "[<int64 [3] [1] at 0 of 0 000000000000000001000000000000000200000000000000>]");
}

#[test]
fn code_is_refused_and_named() {
    for name in ["evil", "evil.legacy"] {
        let error = refused(name);
        assert_eq!(error.kind(), ErrorKind::Unpickling);
        assert!(error.message().contains("'builtins.print'") && error.message().contains("nothing of the file was run"), "{error}");
        assert!(error.message().contains("weights_only"));
    }
    assert_eq!(refused("sparse").kind(), ErrorKind::NotImplemented);
}

#[test]
fn every_cut_is_noticed() {
    for name in ["state_dict", "views", "plain", "views.legacy", "dtypes.legacy"] {
        let whole = fixture(name);
        for length in 0..whole.len() {
            assert!(show(Cursor::new(&whole[..length])).is_err(), "{name} cut to {length} of {} bytes was read", whole.len());
        }
    }
}

#[test]
fn a_damaged_byte_of_data_is_noticed() {
    let mut bytes = fixture("views");
    let place = PtReader::new(Cursor::new(&bytes)).unwrap().position("data/0").unwrap().unwrap();
    bytes[place.start as usize + 4] ^= 1;
    let error = show(Cursor::new(bytes)).unwrap_err();
    assert!(error.message().contains("data/0"), "{error}");
}

#[test]
fn strangers_are_named() {
    for (bytes, word) in [
        (&b""[..], "empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\x40\0\0\0\0\0\0\0{\"a\":", "safetensors"),
        (b"hello world", "neither"),
    ] {
        let error = show(Cursor::new(bytes)).unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
}

/// PyTorch writes the machine's byte order and says which it is.
#[test]
fn big_endian_storages_are_turned() {
    let source = fixture("dtypes");
    let mut reader = PtReader::new(Cursor::new(&source)).unwrap();
    let widths = [1, 1, 1, 2, 4, 8, 2, 4, 8, 1, 1, 2, 2, 4, 8, 4, 8];
    let mut turned = Vec::new();
    let mut writer = PtWriter::new(&mut turned, "archive");
    for name in reader.names().map(String::from).collect::<Vec<_>>() {
        let mut bytes = reader.record(&name).unwrap();
        match name.strip_prefix("data/").map(|key| key.parse::<usize>().unwrap()) {
            Some(key) => bytes.chunks_exact_mut(widths[key]).for_each(<[u8]>::reverse),
            None if name == "byteorder" => bytes = b"big".to_vec(),
            None if name == "version" || name == ".data/serialization_id" => continue,
            None => {}
        }
        writer.record(&name, &bytes).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(show(Cursor::new(turned)).unwrap(), shown("dtypes"));
}

/// The records of a fixture, compressed by another tool.
fn deflated(name: &str) -> Vec<u8> {
    let source = fixture(name);
    let mut reader = PtReader::new(Cursor::new(&source)).unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for record in reader.names().map(String::from).collect::<Vec<_>>() {
        zip.start_file(format!("archive/{record}"), options).unwrap();
        zip.write_all(&reader.record(&record).unwrap()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn compressed_archives_are_read() {
    let file = deflated("state_dict");
    assert_eq!(show(Cursor::new(&file)).unwrap(), shown("state_dict"));
    let mut reader = PtReader::new(Cursor::new(&file)).unwrap();
    assert_eq!(reader.position("data/0").unwrap(), None);
    for length in 0..file.len() {
        assert!(show(Cursor::new(&file[..length])).is_err(), "cut to {length}");
    }
}
