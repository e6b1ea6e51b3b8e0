package dump

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/seal"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Write writes runs of one engine, one for each case, to an existing folder, as [OpenCases] reads
// them: run.json and a file for each forward pass, in which equal tensors are stored once. A run
// without the name of a case is called "case".
func Write(dir string, runs []*Run) error {
	rec := struct {
		Schema int               `json:"schema"`
		SHA256 string            `json:"sha256,omitempty"`
		Joined map[string]Joined `json:"joined,omitempty"`
		Cases  []Info            `json:"cases"`
	}{Schema: recordingSchema, Joined: map[string]Joined{}}
	for _, r := range runs {
		info, err := r.writeSteps(dir, cmp.Or(r.Info.Case, "case"))
		if err == nil {
			err = r.Changed()
		}
		if err != nil {
			return fmt.Errorf("dump: write %q: %w", dir, err)
		}
		rec.Cases = append(rec.Cases, info)
		if r.Joined != nil {
			rec.Joined[info.Case] = r.Joined
		}
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if rec.SHA256, err = seal.Sum(data); err != nil {
		return err
	}
	if data, err = json.MarshalIndent(rec, "", " "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RunFile), append(data, '\n'), 0o644)
}

// writeSteps writes the steps of a run and returns its run.json.
func (r *Run) writeSteps(dir, caseName string) (Info, error) {
	info := r.Info
	info.Schema, info.Case, info.Order, info.SHA256 = Schema, caseName, nil, map[string]string{}
	info.Weights = nil // their files are not copied
	of := r.byStep()
	for _, step := range r.Steps() {
		var named []tensor.Named
		var order []OrderEntry
		file := fileName(caseName + "." + step + ".safetensors")
		for _, e := range of[step] {
			if info.Injected[e.Label()] == "" { // a replaced input is the golden one
				named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
				order = append(order, OrderEntry{Step: step, Layer: e.Layer, Port: e.Port, File: file})
			}
		}
		out, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return info, err
		}
		hash := sha256.New()
		ranges, err := safetensors.WriteUnique(io.MultiWriter(out, hash), named, nil)
		if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
			return info, err
		}
		for i := range order {
			if ranges[i].Name != named[i].Name {
				order[i].Name = ranges[i].Name
			}
		}
		info.Order = append(info.Order, order...)
		info.SHA256[file] = hex.EncodeToString(hash.Sum(nil))
	}
	return info, nil
}

// fileName makes the name of a case and step fit for a file. It need not be reversible: run.json
// says which file is whose.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._- ", r) ||
			!unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
