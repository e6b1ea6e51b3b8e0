package compare

// ISAs are the instruction sets that this machine has kernels for, by name.
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

// SetISA makes comparisons use one of them, and gives that of before.
func SetISA(n int) (before int) {
	before, isa = isa, n
	return before
}
