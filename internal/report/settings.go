package report

import "reflect"

// Settings are those of go test that chose the run which a report judges, by flag or by variable;
// what was left to its default is empty.
type Settings struct {
	Tags      string `json:"tags,omitempty"` // build tags of the test binary
	Run       string `json:"run,omitempty"`
	Replay    string `json:"replay,omitempty"` // relative to the package
	Mode      string `json:"mode,omitempty"`
	Inherited string `json:"inherited,omitempty"`
}

// GoTest returns the command that runs tests of a package by these settings, as it is typed word by
// word: go test PACKAGE …WHICH -count=1 …. Every command that repeats a run is this one.
func (s Settings) GoTest(pkg string, which ...string) []string {
	words := append([]string{"go", "test", pkg}, which...)
	words = append(words, "-count=1")
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		name := jsonKey(v.Type().Field(i))
		if name != "tags" {
			name = "parity." + name
		}
		if value := v.Field(i).String(); value != "" {
			words = append(words, "-"+name+"="+value)
		}
	}
	return words
}
