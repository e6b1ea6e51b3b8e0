//go:build gpu

package setting

// DefaultRun is what tests do by default: with the build tag gpu, run the candidate on the GPU.
const DefaultRun = RunGPU
