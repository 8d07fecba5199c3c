//! Peak rates of devices from their makers' data sheets, for captures that state none.
//!
//! Rates are dense: without structured sparsity, which data sheets of NVIDIA since 2022 have in
//! their larger figure. Those of 16 and 8 bits and of TF32 are of tensor or matrix cores that add
//! up in float32; those of fp32 and fp64 of the other units.

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

const H100_SXM: &[(&str, u64)] = &[
    ("fp8", 1_978_900),
    ("int8", 1_978_900),
    ("bf16", 989_400),
    ("fp16", 989_400),
    ("tf32", 494_700),
    ("fp32", 66_900),
    ("fp64", 33_500),
];
const A100: &[(&str, u64)] = &[
    ("int8", 624_000),
    ("bf16", 312_000),
    ("fp16", 312_000),
    ("tf32", 156_000),
    ("fp32", 19_500),
    ("fp64", 9_700),
];

/// The data sheets. A product that is not in the list has none: names of others may begin alike.
static ALL: &[DataSheet] = &[
    DataSheet {
        title: "NVIDIA HGX B200",
        names: &["B200"],
        rates: &[
            ("fp8", 4_500_000),
            ("bf16", 2_250_000),
            ("fp16", 2_250_000),
            ("tf32", 1_100_000),
            ("fp32", 75_000),
            ("fp64", 37_000),
        ],
    },
    DataSheet {
        title: "NVIDIA H200 SXM",
        names: &["H200"],
        rates: H100_SXM,
    },
    DataSheet {
        title: "NVIDIA GH200",
        names: &["GH200 120GB", "GH200 480GB"],
        rates: H100_SXM,
    },
    DataSheet {
        title: "NVIDIA H100 SXM",
        names: &["H100 80GB HBM3"],
        rates: H100_SXM,
    },
    DataSheet {
        title: "NVIDIA H100 PCIe",
        names: &["H100 PCIe"],
        rates: &[
            ("fp8", 1_513_000),
            ("int8", 1_513_000),
            ("bf16", 756_000),
            ("fp16", 756_000),
            ("tf32", 378_000),
            ("fp32", 51_000),
            ("fp64", 26_000),
        ],
    },
    DataSheet {
        title: "NVIDIA A100",
        names: &["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"],
        rates: A100,
    },
    DataSheet {
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
        title: "NVIDIA V100 SXM2",
        names: &["V100-SXM2-16GB", "V100-SXM2-32GB"],
        rates: &[("fp16", 125_000), ("fp32", 15_700), ("fp64", 7_800)],
    },
    DataSheet {
        title: "NVIDIA V100 PCIe",
        names: &["V100-PCIE-16GB", "V100-PCIE-32GB"],
        rates: &[("fp16", 112_000), ("fp32", 14_000), ("fp64", 7_000)],
    },
    DataSheet {
        title: "NVIDIA T4",
        names: &["T4"],
        rates: &[("int8", 130_000), ("fp16", 65_000), ("fp32", 8_100)],
    },
    DataSheet {
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
        for other in ["NVIDIA A10G", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H100 NVL", ""] {
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
