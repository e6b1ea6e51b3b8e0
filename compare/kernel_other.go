//go:build !amd64

package compare

import "github.com/goparity/goparity/tensor"

// call is what kernels in assembly are called with: there are none here.
type call struct{}

// window is what they need for views.
type window struct{ of *tensor.Tensor }

func fastest(golden, actual tensor.DType, tol Tolerance) kernel { return reference{} }
