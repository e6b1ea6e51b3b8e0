//go:build !gpu

package setting

// DefaultRun is what tests do where no one says: replay the recorded run.
const DefaultRun = RunReplay
