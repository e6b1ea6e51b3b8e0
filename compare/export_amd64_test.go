package compare

// ISAs are the instruction sets of this machine for which there are kernels, by name.
func ISAs() map[string]int {
	m := map[string]int{"go": 0}
	if isa >= avx2 {
		m["avx2"] = avx2
	}
	if isa >= avx512 {
		m["avx512"] = avx512
	}
	return m
}

// SetISA makes comparisons use one of them, and returns the previous one.
func SetISA(n int) (before int) {
	before, isa = isa, n
	return before
}
