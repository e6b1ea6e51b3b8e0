// Package live runs an engine's job as go test and the command do: on a device that is there, alone on it, with the module's edited copy
// of transformers if there is one, and with progress that a person can read.
package live
