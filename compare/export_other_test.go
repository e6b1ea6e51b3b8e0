//go:build !amd64

package compare

// ISAs are the instruction sets that there are kernels for, by name.
func ISAs() map[string]int { return map[string]int{"go": 0} }

// SetISA does nothing: there is one kernel.
func SetISA(int) (before int) { return 0 }
