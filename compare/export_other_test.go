//go:build !amd64

package compare

// ISAs are the instruction sets for which there are kernels, by name.
func ISAs() map[string]int { return map[string]int{"go": 0} }

// SetISA does nothing, since there is only one kernel.
func SetISA(int) (before int) { return 0 }
