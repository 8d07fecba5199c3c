//! Floating-point operations of framework operators, from the shapes of their inputs.
//!
//! A multiply-add is two operations. Additions of a bias, scaling and softmax are left out, as in
//! PyTorch's `FlopCounterMode` (`torch/utils/flop_counter.py`). With `batch` the product of the
//! leading dimensions:
//!
//! - a matrix product of `[batch, m, k]` and `[batch, k, n]` is `2 * batch * m * n * k`;
//! - attention of queries `[batch, heads, q, d]`, keys `[.., k, d]` and values `[.., k, v]` is two
//!   such products, `2 * batch * heads * q * k * (d + v)`. A causal mask is no input shape, so all
//!   of the scores count;
//! - its backward pass is five of them, `2 * batch * heads * q * k * (3 * d + 2 * v)`: the scores
//!   are computed again.

use serde_json::Value;

/// How an operator's operations follow from its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlopFormula {
    /// The product of two inputs, broadcast as `torch.matmul` does; the number is the place of the
    /// first one.
    Product(usize),
    /// The product of an input and the transposed second one.
    Linear,
    /// Attention of the first three inputs.
    Attention(AttentionLayout),
    /// Its backward pass: the gradient of the output is the first input, queries, keys and values
    /// follow.
    AttentionBackward(AttentionLayout),
}

/// Where attention has its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionLayout {
    /// `[batch, heads, sequence, d]`.
    HeadsFirst,
    /// `[batch, sequence, heads, d]`. The number is the place of the input that holds the offsets
    /// of sequences packed into one. It must be empty: the lengths of packed sequences are not
    /// recorded.
    SequenceFirst(usize),
}

use AttentionLayout::{HeadsFirst, SequenceFirst};
use FlopFormula::{Attention, AttentionBackward, Linear, Product};

/// The operators whose operations are known.
pub const FORMULAS: &[(&str, FlopFormula)] = &[
    ("aten::mm", Product(0)),
    ("aten::bmm", Product(0)),
    ("aten::matmul", Product(0)),
    ("aten::_scaled_mm", Product(0)),
    ("aten::addmm", Product(1)),
    ("aten::_addmm_activation", Product(1)),
    ("aten::baddbmm", Product(1)),
    ("aten::linear", Linear),
    ("aten::scaled_dot_product_attention", Attention(HeadsFirst)),
    ("aten::_scaled_dot_product_flash_attention", Attention(HeadsFirst)),
    ("aten::_scaled_dot_product_efficient_attention", Attention(HeadsFirst)),
    ("aten::_scaled_dot_product_cudnn_attention", Attention(HeadsFirst)),
    ("aten::_flash_attention_forward", Attention(SequenceFirst(3))),
    ("aten::_efficient_attention_forward", Attention(SequenceFirst(4))),
    ("flash_attn::_flash_attn_forward", Attention(SequenceFirst(usize::MAX))),
    (
        "aten::_scaled_dot_product_flash_attention_backward",
        AttentionBackward(HeadsFirst),
    ),
    (
        "aten::_scaled_dot_product_efficient_attention_backward",
        AttentionBackward(HeadsFirst),
    ),
    (
        "aten::_scaled_dot_product_cudnn_attention_backward",
        AttentionBackward(HeadsFirst),
    ),
    ("aten::_flash_attention_backward", AttentionBackward(SequenceFirst(6))),
    (
        "aten::_efficient_attention_backward",
        AttentionBackward(SequenceFirst(6)),
    ),
    (
        "flash_attn::_flash_attn_backward",
        AttentionBackward(SequenceFirst(usize::MAX)),
    ),
];

/// Types of numbers, as PyTorch's and as [`flopwatch_model::Device::peak_flops`] name them.
const TYPES: &[(&str, &str)] = &[
    ("double", "fp64"),
    ("float", "fp32"),
    ("c10::Half", "fp16"),
    ("c10::BFloat16", "bf16"),
    ("c10::Float8_e4m3fn", "fp8"),
    ("c10::Float8_e5m2", "fp8"),
    ("signed char", "int8"),
];

impl FlopFormula {
    /// Of the operator of that name; `None` where its operations are not known.
    pub fn of(operator: &str) -> Option<Self> {
        let known = FORMULAS.iter().find(|(name, _)| *name == operator);
        known.map(|(_, formula)| *formula)
    }

    /// The matrix product of a call with inputs of `shapes`; `None` of attention, and where the
    /// shapes do not fit.
    pub fn matrix_product(self, shapes: &str) -> Option<MatrixProduct> {
        let shapes = all_dimensions(shapes)?;
        match self {
            Self::Product(at) => matrix_product(shapes.get(at)?, shapes.get(at + 1)?),
            Self::Linear => {
                let transposed: Vec<u64> = shapes.get(1)?.iter().rev().copied().collect();
                matrix_product(shapes.first()?, &transposed)
            }
            Self::Attention(_) | Self::AttentionBackward(_) => None,
        }
    }

    /// The operations of a call with inputs of `shapes`, a JSON list as
    /// [`flopwatch_model::ColumnId::InputShapes`] has it. `None` where the shapes do not fit the
    /// operator.
    pub fn flops(self, shapes: &str) -> Option<u64> {
        let shapes = all_dimensions(shapes)?;
        match self {
            Self::Product(at) => product(shapes.get(at)?, shapes.get(at + 1)?),
            Self::Linear => {
                let (weight, input) = (shapes.get(1)?, shapes.first()?);
                let transposed: Vec<u64> = weight.iter().rev().copied().collect();
                product(input, &transposed)
            }
            Self::Attention(layout) => {
                let (scores, d, v) = layout.scores(&shapes, 0)?;
                times(&[2, scores, d.checked_add(v)?])
            }
            Self::AttentionBackward(layout) => {
                let (scores, d, v) = layout.scores(&shapes, 1)?;
                let depth = d.checked_mul(3)?.checked_add(v.checked_mul(2)?)?;
                times(&[2, scores, depth])
            }
        }
    }

    /// The type of the numbers that are multiplied, from [`flopwatch_model::ColumnId::InputTypes`];
    /// `None` of an unknown one.
    pub fn element_type(self, types: &str) -> Option<&'static str> {
        let types: Vec<Value> = serde_json::from_str(types).ok()?;
        let at = match self {
            Self::Product(at) => at,
            Self::Linear | Self::Attention(_) | Self::AttentionBackward(_) => 0,
        };
        let named = types.get(at)?.as_str()?;
        let known = TYPES.iter().find(|(name, _)| *name == named);
        known.map(|(_, name)| *name)
    }
}

impl AttentionLayout {
    /// Elements of the scores of all batches and heads, and the last dimensions of keys and of
    /// values. `first` is the place of the queries.
    fn scores(self, shapes: &[Vec<u64>], first: usize) -> Option<(u64, u64, u64)> {
        let four = |at: usize| -> Option<[u64; 4]> { shapes.get(first + at)?.as_slice().try_into().ok() };
        let ordered = |at: usize| {
            let [batch, second, third, depth] = four(at)?;
            Some(match self {
                Self::HeadsFirst => [batch, second, third, depth],
                Self::SequenceFirst(_) => [batch, third, second, depth],
            })
        };
        if let Self::SequenceFirst(offsets) = self
            && shapes.get(offsets).is_some_and(|offsets| !offsets.is_empty())
        {
            return None;
        }
        let ([batch, heads, queries, d], [_, _, keys, key_d], [_, _, values, v]) =
            (ordered(0)?, ordered(1)?, ordered(2)?);
        if d != key_d || keys != values {
            return None;
        }
        Some((times(&[batch, heads, queries, keys])?, d, v))
    }
}

/// Dimensions of each input; none of one that is no tensor.
fn all_dimensions(shapes: &str) -> Option<Vec<Vec<u64>>> {
    let shapes: Vec<Value> = serde_json::from_str(shapes).ok()?;
    let shapes = shapes.iter().map(|shape| dimensions(shape).unwrap_or_default());
    Some(shapes.collect())
}

/// Bytes of the tensors of a call, from [`flopwatch_model::ColumnId::InputShapes`] and
/// [`flopwatch_model::ColumnId::InputTypes`]. Those that it reads and does not write are not told
/// apart, and its result is not among them. `None` where a tensor's type is not known.
pub fn input_bytes(shapes: &str, types: &str) -> Option<u64> {
    let shapes: Vec<Value> = serde_json::from_str(shapes).ok()?;
    let types: Vec<Value> = serde_json::from_str(types).ok()?;
    let mut total = 0_u64;
    for (shape, name) in shapes.iter().zip(&types) {
        let dimensions = dimensions(shape)?;
        if dimensions.is_empty() {
            continue;
        }
        let size = BYTES.iter().find(|(known, _)| name.as_str() == Some(known));
        let (_, size) = size?;
        let bytes = times(&dimensions)?.checked_mul(*size)?;
        total = total.checked_add(bytes)?;
    }
    (total > 0).then_some(total)
}

/// Bytes of a number, by the name that PyTorch records.
const BYTES: &[(&str, u64)] = &[
    ("double", 8),
    ("float", 4),
    ("c10::Half", 2),
    ("c10::BFloat16", 2),
    ("c10::Float8_e4m3fn", 1),
    ("c10::Float8_e5m2", 1),
    ("c10::complex<float>", 8),
    ("c10::complex<double>", 16),
    ("long int", 8),
    ("long", 8),
    ("int", 4),
    ("short int", 2),
    ("short", 2),
    ("signed char", 1),
    ("unsigned char", 1),
    ("bool", 1),
];

fn dimensions(shape: &Value) -> Option<Vec<u64>> {
    shape.as_array()?.iter().map(Value::as_u64).collect()
}

/// Operations of `torch.matmul` of two shapes.
fn product(left: &[u64], right: &[u64]) -> Option<u64> {
    let MatrixProduct { batch, m, n, k } = MatrixProduct::of(left, right)?;
    times(&[2, batch, m, n, k])
}

/// The dimensions of `batch` products of `m` by `k` and `k` by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatrixProduct {
    /// How many, the product of the leading dimensions.
    pub batch: u64,
    /// Rows of the left matrix.
    pub m: u64,
    /// Columns of the right one.
    pub n: u64,
    /// What is summed over.
    pub k: u64,
}

impl MatrixProduct {
    /// The largest of 128, 64, 32, 16, 8, 4 and 2 of which all of `m`, `n` and `k` are multiples,
    /// else 1. A dimension of 1 is none: such a product is of a matrix and a vector.
    pub fn alignment(self) -> u64 {
        let fits = |of: u64| {
            [self.m, self.n, self.k]
                .iter()
                .all(|length| *length == 1 || length % of == 0)
        };
        [128, 64, 32, 16, 8, 4, 2].into_iter().find(|of| fits(*of)).unwrap_or(1)
    }

    /// Whether it is of a matrix and a vector, which memory bounds.
    pub const fn is_vector(self) -> bool {
        self.m == 1 || self.n == 1
    }

    /// Of two shapes as `torch.matmul` reads them: a vector is a row on the left and a column on
    /// the right, leading dimensions are broadcast.
    fn of(left: &[u64], right: &[u64]) -> Option<Self> {
        matrix_product(left, right)
    }
}

fn matrix_product(left: &[u64], right: &[u64]) -> Option<MatrixProduct> {
    let (left_batch, m, k) = match left {
        [] => return None,
        [k] => (&[][..], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
    };
    let (right_batch, right_k, n) = match right {
        [] => return None,
        [k] => (&[][..], *k, 1),
        [batch @ .., k, n] => (batch, *k, *n),
    };
    if k != right_k {
        return None;
    }
    let mut batch = 1_u64;
    for offset in 1..=left_batch.len().max(right_batch.len()) {
        let size = |batch: &[u64]| {
            let at = batch.len().checked_sub(offset)?;
            batch.get(at).copied()
        };
        let (one, other) = (size(left_batch).unwrap_or(1), size(right_batch).unwrap_or(1));
        if one != other && one != 1 && other != 1 {
            return None;
        }
        batch = batch.checked_mul(if one == 1 { other } else { one })?;
    }
    Some(MatrixProduct { batch, m, n, k })
}

fn times(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(*factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flops(operator: &str, shapes: &str) -> Option<u64> {
        FlopFormula::of(operator)?.flops(shapes)
    }

    #[test]
    fn matrix_products_count_two_per_multiply_add() {
        assert_eq!(flops("aten::mm", "[[2,3],[3,4]]"), Some(2 * 2 * 3 * 4));
        assert_eq!(flops("aten::addmm", "[[4],[2,3],[3,4],[],[]]"), Some(48));
        assert_eq!(flops("aten::bmm", "[[5,2,3],[5,3,4]]"), Some(5 * 48));
        assert_eq!(flops("aten::baddbmm", "[[5,2,4],[5,2,3],[5,3,4]]"), Some(5 * 48));
        assert_eq!(flops("aten::linear", "[[7,2,3],[4,3],[4]]"), Some(7 * 48));
    }

    #[test]
    fn matmul_broadcasts_and_takes_vectors() {
        assert_eq!(flops("aten::matmul", "[[3],[3]]"), Some(6));
        assert_eq!(flops("aten::matmul", "[[2,3],[3]]"), Some(12));
        assert_eq!(flops("aten::matmul", "[[5,1,2,3],[6,3,4]]"), Some(5 * 6 * 48));
    }

    #[test]
    fn attention_is_two_products_forward_and_five_backward() {
        let heads_first = "[[1,8,10,64],[1,8,20,64],[1,8,20,32]]";
        let scores = 8 * 10 * 20;
        let forward = Some(2 * scores * (64 + 32));
        assert_eq!(flops("aten::scaled_dot_product_attention", heads_first), forward);
        let sequence_first = "[[1,10,8,64],[1,20,8,64],[1,20,8,32],[],[]]";
        assert_eq!(flops("aten::_flash_attention_forward", sequence_first), forward);
        let backward = "[[1,8,10,32],[1,8,10,64],[1,8,20,64],[1,8,20,32]]";
        assert_eq!(
            flops("aten::_scaled_dot_product_flash_attention_backward", backward),
            Some(2 * scores * (3 * 64 + 2 * 32))
        );
    }

    #[test]
    fn shapes_that_do_not_fit_and_packed_sequences_are_not_guessed() {
        assert_eq!(flops("aten::mm", "[[2,3],[4,5]]"), None);
        assert_eq!(flops("aten::mm", "[[],[]]"), None);
        assert_eq!(flops("aten::mm", "not JSON"), None);
        assert_eq!(flops("aten::add", "[[2],[2]]"), None);
        let packed = "[[1,10,8,64],[1,20,8,64],[1,20,8,64],[],[3],[3]]";
        assert_eq!(flops("aten::_efficient_attention_forward", packed), None);
        assert_eq!(
            flops("aten::mm", "[[9999999999,9999999999],[9999999999,9999999999]]"),
            None
        );
    }

    #[test]
    fn dimensions_of_products_are_told_with_what_they_are_multiples_of() {
        let of = |operator, shapes| FlopFormula::of(operator).unwrap().matrix_product(shapes).unwrap();
        let linear = of("aten::linear", "[[7,2,3],[4,3],[4]]");
        assert_eq!((linear.batch, linear.m, linear.n, linear.k), (7, 2, 4, 3));
        assert_eq!(of("aten::mm", "[[1024,768],[768,50257]]").alignment(), 1);
        assert_eq!(of("aten::addmm", "[[64],[256,768],[768,64]]").alignment(), 64);
        let vector = of("aten::mm", "[[1,4096],[4096,4096]]");
        assert!(vector.is_vector() && vector.alignment() == 128);
    }

    #[test]
    fn bytes_of_inputs_are_their_elements_times_the_size_of_their_type() {
        let bytes = |shapes, types| input_bytes(shapes, types);
        assert_eq!(
            bytes("[[2,3],[3],[]]", r#"["float","c10::Half","Scalar"]"#),
            Some(24 + 6)
        );
        assert_eq!(bytes("[[2,3]]", r#"["quaternion"]"#), None);
        assert_eq!(bytes("[[]]", r#"["Scalar"]"#), None);
        assert_eq!(bytes("[[[2,3],[2,3]]]", r#"["TensorList"]"#), None);
    }

    #[test]
    fn the_type_is_that_of_the_numbers_that_are_multiplied() {
        let formula = FlopFormula::of("aten::addmm").unwrap();
        let types = r#"["float","c10::BFloat16","c10::BFloat16","Scalar","Scalar"]"#;
        assert_eq!(formula.element_type(types), Some("bf16"));
        assert_eq!(formula.element_type(r#"["float","Tensor"]"#), None);
    }
}
