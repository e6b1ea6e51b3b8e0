//go:build gpu

package gpu

// DefaultRun is what tests do where nobody says: with the build tag gpu, run the candidate on the GPU.
const DefaultRun = "gpu"
