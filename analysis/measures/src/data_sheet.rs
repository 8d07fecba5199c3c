//! Peak rates of devices from their makers' data sheets, for captures that state none.
//!
//! Rates are dense: without structured sparsity, which doubles those of 8 and 16 bits and of TF32
//! in most data sheets since 2022. Such a figure is halved here, and the row says so. Rates of 16
//! and 8 bits and of TF32 are of tensor or matrix cores that add up in float32; those of fp32 and
//! fp64 of the other units. The modules of one chip differ in clock and units, so SXM, PCIe and NVL
//! are rows of their own.
//!
//! Each row names its document in a comment, and where its figures were read, for NVIDIA's PDFs are
//! not all open to the machine that builds this. `cluster_info.py` is
//! `tensorrt_llm/auto_parallel/cluster_info.py` of NVIDIA/TensorRT-LLM, which quotes the data
//! sheets, dense. A product without a document that was found has no row.

use flopwatch_model::approximate;

/// What a data sheet says of a device.
#[derive(Debug, PartialEq, Eq)]
pub struct DataSheet {
    /// The data sheet, as sentences name it.
    pub title: &'static str,
    /// Product names of devices as drivers report them, without the maker's.
    names: &'static [&'static str],
    /// Rates in GFLOP/s by type of number.
    rates: &'static [(&'static str, u64)],
}

// NVIDIA H100 Tensor Core GPU Architecture, white paper v1.04 (2023), pages 39 and 40, H100 SXM5:
// dense beside sparse. The data sheets of H100 (2430615), H200 (3002446, SC23) and GH200 (3773000)
// round the same: 67 and 34 TFLOP/s, and with sparsity 989, 1,979 and 3,958.
const HOPPER_SXM: &[(&str, u64)] = &[
    ("fp8", 1_978_900),
    ("int8", 1_978_900),
    ("bf16", 989_400),
    ("fp16", 989_400),
    ("tf32", 494_700),
    ("fp32", 66_900),
    ("fp64", 33_500),
];
// NVIDIA H100 and H200 product pages (nvidia.com/en-us/data-center/h100 and h200, as quoted in
// 2026), columns NVL: with sparsity 3,341, 1,671 and 835; halved.
const HOPPER_NVL: &[(&str, u64)] = &[
    ("fp8", 1_670_500),
    ("int8", 1_670_500),
    ("bf16", 835_500),
    ("fp16", 835_500),
    ("tf32", 417_500),
    ("fp32", 60_000),
    ("fp64", 30_000),
];

/// The data sheets. A product that is not in the list has none: names of others may begin alike.
static ALL: &[DataSheet] = &[
    DataSheet {
        // NVIDIA Blackwell data sheet (3384703), "Individual Blackwell GPU", HGX B200: with
        // sparsity 9,000 (FP8 and INT8), 4,500 and 2,200; halved. FP32 75 and FP64 37.
        title: "NVIDIA HGX B200",
        names: &["B200"],
        rates: &[
            ("fp8", 4_500_000),
            ("int8", 4_500_000),
            ("bf16", 2_250_000),
            ("fp16", 2_250_000),
            ("tf32", 1_100_000),
            ("fp32", 75_000),
            ("fp64", 37_000),
        ],
    },
    DataSheet {
        // The same document, GB200 NVL72: with sparsity 10,000, 5,000 and 2,500; halved. FP32 80
        // and FP64 40.
        title: "NVIDIA GB200 NVL72",
        names: &["GB200"],
        rates: &[
            ("fp8", 5_000_000),
            ("int8", 5_000_000),
            ("bf16", 2_500_000),
            ("fp16", 2_500_000),
            ("tf32", 1_250_000),
            ("fp32", 80_000),
            ("fp64", 40_000),
        ],
    },
    DataSheet {
        title: "NVIDIA H200 SXM",
        names: &["H200"],
        rates: HOPPER_SXM,
    },
    DataSheet {
        title: "NVIDIA H200 NVL",
        names: &["H200 NVL"],
        rates: HOPPER_NVL,
    },
    DataSheet {
        title: "NVIDIA GH200",
        names: &["GH200 120GB", "GH200 480GB", "GH200 144G HBM3e"],
        rates: HOPPER_SXM,
    },
    DataSheet {
        title: "NVIDIA H100 SXM",
        names: &["H100 80GB HBM3"],
        rates: HOPPER_SXM,
    },
    DataSheet {
        title: "NVIDIA H100 NVL",
        names: &["H100 NVL"],
        rates: HOPPER_NVL,
    },
    DataSheet {
        // The white paper of H100 SXM, H100 PCIe: dense beside sparse. The H100 data sheet
        // (2287922) rounds to 51 and 26; cluster_info.py has those of tensor cores.
        title: "NVIDIA H100 PCIe",
        names: &["H100 PCIe"],
        rates: &[
            ("fp8", 1_513_000),
            ("int8", 1_513_000),
            ("bf16", 756_000),
            ("fp16", 756_000),
            ("tf32", 378_000),
            ("fp32", 51_200),
            ("fp64", 25_600),
        ],
    },
    DataSheet {
        // NVIDIA A100 data sheet (1758950 r4; 2188504): dense, one column for SXM and
        // PCIe of 40 and 80 GB. cluster_info.py has the same.
        title: "NVIDIA A100",
        names: &["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"],
        rates: &[
            ("int8", 624_000),
            ("bf16", 312_000),
            ("fp16", 312_000),
            ("tf32", 156_000),
            ("fp32", 19_500),
            ("fp64", 9_700),
        ],
    },
    DataSheet {
        // NVIDIA A30 data sheet (March 2022): dense beside sparse. cluster_info.py has those of
        // tensor cores.
        title: "NVIDIA A30",
        names: &["A30"],
        rates: &[
            ("int8", 330_000),
            ("bf16", 165_000),
            ("fp16", 165_000),
            ("tf32", 82_000),
            ("fp32", 10_300),
            ("fp64", 5_200),
        ],
    },
    DataSheet {
        // NVIDIA A40 data sheet (1469711 r8): dense beside sparse.
        title: "NVIDIA A40",
        names: &["A40"],
        rates: &[
            ("int8", 299_300),
            ("bf16", 149_700),
            ("fp16", 149_700),
            ("tf32", 74_800),
            ("fp32", 37_400),
        ],
    },
    DataSheet {
        // NVIDIA A10 data sheet (nvidia-a10-datasheet.pdf): dense beside sparse.
        // cluster_info.py has those of tensor cores.
        title: "NVIDIA A10",
        names: &["A10"],
        rates: &[
            ("int8", 250_000),
            ("bf16", 125_000),
            ("fp16", 125_000),
            ("tf32", 62_500),
            ("fp32", 31_200),
        ],
    },
    DataSheet {
        // NVIDIA L4 data sheet (2595652): with sparsity 485, 242 and 120; halved.
        title: "NVIDIA L4",
        names: &["L4"],
        rates: &[
            ("fp8", 242_500),
            ("int8", 242_500),
            ("bf16", 121_000),
            ("fp16", 121_000),
            ("tf32", 60_000),
            ("fp32", 30_300),
        ],
    },
    DataSheet {
        // NVIDIA L40S data sheet (28413): dense beside sparse. cluster_info.py has the same.
        title: "NVIDIA L40S",
        names: &["L40S"],
        rates: &[
            ("fp8", 733_000),
            ("int8", 733_000),
            ("bf16", 362_050),
            ("fp16", 362_050),
            ("tf32", 183_000),
            ("fp32", 91_600),
        ],
    },
    DataSheet {
        // NVIDIA V100 data sheet (1165301 r5), V100 SXM2. Volta has no sparsity.
        title: "NVIDIA V100 SXM2",
        names: &["V100-SXM2-16GB", "V100-SXM2-32GB"],
        rates: &[("fp16", 125_000), ("fp32", 15_700), ("fp64", 7_800)],
    },
    DataSheet {
        // The same document, V100 PCIe.
        title: "NVIDIA V100 PCIe",
        names: &["V100-PCIE-16GB", "V100-PCIE-32GB"],
        rates: &[("fp16", 112_000), ("fp32", 14_000), ("fp64", 7_000)],
    },
    DataSheet {
        // NVIDIA T4 data sheet (951643). Turing has no sparsity.
        title: "NVIDIA T4",
        names: &["T4"],
        rates: &[("int8", 130_000), ("fp16", 65_000), ("fp32", 8_100)],
    },
    DataSheet {
        // AMD CDNA 3 white paper, note MI300-11 (November 2023): dense; FP32 and FP64 of vector
        // units. The MI300X data sheet has the same.
        title: "AMD Instinct MI300X",
        names: &["MI300X"],
        rates: &[
            ("fp8", 2_614_900),
            ("int8", 2_614_900),
            ("bf16", 1_307_400),
            ("fp16", 1_307_400),
            ("tf32", 653_700),
            ("fp32", 163_400),
            ("fp64", 81_700),
        ],
    },
];

/// Makers and families that drivers put before a product's name.
const BEFORE: [&str; 4] = ["NVIDIA ", "Tesla ", "AMD ", "Instinct "];

impl DataSheet {
    /// Of the device that a driver calls `name`, and of no other that is called alike.
    pub fn of(name: &str) -> Option<&'static Self> {
        let mut product = name.trim();
        for before in BEFORE {
            product = product.strip_prefix(before).unwrap_or(product);
        }
        ALL.iter().find(|sheet| sheet.names.contains(&product))
    }

    /// Operations per second for a type of number (`bf16`, `fp32`); where the type is not known,
    /// for that of 16 bits that models are trained with. `None` where the device has no such type.
    pub fn peak(&self, element_type: Option<&str>) -> Option<f64> {
        let rate = |wanted: &str| self.rates.iter().find(|(name, _)| *name == wanted);
        let known = match element_type {
            Some(name) => rate(name),
            None => rate("bf16").or_else(|| rate("fp16")),
        };
        known.map(|(_, giga)| approximate(u128::from(*giga)) * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_device_is_known_by_its_whole_name() {
        let title = |name| DataSheet::of(name).map(|sheet| sheet.title);
        assert_eq!(title("NVIDIA H100 80GB HBM3"), Some("NVIDIA H100 SXM"));
        assert_eq!(title("Tesla V100-SXM2-16GB"), Some("NVIDIA V100 SXM2"));
        assert_eq!(title("AMD Instinct MI300X"), Some("AMD Instinct MI300X"));
        assert_eq!(title("A100-SXM4-80GB"), Some("NVIDIA A100"));
        for other in [
            "NVIDIA A10G",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "NVIDIA H100",
            "Simulated GPU",
            "",
        ] {
            assert_eq!(title(other), None, "{other}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_type_and_of_16_bits_where_it_is_not_known() {
        let sheet = DataSheet::of("NVIDIA H100 80GB HBM3").unwrap();
        assert_eq!(sheet.peak(Some("fp32")), Some(66.9e12));
        assert_eq!(sheet.peak(None), Some(989.4e12));
        assert_eq!(sheet.peak(Some("fp4")), None);
        let volta = DataSheet::of("Tesla V100-SXM2-16GB").unwrap();
        assert_eq!(volta.peak(Some("bf16")), None);
        assert_eq!(volta.peak(None), Some(125e12));
    }

    /// Figures of four documents, with sparsity as they have them, or dense.
    #[test]
    fn rates_are_the_dense_ones_of_the_documents() {
        for (name, element_type, tera, is_sparse) in [
            ("NVIDIA B200", "tf32", 2_200.0, true),
            ("NVIDIA GB200", "int8", 10_000.0, true),
            ("NVIDIA H100 NVL", "bf16", 1_671.0, true),
            ("NVIDIA H200 NVL", "fp8", 3_341.0, true),
            ("NVIDIA H100 PCIe", "fp8", 3_026.0, true),
            ("NVIDIA GH200 144G HBM3e", "fp16", 1_978.8, true),
            ("NVIDIA L4", "int8", 485.0, true),
            ("NVIDIA A100-SXM4-80GB", "bf16", 312.0, false),
            ("NVIDIA L40S", "fp8", 733.0, false),
            ("AMD Instinct MI300X", "fp64", 81.7, false),
        ] {
            let dense = if is_sparse { tera / 2.0 } else { tera };
            let peak = DataSheet::of(name).unwrap().peak(Some(element_type)).unwrap();
            assert!((peak - dense * 1e12).abs() < 1e6, "{name}: {peak}");
        }
    }

    #[test]
    fn no_device_has_two_data_sheets_and_none_is_slower_with_fewer_bits() {
        let mut names = BTreeSet::new();
        for sheet in ALL {
            assert!(sheet.names.iter().all(|name| names.insert(*name)), "{}", sheet.title);
            let rates: Vec<u64> = sheet.rates.iter().map(|(_, rate)| *rate).collect();
            assert!(rates.is_sorted_by(|more, less| more >= less), "{}", sheet.title);
        }
    }
}
