package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// record keeps the judged runs as runs/<name>/<mode>: equal tensors once, a file for each forward pass. An older recording of that name
// is replaced, each mode when all of it is written.
func (f *Fixture) record(name string) error {
	if f.replay == "" && !f.isLive() {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	if err := f.recordMode(name, f.runs); err != nil {
		return err
	}
	if f.injected == nil {
		return os.RemoveAll(f.runDir(name, dump.Injected)) // that of an older candidate
	}
	return f.recordMode(name, f.injected)
}

func (f *Fixture) recordMode(name string, runs []*dump.Run) error {
	mode := runs[0].Info.Mode
	dir := f.runDir(name, mode)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+mode+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var cases []dump.Info
	for _, r := range runs {
		info, err := writeCase(tmp, r)
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		info.Inputs = f.runInputs(info)
		if info.Date == "" {
			info.Date = time.Now().UTC().Format(time.RFC3339)
		}
		cases = append(cases, info)
	}
	if err := writeRunFile(tmp, cases); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	old := tmp + ".old"
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// writeCase writes the steps of one run and gives its run.json.
func writeCase(dir string, r *dump.Run) (dump.Info, error) {
	info := r.Info
	info.Schema, info.Order, info.SHA256 = 1, nil, map[string]string{}
	for _, step := range r.Steps() {
		var named []tensor.Named
		var order []dump.OrderEntry
		file := fileName(info.Case + "." + step + ".safetensors")
		for _, e := range r.Entries {
			if e.Step == step && info.Injected[e.Label()] == "" { // an input that was replaced is the golden one
				named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
				order = append(order, dump.OrderEntry{Step: step, Layer: e.Layer, Port: e.Port, File: file})
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
