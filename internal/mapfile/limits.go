package mapfile

const (
	// smallFile is up to which size a file is read and not mapped. Measured, ext4, warm, with open
	// and close: 4 KiB 8 µs against 15, 16 KiB 13 against 14, 64 KiB 34 against 18.
	smallFile = 16 << 10
	// maxMapped is how many files are mapped at once; more are read. Linux allows 65,530 mappings
	// (vm.max_map_count), those of the process itself among them, and ends a Go program that gets no more.
	maxMapped = 1 << 15
)

// What is read of a file at most, in bytes: many times what real ones have, and no more than fits
// into memory.
const (
	MaxConfig  = 16 << 20 // what people write: fixture.yaml, config.json
	MaxListing = 1 << 30  // what has a line for each tensor: of 100,000, report.json has 200 MB, run.json 10
	MaxLog     = 1 << 30  // what an engine printed
)
