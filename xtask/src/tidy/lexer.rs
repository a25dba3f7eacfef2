//! Rust source with everything blanked that is not code, so that checks can search it by line.

/// `source` with comments, strings and characters replaced by blanks; lines and columns stay where they are.
pub fn code_only(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < text.len() {
        let end = skipped_until(&text, at);
        if end == at {
            code.push(text[at]);
            at += 1;
        } else {
            code.extend(text[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// Where the comment or literal that begins at `at` ends; `at` itself where none begins.
fn skipped_until(text: &[char], at: usize) -> usize {
    let next = |offset: usize| text.get(at + offset).copied().unwrap_or('\0');
    let in_word = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    match (text[at], next(1)) {
        ('/', '/') => text[at..].iter().position(|&c| c == '\n').map_or(text.len(), |n| at + n),
        ('/', '*') => block_comment(text, at),
        ('"', _) => quoted(text, at + 1),
        ('\'', '\\') => (at + 3..text.len()).find(|&i| text[i] == '\'').map_or(text.len(), |i| i + 1),
        ('\'', _) if next(2) == '\'' => at + 3,
        ('r', '"' | '#') if !in_word => raw(text, at, at + 1),
        ('b' | 'c', 'r') if !in_word && matches!(next(2), '"' | '#') => raw(text, at, at + 2),
        _ => at,
    }
}

/// Block comments nest.
fn block_comment(text: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn quoted(text: &[char], mut at: usize) -> usize {
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// `r#"..."#`, from `start`, its hashes from `hashes`. A raw identifier (`r#type`) is no string: nothing is skipped.
fn raw(text: &[char], start: usize, hashes: usize) -> usize {
    let count = text[hashes..].iter().take_while(|&&c| c == '#').count();
    if text.get(hashes + count) != Some(&'"') {
        return start;
    }
    let closes = |at: usize| text[at] == '"' && text[at + 1..].iter().take(count).filter(|&&c| c == '#').count() == count;
    (hashes + count + 1..text.len()).find(|&at| closes(at)).map_or(text.len(), |at| at + 1 + count)
}

#[cfg(test)]
mod tests {
    use super::code_only;

    #[test]
    fn blanks_comments_and_literals_and_nothing_else() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" y", z)"#, r#"f(        , z)"#),
            (r##"f(r#"a " b"#, c)"##, "f(          , c)"),
            ("r#type + var\"s\"", "r#type + var   "),
            ("('a', '\\'', '\\u{41}', b)", "(   ,     ,         , b)"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("\"a\nb\" c", "  \n   c"),
        ];
        for (source, code) in cases {
            assert_eq!(code_only(source), code, "{source}");
        }
    }
}
