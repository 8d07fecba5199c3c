//! Parts of GPUs that are devices of their own: instances of MIG (Multi-Instance GPU).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Device;

/// Which part of its GPU a device is. A number that the source does not give is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigInstance {
    /// Number of the GPU instance among those of the GPU.
    pub gpu_instance: Option<u32>,
    /// Number of the compute instance among those of the GPU instance.
    pub compute_instance: Option<u32>,
    /// UUID that the source gives the device, as the source writes it; empty where it gives none.
    pub uuid: String,
}

impl MigInstance {
    /// Whether a product name is that of an instance, e.g. `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
    pub fn is_named_by(product: &str) -> bool {
        let behind = product.split_once(" MIG ").map(|(_, behind)| behind);
        behind.is_some_and(|profile| profile.starts_with(|first: char| first.is_ascii_digit()))
    }
}

/// `GPU instance 3, compute instance 0`, as far as it is known; otherwise `MIG instance`.
impl fmt::Display for MigInstance {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.gpu_instance, self.compute_instance) {
            (Some(gpu), Some(compute)) => write!(to, "GPU instance {gpu}, compute instance {compute}"),
            (Some(gpu), None) => write!(to, "GPU instance {gpu}"),
            (None, Some(compute)) => write!(to, "compute instance {compute}"),
            (None, None) => to.write_str("MIG instance"),
        }
    }
}

impl Device {
    /// The product name, and behind it which part of the GPU the device is, where it is a part:
    /// `NVIDIA H100 MIG 1g.10gb (GPU instance 3, compute instance 0)`. Whatever is a share of the
    /// device is told with this name.
    pub fn full_name(&self) -> Cow<'_, str> {
        match &self.mig {
            None => Cow::Borrowed(&self.name),
            Some(mig) if self.name.is_empty() => Cow::Owned(mig.to_string()),
            // The name alone says as much.
            Some(mig) if (mig.gpu_instance, mig.compute_instance) == (None, None) => Cow::Borrowed(&self.name),
            Some(mig) => Cow::Owned(format!("{} ({mig})", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_name_with_a_profile_is_that_of_an_instance() {
        for (name, is_instance) in [
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", true),
            ("NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", true),
            ("NVIDIA H100 80GB HBM3", false),
            ("NVIDIA MIG ", false),
            ("MIG 1g.5gb", false),
            ("", false),
        ] {
            assert_eq!(MigInstance::is_named_by(name), is_instance, "{name}");
        }
    }

    #[test]
    fn a_device_that_is_a_part_of_a_gpu_says_which() {
        let named = |name: &str, mig: Option<MigInstance>| {
            let device = Device {
                name: name.to_owned(),
                mig,
                ..Device::default()
            };
            device.full_name().into_owned()
        };
        let instance = |gpu_instance, compute_instance| {
            Some(MigInstance {
                gpu_instance,
                compute_instance,
                uuid: String::new(),
            })
        };
        let product = "NVIDIA H100 MIG 1g.10gb";
        assert_eq!(named("NVIDIA H100", None), "NVIDIA H100");
        assert_eq!(
            named(product, instance(Some(3), Some(0))),
            "NVIDIA H100 MIG 1g.10gb (GPU instance 3, compute instance 0)"
        );
        assert_eq!(
            named(product, instance(Some(3), None)),
            "NVIDIA H100 MIG 1g.10gb (GPU instance 3)"
        );
        assert_eq!(named(product, instance(None, None)), product);
        assert_eq!(named("", instance(None, Some(1))), "compute instance 1");
        assert_eq!(named("", instance(None, None)), "MIG instance");
    }
}
