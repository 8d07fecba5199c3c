//go:build tools

// Package helm pins the helm command that the local cluster's tests install the chart with.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
