//go:build !amd64

package compare

// Assembly says whether this machine has kernels in assembly.
func Assembly() bool { return false }

// UseAssembly does nothing, since there is only one kernel.
func UseAssembly(bool) (before bool) { return false }
