package compare

// Assembly says whether this machine has kernels in assembly.
func Assembly() bool { return assembly }

// UseAssembly makes comparisons use them or not, and returns what was true before.
func UseAssembly(yes bool) (before bool) {
	before, assembly = assembly, yes
	return before
}
