package setting

// Run is what is judged. By default it is [DefaultRun].
type Run string

// The runs.
const (
	RunReplay Run = "replay" // a recorded run
	RunCPU    Run = "cpu"    // the candidate runs now, on the CPU
	RunGPU    Run = "gpu"    // now, on the GPU
)

// MarshalText returns the word.
func (r Run) MarshalText() ([]byte, error) { return []byte(r), nil }

// UnmarshalText reads one of the runs.
func (r *Run) UnmarshalText(text []byte) error { return parse(r, text, RunReplay, RunCPU, RunGPU) }
