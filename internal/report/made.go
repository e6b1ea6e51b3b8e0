package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Made says how parity compare or parity verify made a report of two dumps: enough to compare them
// again, and nothing that writes a file or runs a program, since a report may come from anywhere.
type Made struct {
	Command string `json:"command"` // "compare", "verify" or Generate
	Dir     string `json:"dir"`     // folder in which it ran
	Inputs
}

// Generate is the command that judges a generation.
const Generate = "generate"

// Inputs are what two dumps are compared by, as the flags of parity compare and parity generate have
// it: a key is a flag with "_" for "-".
type Inputs struct {
	Golden      string   `json:"golden"`
	Actual      string   `json:"actual"`
	Injected    string   `json:"injected,omitempty"`
	Injection   string   `json:"injection,omitempty"`
	Golden64    string   `json:"golden64,omitempty"`
	Noise       string   `json:"noise,omitempty"`
	Unquantised string   `json:"unquantised,omitempty"`
	Unrounded   string   `json:"unrounded,omitempty"`
	OnePass     string   `json:"one_pass,omitempty"`
	Program     string   `json:"program,omitempty"`
	Layers      string   `json:"layers,omitempty"`
	Strict      bool     `json:"strict,omitempty"`
	Vacuous     bool     `json:"allow_vacuous,omitempty"`
	Weights     []string `json:"weights,omitempty"`
	Config      string   `json:"config,omitempty"`
	PadMask     string   `json:"pad_mask,omitempty"`
	Names       string   `json:"names,omitempty"`
	Scope       []string `json:"scope,omitempty"`
	Encoding    string   `json:"encoding,omitempty"`
	Raw         string   `json:"raw,omitempty"`
	FP8         string   `json:"fp8,omitempty"`
	Atol        *float64 `json:"atol,omitempty"`
	Rtol        *float64 `json:"rtol,omitempty"`
	EqualNaN    bool     `json:"equal_nan,omitempty"`
	Reshape     bool     `json:"allow_reshape,omitempty"`
	Tokens      int      `json:"tokens,omitempty"` // of parity generate
}

// Files lists the files and folders that are read.
func (in Inputs) Files() (paths []string) {
	for _, p := range in.paths() {
		paths = append(paths, *p)
	}
	return paths
}

// paths are where the paths that are given stand.
func (in *Inputs) paths() (paths []*string) {
	all := []*string{&in.Golden, &in.Actual, &in.Injected, &in.Golden64, &in.Noise, &in.Unquantised, &in.Unrounded, &in.OnePass, &in.Program, &in.Config, &in.PadMask, &in.Names}
	for i := range in.Weights {
		all = append(all, &in.Weights[i])
	}
	for _, p := range all {
		if *p != "" {
			paths = append(paths, p)
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
	in.Weights = slices.Clone(in.Weights)
	for _, p := range in.paths() {
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Args returns the inputs as arguments of the command that made the report; with names only what
// these flags say.
func (in Inputs) Args(names ...string) (args []string) {
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		name := strings.ReplaceAll(jsonKey(v.Type().Field(i)), "_", "-")
		if len(names) > 0 && !slices.Contains(names, name) || v.Field(i).IsZero() {
			continue
		}
		flag := "--" + name
		switch f := v.Field(i).Interface().(type) {
		case bool:
			args = append(args, flag)
		case []string:
			for _, s := range f {
				args = append(args, flag, s)
			}
		case *float64:
			args = append(args, flag, strconv.FormatFloat(*f, 'g', -1, 64))
		default:
			args = append(args, flag, fmt.Sprint(f))
		}
	}
	return args
}

// jsonKey is the name of a field in report.json.
func jsonKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}
