//! Numbers and strings in the forms in which pickles hold them.

use super::{Node, Pickle, Value};

/// An integer in two's complement, little-endian, of any length.
pub(super) fn integer(pickle: &mut Pickle, digits: &[u8]) -> Value {
    let digits = shorten(digits);
    if digits.len() > 8 {
        return pickle.add(Node::BigInt(digits.into()));
    }
    let sign = digits.last().is_some_and(|&b| b >= 0x80);
    let mut wide = [if sign { 0xff } else { 0 }; 8];
    wide[..digits.len()].copy_from_slice(digits);
    Value::Int(i64::from_le_bytes(wide))
}

/// Without the high bytes that repeat the sign.
pub(super) fn shorten(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., high] = digits {
        let next_is_negative = rest.last().is_some_and(|&b| b >= 0x80);
        let superfluous = if rest.is_empty() { *high == 0 } else { *high == if next_is_negative { 0xff } else { 0 } };
        if !superfluous {
            break;
        }
        digits = rest;
    }
    digits
}

/// Protocol 0's integer, in which `00` and `01` are the booleans.
pub(super) fn int(line: &[u8]) -> Option<Value> {
    match line {
        b"00" => Some(Value::Bool(false)),
        b"01" => Some(Value::Bool(true)),
        _ => std::str::from_utf8(line).ok()?.parse().ok().map(Value::Int),
    }
}

/// Protocol 0's long integer, with an `L` at its end. 128 bits are read; nobody writes more in decimal.
pub(super) fn long(pickle: &mut Pickle, line: &[u8]) -> Option<Value> {
    let digits = std::str::from_utf8(line.strip_suffix(b"L").unwrap_or(line)).ok()?;
    let value: i128 = digits.parse().ok()?;
    Some(integer(pickle, &value.to_le_bytes()))
}

/// Protocol 0's float.
pub(super) fn float(line: &[u8]) -> Option<Value> {
    std::str::from_utf8(line).ok()?.parse().ok().map(Value::Float)
}

/// The `str` of Python 2: text if it is UTF-8, which includes ASCII, and bytes otherwise.
pub(super) fn str_or_bytes(pickle: &mut Pickle, bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => pickle.add(Node::Str(text.into())),
        Err(error) => pickle.add(Node::Bytes(error.into_bytes().into())),
    }
}

/// A quoted string with Python's escapes.
pub(super) fn string(line: &[u8]) -> Option<Vec<u8>> {
    let (quote, rest) = line.split_first()?;
    let inner = rest.strip_suffix(std::slice::from_ref(quote)).filter(|_| matches!(quote, b'\'' | b'"'))?;
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next()? {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'x' => {
                let (high, low) = (digit(*bytes.next()?, 16)?, digit(*bytes.next()?, 16)?);
                out.push((high * 16 + low) as u8);
            }
            &octal @ b'0'..=b'7' => {
                let mut code = digit(octal, 8)?;
                for _ in 0..2 {
                    let Some(next) = bytes.as_slice().first().and_then(|&b| digit(b, 8)) else {
                        break;
                    };
                    code = code * 8 + next;
                    bytes.next();
                }
                out.push(code as u8);
            }
            &other @ (b'\\' | b'\'' | b'"') => out.push(other),
            &other => out.extend([b'\\', other]),
        }
    }
    Some(out)
}

/// Protocol 0's text: Latin-1, with `\uXXXX` and `\UXXXXXXXX` for the rest.
pub(super) fn unicode(line: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        let width = match (b, rest.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                out.push(char::from(b));
                continue;
            }
        };
        let digits = rest.get(1..=width)?;
        rest = &rest[1 + width..];
        let code = digits.iter().try_fold(0u32, |code, &b| Some(code * 16 + digit(b, 16)?))?;
        out.push(char::from_u32(code)?);
    }
    Some(out)
}

fn digit(b: u8, radix: u32) -> Option<u32> {
    char::from(b).to_digit(radix)
}
