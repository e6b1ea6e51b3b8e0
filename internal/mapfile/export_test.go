package mapfile

// Crowd behaves as if so many files were mapped that no other is, until undo is called.
func Crowd() (undo func()) {
	mappings.Add(maxMapped)
	return func() { mappings.Add(-maxMapped) }
}

// What the tests use besides the exported names.
const SmallFile = smallFile

// Mapped returns how many files are mapped.
func Mapped() int64 { return mappings.Load() }
