package mapfile

// Crowd behaves as if so many files were open that no other is kept, until undo is called.
func Crowd() (undo func()) {
	mappings.Add(maxMapped)
	bytesRead.Add(maxRead)
	return func() {
		mappings.Add(-maxMapped)
		bytesRead.Add(-maxRead)
	}
}

// What the tests use besides the exported names.
const SmallFile = smallFile

// InUse returns what all open files take.
func InUse() (files, bytes int64) { return mappings.Load(), bytesRead.Load() }
