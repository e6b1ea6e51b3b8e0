//go:build !amd64

package compare

// call would have the arguments of kernels in assembly. There are none on this platform.
type call struct{}

func fastest(*pass) kernel { return loop }
