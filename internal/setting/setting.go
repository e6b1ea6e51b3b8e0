// Package setting holds what flags, environment variables and the command's options choose from: a
// type for each setting, whose text is one of a few words. The empty text stands for the setting's
// default. It also names tests as the command line does: their package, their name for -run, and what
// package testing makes of names.
package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

type (
	// Run says what is judged. The default is [DefaultRun].
	Run string
	// Mode says which runs of a candidate are judged. The default is ModeStandard.
	Mode string
	// Inherited says what the test of a layer whose error comes from another layer does, where All or
	// Layers chose it. A layer that a test or -run names fails, in one line. The default is InheritedSkip.
	Inherited string
	// Update says which goldens are updated. The default is UpdateNone.
	Update string
	// Diagnose says how long the cause of a failure is searched for. The default is DiagnoseFull.
	Diagnose string
)

// The values of the settings.
const (
	RunReplay Run = "replay" // a recorded run
	RunCPU    Run = "cpu"    // the candidate runs now, on the CPU
	RunGPU    Run = "gpu"    // the candidate runs now, on the GPU

	// ModeStandard judges each layer on what its own model computed. A replay also judges a recorded
	// injected run.
	ModeStandard Mode = "standard"
	ModeBoth     Mode = "both" // the candidate runs again on the golden inputs, and both runs are judged
	ModeCan      Mode = "can"  // ModeBoth where the engine can run on golden inputs; no flag says it

	InheritedSkip Inherited = "skip"
	InheritedFail Inherited = "fail" // in one line

	UpdateNone Update = "none"
	UpdateNew  Update = "new" // only what has no golden yet
	UpdateAll  Update = "all"

	DiagnoseOff  Diagnose = "off"
	DiagnoseFast Diagnose = "fast"
	DiagnoseFull Diagnose = "full"
)

// words are those of each setting. A type that is not here takes any text.
var words = map[reflect.Type][]string{
	reflect.TypeFor[Run]():       {"replay", "cpu", "gpu"},
	reflect.TypeFor[Mode]():      {"standard", "both"},
	reflect.TypeFor[Inherited](): {"skip", "fail"},
	reflect.TypeFor[Update]():    {"none", "new", "all"},
	reflect.TypeFor[Diagnose]():  {"off", "fast", "full"},
}

// Value is a setting for packages flag and pflag.
type Value[S ~string] struct{ to *S }

// Flag returns the value of a flag that is kept in to.
func Flag[S ~string](to *S) *Value[S] { return &Value[S]{to} }

// String returns the setting's word.
func (v *Value[S]) String() string {
	if v.to == nil { // package flag asks a zero value for the default
		return ""
	}
	return string(*v.to)
}

// Set reads one of the setting's words. The error lists them.
func (v *Value[S]) Set(text string) error {
	known := words[reflect.TypeFor[S]()]
	if last := len(known) - 1; text != "" && known != nil && !slices.Contains(known, text) {
		return fmt.Errorf("want %s or %s", strings.Join(known[:last], ", "), known[last])
	}
	*v.to = S(text)
	return nil
}

// Type is what pflag calls the value.
func (v *Value[S]) Type() string { return "word" }

// Budget returns the time for all places of a comparison together.
func (d Diagnose) Budget() time.Duration {
	switch d {
	case DiagnoseOff:
		return 0
	case DiagnoseFast:
		return fastBudget
	default:
		return fullBudget
	}
}

// MayUpdate refuses updates of goldens in CI, which no one would see.
func MayUpdate(getenv func(string) string) error {
	if ci := strings.ToLower(getenv("CI")); ci != "" && ci != "false" && ci != "0" &&
		getenv("PARITY_UPDATE_IN_CI") != "1" {
		return fmt.Errorf("goldens are not updated in CI (CI=%s): set PARITY_UPDATE_IN_CI=1 if this job is meant to",
			getenv("CI"))
	}
	return nil
}
