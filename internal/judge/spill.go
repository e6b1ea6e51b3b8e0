package judge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
)

// Spill lets what is replayed and does not fit into memory lie in a temporary folder until undo.
func (opt *AloneOptions) Spill() (undo func() error, err error) {
	dir, remove, err := supervise.TempDir("", "goparity-replayed-")
	if err != nil {
		return nil, err
	}
	k := &keeper{name: filepath.Join(dir, "tensors")}
	opt.Keep = k.keep
	return func() error { return errors.Join(k.close(), remove()) }, nil
}

// keeper holds the replayed tensors of a run: in memory, and what is more than that in a file.
type keeper struct {
	name  string // of the file that it writes, if it has to
	file  *os.File
	bytes int64 // in memory, or in the file
}

// keep returns a tensor whose elements are not held in memory if there are many.
func (k *keeper) keep(t *tensor.Tensor) (*tensor.Tensor, error) {
	if k.file == nil {
		if k.bytes += int64(t.Len() * t.DType().Size()); k.bytes <= inMemory {
			return t, nil
		}
		file, err := os.OpenFile(k.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("what is replayed: %w", err)
		}
		k.file, k.bytes = file, 0
	}
	at := k.bytes
	n, err := t.WriteTo(k.file)
	if err != nil {
		return nil, fmt.Errorf("what is replayed: %w", err)
	}
	k.bytes += n
	return t.Deferred(func() []byte {
		data := make([]byte, n)
		if _, err := k.file.ReadAt(data, at); err != nil {
			panic(&mapfile.Fault{File: k.name, Err: err})
		}
		return data
	}), nil
}

// close closes the file. The tensors must not be used after it.
func (k *keeper) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}
