//! Reading text in a `const fn`: spans, searches and numbers, for signatures.

/// A part of a text, by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u16,
    end: u16,
}

impl Span {
    pub const EMPTY: Span = Span { start: 0, end: 0 };
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start: start as u16, end: end as u16 }
    }
    pub const fn start(self) -> usize {
        self.start as usize
    }
    pub const fn end(self) -> usize {
        self.end as usize
    }
    #[inline]
    pub fn of(self, text: &'static str) -> &'static str {
        &text[self.start()..self.end()]
    }
}

pub const fn cut(b: &[u8], s: Span) -> &[u8] {
    b.split_at(s.end()).0.split_at(s.start()).1
}

/// Whether the part is `wanted`.
pub const fn same_at(b: &[u8], part: Span, wanted: &[u8]) -> bool {
    part.end() - part.start() == wanted.len() && stands_at(b, part.start(), wanted)
}

/// Whether `wanted` stands at `at`, before the end.
const fn stands_at(b: &[u8], at: usize, wanted: &[u8]) -> bool {
    let mut i = 0;
    while i < wanted.len() {
        if b[at + i] != wanted[i] {
            return false;
        }
        i += 1;
    }
    true
}

pub const fn find(b: &[u8], within: Span, wanted: u8) -> Option<usize> {
    let (mut i, end) = (within.start(), within.end());
    while i < end {
        if b[i] == wanted {
            return Some(i);
        }
        i += 1;
    }
    None
}

/// Where `wanted` starts for the last time.
pub const fn find_last(b: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut past = b.len();
    while past >= wanted.len() {
        let i = past - wanted.len();
        if stands_at(b, i, wanted) {
            return Some(i);
        }
        past -= 1;
    }
    None
}

/// The next comma outside brackets, or `end`.
pub const fn item_end(b: &[u8], from: usize, end: usize) -> usize {
    let (mut i, mut depth) = (from, 0);
    while i < end {
        match b[i] {
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth -= 1,
            b',' if depth == 0 => return i,
            _ => {}
        }
        i += 1;
    }
    end
}

pub const fn trim(b: &[u8], s: Span) -> Span {
    let (mut start, mut end) = (s.start(), s.end());
    while start < end && b[start] == b' ' {
        start += 1;
    }
    while end > start && b[end - 1] == b' ' {
        end -= 1;
    }
    Span::new(start, end)
}

/// A whole number of at most 18 digits.
pub const fn int(b: &[u8]) -> Option<i64> {
    let (negative, mut i) = (matches!(b, [b'-', ..]), matches!(b, [b'-', ..]) as usize);
    if i == b.len() || b.len() > 18 {
        return None;
    }
    let mut n = 0i64;
    while i < b.len() {
        if !b[i].is_ascii_digit() {
            return None;
        }
        n = n * 10 + (b[i] - b'0') as i64;
        i += 1;
    }
    Some(if negative { -n } else { n })
}

/// A decimal number: digits as an integer below 2^53, times or by a power of ten below 10^22, which rounds once.
pub const fn float(b: &[u8]) -> Option<f64> {
    let negative = matches!(b, [b'-', ..]);
    let (mut i, mut digits, mut power, mut seen, mut after_point) = (negative as usize, 0i64, 0i64, false, false);
    while i < b.len() && b[i] != b'e' {
        match b[i] {
            b'.' if !after_point => after_point = true,
            b'0'..=b'9' => {
                digits = digits * 10 + (b[i] - b'0') as i64;
                power -= after_point as i64;
                seen = true;
            }
            _ => return None,
        }
        i += 1;
    }
    if i < b.len() {
        let Some(exponent) = int(cut(b, Span::new(i + 1, b.len()))) else { return None };
        power += exponent;
    }
    if !seen || digits >= 1 << 53 || power.abs() > 22 {
        return None;
    }
    let (mut scale, mut k) = (1.0, power.abs());
    while k > 0 {
        scale *= 10.0;
        k -= 1;
    }
    let value = if power < 0 { digits as f64 / scale } else { digits as f64 * scale };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_those_of_the_standard_library() {
        for text in ["0.1", "1e-05", "1e-12", "-2.5", "12.0", "3.14159", "1e22", "0.54", "-0.0", "100.25e3"] {
            assert_eq!(float(text.as_bytes()).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{text}");
        }
        for text in ["", "-", ".", "1.2.3", "1e", "x", "1e23", "99999999999999999.5"] {
            assert_eq!(float(text.as_bytes()), None, "{text}");
        }
    }
    #[test]
    fn ints_have_digits_and_a_sign() {
        for (text, n) in [("0", Some(0)), ("-100", Some(-100)), ("", None), ("-", None), ("1.0", None)] {
            assert_eq!(int(text.as_bytes()), n, "{text}");
        }
    }
    #[test]
    fn items_end_at_commas_outside_brackets() {
        let b = b"int[] d=[0, 1], str{a,b} m";
        assert_eq!(item_end(b, 0, b.len()), 14);
        assert_eq!(item_end(b, 15, b.len()), b.len());
        assert_eq!(find_last(b"f(a) -> (b) -> c", b") -> "), Some(10));
    }
}
