//go:build gpu

package setting

// DefaultRun is what tests do where no one says: with the build tag gpu, run the candidate on the
// GPU.
const DefaultRun = RunGPU
