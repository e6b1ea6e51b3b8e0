package setting

// Run says what is judged. The default is [DefaultRun].
type Run string

// The values of [Run].
const (
	RunReplay Run = "replay" // a recorded run
	RunCPU    Run = "cpu"    // the candidate runs now, on the CPU
	RunGPU    Run = "gpu"    // the candidate runs now, on the GPU
)

// MarshalText returns r's word.
func (r Run) MarshalText() ([]byte, error) { return []byte(r), nil }

// UnmarshalText reads a word.
func (r *Run) UnmarshalText(text []byte) error { return parse(r, text, RunReplay, RunCPU, RunGPU) }
