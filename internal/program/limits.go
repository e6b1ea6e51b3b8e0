package program

// What is read of a program at most. A model with 126 layers has 60,000 operators in each pass.
const (
	maxOps      = 1_000_000      // operators
	maxValues   = 4_000_000      // tensors of all passes
	maxPorts    = 4_000_000      // labels of all passes
	maxElements = int64(1) << 36 // of a value: the largest embeddings have 2³¹
)
