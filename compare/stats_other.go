//go:build !amd64

package compare

import "github.com/goparity/goparity/tensor"

func (m *spread) reader(t *tensor.Tensor) func(at, n int) { return m.decoded(t) }
