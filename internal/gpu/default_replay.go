//go:build !gpu

package gpu

// DefaultRun is what tests do where nobody says: replay the recorded run.
const DefaultRun = "replay"
