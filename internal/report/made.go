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

// Inputs are what two dumps are compared by. A key is a flag of parity compare with "_" for "-". What
// is a file or folder that is read says so; of the further dumps the key is a role of --also.
type Inputs struct {
	Golden      string   `json:"golden" is:"file"`
	Actual      string   `json:"actual" is:"file"`
	Injected    string   `json:"injected,omitempty" is:"also"`
	Injection   string   `json:"injection,omitempty"`
	Golden64    string   `json:"golden64,omitempty" is:"also"`
	Noise       string   `json:"noise,omitempty" is:"also"`
	Unquantised string   `json:"unquantised,omitempty" is:"also"`
	Unrounded   string   `json:"unrounded,omitempty" is:"also"`
	OnePass     string   `json:"one_pass,omitempty" is:"also"`
	Program     string   `json:"program,omitempty" is:"file"`
	Layers      string   `json:"layers,omitempty"`
	Strict      bool     `json:"strict,omitempty"`
	Vacuous     bool     `json:"allow_vacuous,omitempty"`
	Weights     []string `json:"weights,omitempty" is:"file"`
	Config      string   `json:"config,omitempty" is:"file"`
	PadMask     string   `json:"pad_mask,omitempty" is:"file"`
	Names       string   `json:"names,omitempty" is:"file"`
	Scope       []string `json:"scope,omitempty"`
	Encoding    string   `json:"encoding,omitempty"`
	Raw         string   `json:"raw,omitempty"`
	FP8         string   `json:"fp8,omitempty"`
	Within      []string `json:"within,omitempty"`
	Reshape     bool     `json:"allow_reshape,omitempty"`
	Tokens      *int     `json:"tokens,omitempty"` // of a generation; 0 for all, nil: tokens are judged where run.json has them
}

// also marks the dumps of --also.
const also = "also"

// each goes through all inputs: the name of its flag, or its role, what it is ("file", "also" or ""), and where it stands.
func (in *Inputs) each(visit func(name, is string, value reflect.Value)) {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		visit(strings.ReplaceAll(jsonKey(field), "_", "-"), field.Tag.Get("is"), v.Field(i))
	}
}

// Also returns by its role where each of the further dumps stands.
func (in *Inputs) Also() map[string]*string {
	roles := map[string]*string{}
	in.each(func(name, is string, value reflect.Value) {
		if is == also {
			roles[name] = value.Addr().Interface().(*string)
		}
	})
	return roles
}

// Paths are where the files and folders that are read stand, of those that are given.
func (in *Inputs) Paths() (paths []*string) {
	in.each(func(_, is string, value reflect.Value) {
		switch p := value.Addr().Interface().(type) {
		case *string:
			if is != "" && *p != "" {
				paths = append(paths, p)
			}
		case *[]string:
			for i := range *p {
				if is != "" {
					paths = append(paths, &(*p)[i])
				}
			}
		}
	})
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
	in.each(func(name, is string, value reflect.Value) {
		if value.IsZero() || len(names) > 0 && !slices.Contains(names, name) {
			return
		}
		switch v := value.Interface().(type) {
		case bool:
			args = append(args, "--"+name)
		case []string:
			for _, s := range v {
				args = append(args, "--"+name, s)
			}
		case *int:
			args = append(args, "--"+name, fmt.Sprint(*v))
		case string:
			if is == also {
				name, v = also, name+"="+v
			}
			args = append(args, "--"+name, v)
		}
	})
	return args
}

// jsonKey is the name of a field in report.json.
func jsonKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}
