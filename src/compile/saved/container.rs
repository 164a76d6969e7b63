//! Files in the safetensors format: a JSON header, then the bytes of tensors without gaps.
//!
//! <https://github.com/huggingface/safetensors>. What is read is checked as there: every byte after the header belongs to
//! one tensor, so a file cannot ask for more memory than its own size.

use super::json::{self, Json};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::checked_numel;
use crate::rt::reserve;
use crate::tensor::Tensor;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// As many dimensions as PyTorch allows.
pub const MOST_DIMS: usize = 64;

/// The longest header that is read.
const LONGEST_HEADER: u64 = 32 << 20;

const DTYPES: [(&str, DType); 17] = [
    ("F64", DType::F64),
    ("F32", DType::F32),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I64", DType::I64),
    ("I32", DType::I32),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("BOOL", DType::Bool),
    ("C64", DType::C64),
    ("F8_E4M3", DType::F8E4M3FN),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E8M0", DType::F8E8M0FNU),
];

/// Whether the format has the dtype.
pub fn has(dtype: DType) -> bool {
    DTYPES.iter().any(|(_, d)| *d == dtype)
}

/// The texts and the tensors of a file.
pub struct Contents {
    pub texts: BTreeMap<String, String>,
    /// On the CPU, row-major, each with a storage of its own.
    pub tensors: HashMap<String, Tensor>,
}

struct Entry {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    start: u64,
    stop: u64,
}

/// Reads a file.
///
/// Errors: ValueError for a damaged file, RuntimeError for one that cannot be read or does not fit in memory.
pub fn read(path: &Path) -> Result<Contents> {
    let failed = |e: std::io::Error| Error::runtime(format!("{}: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let mut length = [0; 8];
    if total < 8 {
        return Err(Error::value(format!("expected 8 bytes or more, got {total}")));
    }
    file.read_exact(&mut length).map_err(failed)?;
    let length = u64::from_le_bytes(length);
    if length > (total - 8).min(LONGEST_HEADER) {
        return Err(Error::value(format!("the header has {length} bytes, the file {total}")));
    }
    let mut header = reserve::filled(0, length as usize)?;
    file.read_exact(&mut header).map_err(failed)?;
    let header = String::from_utf8(header).map_err(|_| Error::value("the header is no UTF-8"))?;
    let (texts, entries) = parse_header(&header, total - 8 - length)?;
    drop(header);
    let mut tensors = HashMap::new();
    for entry in entries {
        // Zeroed, since a reader may look at what it is given.
        let t = Tensor::zeros(&entry.shape, entry.dtype, Device::Cpu)?;
        let bytes = (entry.stop - entry.start) as usize;
        if bytes > 0 {
            // SAFETY: the storage is new, not shared, written, and has exactly these bytes: `parse_header`.
            let memory = unsafe { std::slice::from_raw_parts_mut(t.ptr()?, bytes) };
            file.read_exact(memory).map_err(failed)?;
            if entry.dtype == DType::Bool && memory.iter().any(|&b| b > 1) {
                return Err(Error::value(format!("'{}' has bytes other than 0 and 1", entry.name)));
            }
        }
        tensors.insert(entry.name, t);
    }
    Ok(Contents { texts, tensors })
}

/// The texts, and the entries in the order of their bytes, of which there are `room`.
fn parse_header(header: &str, room: u64) -> Result<(BTreeMap<String, String>, Vec<Entry>)> {
    let parsed = json::parse(header)?;
    let all = parsed.as_map().ok_or_else(|| Error::value("the header is no JSON object"))?;
    let (mut texts, mut entries) = (BTreeMap::new(), Vec::new());
    for (name, value) in all {
        if name == "__metadata__" {
            let given = value.as_map().ok_or_else(|| Error::value("__metadata__ is no JSON object"))?;
            for (key, text) in given {
                let text = text.as_str().ok_or_else(|| Error::value("__metadata__ holds what is no string"))?;
                texts.insert(key.to_string(), text.to_string());
            }
        } else {
            let entry = parse_entry(name, value);
            entries.push(entry.ok_or_else(|| Error::value(format!("the entry '{name}' is damaged")))?);
        }
    }
    entries.sort_by_key(|e| (e.start, e.stop));
    let mut at = 0;
    for e in &entries {
        let count = checked_numel(&e.shape).map_err(|e| Error::value(e.message()))?;
        let bytes = count as u64 * e.dtype.size() as u64;
        if e.start != at || e.stop.checked_sub(e.start) != Some(bytes) || e.stop > room {
            return Err(Error::value(format!(
                "'{}' of {} {:?} needs {bytes} bytes from byte {at} on, but has {} to {} of {room}",
                e.name, e.dtype, e.shape, e.start, e.stop
            )));
        }
        at = e.stop;
    }
    if at != room {
        return Err(Error::value(format!("{} bytes belong to no tensor", room - at)));
    }
    Ok((texts, entries))
}

fn parse_entry(name: &str, value: &Json) -> Option<Entry> {
    let fields = value.as_map()?;
    let kind = fields.get("dtype")?.as_str()?;
    let (_, dtype) = DTYPES.iter().find(|(n, _)| *n == kind)?;
    let shape = fields.get("shape")?.as_list()?.iter().map(Json::as_count).collect::<Option<Vec<_>>>()?;
    let shape = Some(shape).filter(|s| s.len() <= MOST_DIMS)?;
    let [start, stop] = fields.get("data_offsets")?.as_list()? else { return None };
    Some(Entry { name: name.to_string(), dtype: *dtype, shape, start: start.as_integer()?, stop: stop.as_integer()? })
}

/// Writes tensors by their names; they are contiguous on the CPU, have dtypes of the format and distinct names.
///
/// Errors: ValueError where the header would be longer than one that is read; RuntimeError of the file.
pub fn write(path: &Path, texts: &[(&str, &str)], tensors: &[(String, Tensor)]) -> Result<()> {
    let failed = |e: std::io::Error| Error::runtime(format!("{}: {e}", path.display()));
    // As the reference implementation orders them, so that each is aligned.
    let mut order: Vec<&(String, Tensor)> = tensors.iter().collect();
    order.sort_by_key(|(name, t)| (std::cmp::Reverse(t.dtype().size()), name));
    let mut header = String::from("{\"__metadata__\":{");
    for (i, (key, text)) in texts.iter().enumerate() {
        header.push_str(if i > 0 { "," } else { "" });
        json::quote(&mut header, key);
        header.push(':');
        json::quote(&mut header, text);
    }
    header.push('}');
    let mut at = 0;
    for (name, t) in &order {
        let Some((kind, _)) = DTYPES.iter().find(|(_, d)| *d == t.dtype()) else {
            return Err(Error::internal("a dtype that safetensors does not have"));
        };
        let stop = at + t.numel() * t.dtype().size();
        header.push(',');
        json::quote(&mut header, name);
        header.push_str(&format!(":{{\"dtype\":\"{kind}\",\"shape\":"));
        json::list(&mut header, t.shape(), |out, n| out.push_str(&n.to_string()));
        header.push_str(&format!(",\"data_offsets\":[{at},{stop}]}}"));
        at = stop;
    }
    header.push('}');
    header.push_str(&" ".repeat(header.len().wrapping_neg() % 8));
    if header.len() as u64 > LONGEST_HEADER {
        return Err(Error::value(format!(
            "the plan's text takes {} bytes; expected at most {LONGEST_HEADER}",
            header.len()
        )));
    }
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
    file.write_all(header.as_bytes()).map_err(failed)?;
    for (_, t) in order {
        if t.numel() > 0 {
            // SAFETY: a contiguous CPU tensor has these bytes from its first element on, and is alive.
            let bytes = unsafe { std::slice::from_raw_parts(t.ptr()?, t.numel() * t.dtype().size()) };
            file.write_all(bytes).map_err(failed)?;
        }
    }
    file.flush().map_err(failed)
}
