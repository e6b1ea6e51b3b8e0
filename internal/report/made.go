package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Made says how parity compare made a report of two dumps: enough to compare them again, and nothing
// that writes a file or runs a program, since a report may come from anywhere.
type Made struct {
	Command string `json:"command"` // "compare"; earlier versions had others
	Dir     string `json:"dir"`     // folder in which it ran
	Inputs
}

// Inputs are what two dumps are compared by. A key is a flag of parity compare with "_" for "-", or one of the flag
// that takes it as KEY=VALUE. What is a file or folder that is read says so.
type Inputs struct {
	Golden      string   `json:"golden" is:"file"`
	Actual      string   `json:"actual" is:"file"`
	Injected    string   `json:"injected,omitempty" is:"file" of:"also"`
	Injection   string   `json:"injection,omitempty"`
	Golden64    string   `json:"golden64,omitempty" is:"file" of:"also"`
	Noise       string   `json:"noise,omitempty" is:"file" of:"also"`
	Unquantised string   `json:"unquantised,omitempty" is:"file" of:"also"`
	Unrounded   string   `json:"unrounded,omitempty" is:"file" of:"also"`
	OnePass     string   `json:"one_pass,omitempty" is:"file" of:"also"`
	Program     string   `json:"program,omitempty" is:"file"`
	Strict      bool     `json:"strict,omitempty"`
	Vacuous     bool     `json:"allow_vacuous,omitempty"`
	Weights     []string `json:"weights,omitempty" is:"file"`
	Config      string   `json:"config,omitempty" is:"file"`
	PadMask     string   `json:"pad_mask,omitempty" is:"file" of:"assume"`
	Names       string   `json:"names,omitempty" is:"file"`
	Scope       []string `json:"scope,omitempty"`
	Encoding    string   `json:"encoding,omitempty" of:"assume"`
	Raw         string   `json:"raw,omitempty" of:"assume"`
	FP8         string   `json:"fp8,omitempty" of:"assume"`
	Within      []string `json:"within,omitempty"`
	Reshape     bool     `json:"allow_reshape,omitempty"`
	Tokens      *int     `json:"tokens,omitempty"` // of a generation; 0 for all, nil: tokens are judged where run.json has them
}

// input is a field of Inputs.
type input struct {
	name   string // of its flag, or its key
	of     string // the flag that takes it as KEY=VALUE; ""
	isFile bool
	value  reflect.Value
}

// fields lists them; with given only those that have a value.
func (in *Inputs) fields(given bool) (list []input) {
	for field, v := range reflect.ValueOf(in).Elem().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !given || !v.IsZero() {
			list = append(list, input{strings.ReplaceAll(key, "_", "-"), field.Tag.Get("of"), field.Tag.Get("is") == "file", v})
		}
	}
	return list
}

// Also returns by its role where each of the further dumps stands.
func (in *Inputs) Also() map[string]*string {
	roles := map[string]*string{}
	for _, x := range in.fields(false) {
		if x.of == "also" {
			roles[x.name] = x.texts()[0]
		}
	}
	return roles
}

// Paths are where the files and folders that are read stand, of those that are given.
func (in *Inputs) Paths() (paths []*string) {
	for _, x := range in.fields(true) {
		if x.isFile {
			paths = append(paths, x.texts()...)
		}
	}
	return paths
}

// Here returns the inputs with paths that lead there from the working folder. A relative one that is
// not there is looked for in the folder in which the report was made. The error names the first that
// is in neither.
func (m *Made) Here() (Inputs, error) {
	in := m.Inputs
	if in.Golden == "" && in.Program == "" || in.Actual == "" {
		return in, errors.New("made says not which two dumps, or which program and dump, were compared")
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	in.Weights = slices.Clone(in.Weights)
	for _, p := range in.Paths() {
		there := filepath.Join(m.Dir, *p)
		switch {
		case exists(*p):
		case !filepath.IsAbs(*p) && filepath.IsAbs(m.Dir) && exists(there):
			*p = there
		default:
			return in, fmt.Errorf("%s, of which the report was made in %s, is gone: compare again where it is (%w)", *p, m.Dir,
				fs.ErrNotExist)
		}
	}
	return in, nil
}

// Args returns the inputs as arguments of parity compare; with names only what these flags say.
func (in Inputs) Args(names ...string) (args []string) {
	for _, x := range in.fields(true) {
		flag, key := "--"+x.name, ""
		if x.of != "" {
			flag, key = "--"+x.of, x.name+"="
		}
		switch texts := x.texts(); {
		case len(names) > 0 && !slices.Contains(names, x.name):
		case x.value.Kind() == reflect.Bool:
			args = append(args, flag)
		case x.value.Kind() == reflect.Pointer:
			args = append(args, flag, fmt.Sprint(x.value.Elem()))
		default:
			for _, s := range texts {
				args = append(args, flag, key+*s)
			}
		}
	}
	return args
}

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
	words := slices.Concat([]string{"go", "test", pkg}, which, []string{"-count=1"})
	for _, flag := range [][2]string{{"-tags=", s.Tags}, {"-parity.run=", s.Run}, {"-parity.replay=", s.Replay},
		{"-parity.mode=", s.Mode}, {"-parity.inherited=", s.Inherited}} {
		if flag[1] != "" {
			words = append(words, flag[0]+flag[1])
		}
	}
	return words
}

// texts are where its strings stand.
func (x input) texts() (texts []*string) {
	switch p := x.value.Addr().Interface().(type) {
	case *string:
		texts = append(texts, p)
	case *[]string:
		for i := range *p {
			texts = append(texts, &(*p)[i])
		}
	}
	return texts
}
