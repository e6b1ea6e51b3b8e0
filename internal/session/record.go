package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/pack"
	"github.com/goparity/goparity/tensor"
)

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// record keeps the judged runs as runs/<name>/<mode>: equal tensors once, a file for each forward pass. An older recording of that name
// is replaced when all is written.
func (f *Fixture) record(name string) error {
	if !runName.MatchString(name) {
		return fmt.Errorf("record: %q is no name for a run: want letters, digits, dot, dash", name)
	}
	mode := f.runs[0].Info.Mode
	dir := f.runDir(name, mode)
	if f.replay == "" && !f.isLive() {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+mode+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var rec struct {
		Schema int         `json:"schema"`
		Cases  []dump.Info `json:"cases"`
	}
	rec.Schema = 1
	for _, r := range f.runs {
		info, err := writeCase(tmp, r)
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		info.Inputs = f.yaml.RunInputs(info.Case)
		if info.Date == "" {
			info.Date = time.Now().UTC().Format(time.RFC3339)
		}
		rec.Cases = append(rec.Cases, info)
	}
	data, err := json.MarshalIndent(rec, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, dump.RunFile), append(data, '\n'), 0o644); err != nil {
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
		file := info.Case + "." + step + ".safetensors"
		for _, e := range r.Entries {
			if e.Step == step {
				named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
				order = append(order, dump.OrderEntry{Step: step, Layer: e.Layer, Port: e.Port, File: file})
			}
		}
		out, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return info, err
		}
		hash := sha256.New()
		ranges, err := pack.Write(io.MultiWriter(out, hash), named, nil)
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
