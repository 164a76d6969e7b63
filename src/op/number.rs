//! Numbers that differ from run to run: arguments of the function, values that it reads of tensors, and simple arithmetic
//! on both, computed as Python computes it.

use crate::dtype::Scalar;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An argument of the function, by its place among those that are numbers.
    Argument(usize),
    /// What a step has read, in the order of reads: an int, if it is `whole`.
    Read {
        at: usize,
        whole: bool,
    },
    Constant(Scalar),
    /// An int where a float is wanted.
    Float(Box<Number>),
    Negative(Box<Number>),
    Absolute(Box<Number>),
    Binary(Arithmetic, Box<Number>, Box<Number>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// The numbers of a run.
#[derive(Clone, Copy)]
pub struct Numbers<'a> {
    pub arguments: &'a [Scalar],
    pub reads: &'a [Scalar],
}

/// Integers up to here are floats too.
const EXACT: u64 = 1 << 53;

impl Number {
    /// The leaves, from left to right.
    pub fn leaves(&self, each: &mut dyn FnMut(&Number)) {
        match self {
            Number::Float(n) | Number::Negative(n) | Number::Absolute(n) => n.leaves(each),
            Number::Binary(_, a, b) => {
                a.leaves(each);
                b.leaves(each);
            }
            leaf => each(leaf),
        }
    }
    /// Whether it is known before the first step runs.
    pub fn is_given(&self) -> bool {
        let mut given = true;
        self.leaves(&mut |leaf| given &= !matches!(leaf, Number::Read { .. }));
        given
    }
    /// The number in a run; `None` where Python raises an error, or has an int beyond 64 bits.
    pub fn now(&self, numbers: Numbers) -> Option<Scalar> {
        Some(match self {
            Number::Argument(i) => *numbers.arguments.get(*i)?,
            Number::Read { at, .. } => *numbers.reads.get(*at)?,
            Number::Constant(s) => *s,
            Number::Float(n) => Scalar::Float(n.now(numbers)?.to_f64()),
            Number::Negative(n) => match n.now(numbers)? {
                Scalar::Int(i) => Scalar::Int(i.checked_neg()?),
                s => Scalar::Float(-s.to_f64()),
            },
            Number::Absolute(n) => match n.now(numbers)? {
                Scalar::Int(i) => Scalar::Int(i.checked_abs()?),
                s => Scalar::Float(s.to_f64().abs()),
            },
            Number::Binary(how, a, b) => how.of(a.now(numbers)?, b.now(numbers)?)?,
        })
    }
    /// Whether it is known, once the run has begun, that `now` gives a number: arithmetic on ints that are read may leave 64
    /// bits.
    pub fn is_total(&self) -> bool {
        let mut whole = false;
        self.leaves(&mut |leaf| whole |= matches!(leaf, Number::Read { whole: true, .. }));
        let leaf = |n: &Number| matches!(n, Number::Read { .. });
        !whole || leaf(self) || matches!(self, Number::Float(n) if leaf(n))
    }
    /// Whether Python computes it without an error for these arguments, whatever is read.
    pub fn is_possible(&self, arguments: &[Scalar]) -> bool {
        if self.is_given() {
            return self.now(Numbers { arguments, reads: &[] }).is_some();
        }
        match self {
            Number::Float(n) | Number::Negative(n) | Number::Absolute(n) => n.is_possible(arguments),
            Number::Binary(how, a, b) => {
                let divisor = || b.now(Numbers { arguments, reads: &[] }).map(Scalar::to_f64);
                let divides = *how != Arithmetic::Divide || divisor().is_some_and(|d| d != 0.0);
                divides && a.is_possible(arguments) && b.is_possible(arguments)
            }
            _ => true,
        }
    }
}

impl Arithmetic {
    fn of(self, a: Scalar, b: Scalar) -> Option<Scalar> {
        if let (Scalar::Int(x), Scalar::Int(y)) = (a, b) {
            return Some(match self {
                Arithmetic::Add => Scalar::Int(x.checked_add(y)?),
                Arithmetic::Subtract => Scalar::Int(x.checked_sub(y)?),
                Arithmetic::Multiply => Scalar::Int(x.checked_mul(y)?),
                // The quotient of larger ones is not that of the nearest floats.
                Arithmetic::Divide if x.unsigned_abs() <= EXACT && y.unsigned_abs() <= EXACT && y != 0 => {
                    Scalar::Float(x as f64 / y as f64)
                }
                Arithmetic::Divide => return None,
            });
        }
        let (x, y) = (a.to_f64(), b.to_f64());
        Some(Scalar::Float(match self {
            Arithmetic::Add => x + y,
            Arithmetic::Subtract => x - y,
            Arithmetic::Multiply => x * y,
            Arithmetic::Divide if y == 0.0 => return None,
            Arithmetic::Divide => x / y,
        }))
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Number::Argument(i) => write!(f, "number {i}"),
            Number::Read { at, .. } => write!(f, "read {at}"),
            Number::Constant(Scalar::Float(x)) => write!(f, "{x:?}"),
            Number::Constant(s) => write!(f, "{s}"),
            Number::Float(n) => write!(f, "float({n})"),
            Number::Negative(n) => write!(f, "-({n})"),
            Number::Absolute(n) => write!(f, "abs({n})"),
            Number::Binary(how, a, b) => {
                let sign = match how {
                    Arithmetic::Add => '+',
                    Arithmetic::Subtract => '-',
                    Arithmetic::Multiply => '*',
                    Arithmetic::Divide => '/',
                };
                write!(f, "({a} {sign} {b})")
            }
        }
    }
}

/// What the function asked of numbers that are given, and was told: a plan is for calls that are told the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// `bool(x)`
    Truth(Number),
    /// `a < b` and its kin; in Python's order: <, <=, ==, !=, >, >=.
    Compare(u8, Number, Number),
}

impl Question {
    /// The answer for these numbers; `None` where it is not known.
    pub fn answer(&self, numbers: Numbers) -> Option<bool> {
        match self {
            Question::Truth(n) => n.now(numbers).map(Scalar::to_bool),
            Question::Compare(how, a, b) => {
                let order = compare(a.now(numbers)?, b.now(numbers)?)?;
                Some(match how {
                    0 => order == Some(Ordering::Less),
                    1 => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    2 => order == Some(Ordering::Equal),
                    3 => order != Some(Ordering::Equal),
                    4 => order == Some(Ordering::Greater),
                    _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                })
            }
        }
    }
}

impl Display for Question {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Question::Truth(n) => write!(f, "bool({n})"),
            Question::Compare(how, a, b) => {
                write!(f, "{a} {} {b}", ["<", "<=", "==", "!=", ">", ">="][usize::from(*how).min(5)])
            }
        }
    }
}

/// The order of two numbers, none beside NaN; nothing where it takes more than floats to say.
fn compare(a: Scalar, b: Scalar) -> Option<Option<Ordering>> {
    let exact = |s: Scalar| !matches!(s, Scalar::Int(i) if i.unsigned_abs() > EXACT);
    match (a, b) {
        (Scalar::Int(x), Scalar::Int(y)) => Some(Some(x.cmp(&y))),
        _ if exact(a) && exact(b) => Some(a.to_f64().partial_cmp(&b.to_f64())),
        _ => None,
    }
}

/// A number that an argument of the next call is: the position among its arguments, and the value there.
#[derive(Clone, Debug)]
pub struct Passed {
    pub at: usize,
    pub number: Number,
    pub value: Scalar,
}

thread_local! {
    static PASSED: RefCell<Vec<Passed>> = const { RefCell::new(Vec::new()) };
    /// The numbers among the arguments of the call whose gradient is computed.
    static FORMULA: RefCell<Vec<(usize, Number)>> = const { RefCell::new(Vec::new()) };
    static ASKED: RefCell<Vec<(Question, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Says which arguments of the call whose gradient is computed are numbers of the recorded function; none after it.
pub fn set_formula(numbers: Vec<(usize, Number)>) {
    FORMULA.set(numbers);
}

/// The number that argument `i` of that call is.
pub fn of_formula(i: usize) -> Option<Number> {
    FORMULA.with_borrow(|list| list.iter().find(|(at, _)| *at == i).map(|(_, n)| n.clone()))
}

/// Notes that a formula depends on the answer to a question.
pub fn ask(question: Question, answer: bool) {
    ASKED.with_borrow_mut(|list| list.push((question, answer)));
}

/// Takes what formulas have asked.
pub fn asked() -> Vec<(Question, bool)> {
    ASKED.take()
}

/// Notes that an argument of the call that is being put together is a number of the recorded function.
pub fn pass(at: usize, number: Number, value: Scalar) {
    PASSED.with_borrow_mut(|list| list.push(Passed { at, number, value }));
}

/// Takes the notes; those of a call that was never made are dropped.
pub fn passed() -> Vec<Passed> {
    PASSED.take()
}

/// The notes of a call whose first two arguments change places, or that follows another call.
pub fn pass_again(list: Vec<Passed>, swapped: bool) {
    let moved = |p: Passed| Passed { at: if swapped { 1 - p.at.min(1) } else { p.at }, ..p };
    PASSED.with_borrow_mut(|now| now.extend(list.into_iter().map(moved)));
}
