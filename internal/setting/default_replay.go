//go:build !gpu

package setting

// DefaultRun is what tests do by default: replay the recorded run.
const DefaultRun = RunReplay
