package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// Inputs are what two dumps are compared by, as the flags of parity compare have it.
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
	all := []*string{&in.Golden, &in.Actual, &in.Injected, &in.Golden64, &in.Noise, &in.Unquantised, &in.Unrounded, &in.OnePass, &in.Config, &in.PadMask, &in.Names}
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
	if in.Golden == "" || in.Actual == "" {
		return in, errors.New("made says not which two dumps were compared")
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

// Args returns the inputs as arguments of parity compare.
func (in Inputs) Args() (args []string) {
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				args = append(args, "--"+flag, v)
			}
		}
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	add("golden", in.Golden)
	add("actual", in.Actual)
	add("injected", in.Injected)
	add("injection", in.Injection)
	add("golden64", in.Golden64)
	add("noise", in.Noise)
	add("unquantised", in.Unquantised)
	add("unrounded", in.Unrounded)
	add("one-pass", in.OnePass)
	add("weights", in.Weights...)
	add("config", in.Config)
	add("pad-mask", in.PadMask)
	add("names", in.Names)
	add("scope", in.Scope...)
	add("encoding", in.Encoding)
	add("raw", in.Raw)
	add("fp8", in.FP8)
	add("atol", number(in.Atol))
	add("rtol", number(in.Rtol))
	if in.EqualNaN {
		args = append(args, "--equal-nan")
	}
	if in.Reshape {
		args = append(args, "--allow-reshape")
	}
	return args
}
