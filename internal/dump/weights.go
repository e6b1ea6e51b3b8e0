package dump

import (
	"errors"
	"path/filepath"

	"github.com/goparity/goparity/internal/dequant"
	"github.com/goparity/goparity/tensor"
)

// dequantise replaces the quantised weights of a file of a checkpoint by what they stand for.
func (r *Run) dequantise(dir string, named []tensor.Named) ([]tensor.Named, error) {
	config, err := dequant.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	elsewhere, err := dequant.Elsewhere(dir, filepath.Base(r.Path))
	if err != nil {
		return nil, err
	}
	out, notes, err := dequant.Join(named, config, elsewhere)
	var fe *tensor.FormatError
	if errors.As(err, &fe) && fe.File == "" {
		fe.File = r.Path
	}
	r.Notes = append(r.Notes, notes...)
	return out, err
}

// dequantiseFolder does so for all files of a folder, if its config.json says that weights are
// quantised.
func (r *Run) dequantiseFolder(dir string, named []tensor.Named) ([]tensor.Named, error) {
	config, err := dequant.ReadConfig(dir)
	if err != nil || config == nil || r.HasInfo {
		return named, err
	}
	out, _, err := dequant.Join(named, config, nil)
	return out, err
}
