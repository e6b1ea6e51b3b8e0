package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/supervise"
)

// Alone makes goldens for cases that have a program and none: see [judge.Alone]. What does not fit into
// memory lies in a temporary folder until undo.
func Alone(ctx context.Context, cases []judge.Case, opt judge.AloneOptions) (done []judge.Case, undo func() error, err error) {
	if undo, err = Keep(&opt); err != nil {
		return nil, nil, err
	}
	for _, k := range cases {
		if k.Golden, err = Blank(k.Name, k.Program); err == nil {
			k, err = judge.Alone(ctx, k, opt)
		}
		if err != nil {
			return nil, nil, errors.Join(err, undo())
		}
		done = append(done, k)
	}
	return done, undo, nil
}

// Keep lets what is replayed and does not fit into memory lie in a temporary folder until undo.
func Keep(opt *judge.AloneOptions) (undo func() error, err error) {
	dir, remove, err := supervise.TempDir("", "goparity-replayed-")
	if err != nil {
		return nil, err
	}
	k := &keeper{name: filepath.Join(dir, "tensors")}
	opt.Keep = k.keep
	return func() error { return errors.Join(k.close(), remove()) }, nil
}

// OfCase returns the program for a run of a candidate: that of path, a file or a folder with one for
// the case (path/program.json, path/CASE/program.json). The caller closes it.
func OfCase(path string, run *dump.Run, only bool) (*program.Program, error) {
	if filepath.Ext(path) == ".json" {
		if !only {
			return nil, fmt.Errorf("%s is of one case: name a folder that has %s for each", path, filepath.Join("CASE", dump.ProgramFile))
		}
		return program.Read(path)
	}
	of := filepath.Join(path, run.Info.Case, dump.ProgramFile)
	p, err := program.Read(of)
	if err != nil && only {
		if p, other := program.Read(filepath.Join(path, dump.ProgramFile)); other == nil {
			return p, nil
		}
	}
	return p, err
}

// Blocks returns which layers are those of some numbered blocks, "0,1,last", of the layers that a
// program has, and the blocks.
func Blocks(text string, programs []*program.Program) (wants func(layer string) bool, blocks []string, err error) {
	last := map[string]int{} // by what the blocks are in
	for _, p := range programs {
		for _, at := range p.Ports {
			if in, n, ok := numbered(at.Layer); ok {
				last[in] = max(last[in], n)
			}
		}
	}
	var asked []int
	ends := false
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		switch {
		case word == "last":
			ends = true
		case err != nil || n < 0:
			return nil, nil, fmt.Errorf("%q: want numbers of blocks, and last: 0,1,last", text)
		default:
			asked = append(asked, n)
		}
	}
	is := func(in string, n int) bool { return slices.Contains(asked, n) || ends && n == last[in] }
	for in, most := range last {
		for n := range most + 1 {
			if is(in, n) {
				blocks = append(blocks, in+"."+strconv.Itoa(n))
			}
		}
	}
	if len(blocks) == 0 {
		return nil, nil, fmt.Errorf("%q: the program has no such block", text)
	}
	slices.SortFunc(blocks, label.Natural)
	return func(layer string) bool {
		in, n, ok := numbered(layer)
		return ok && is(in, n)
	}, blocks, nil
}

// numbered returns the outermost numbered block around a layer.
func numbered(layer string) (in string, n int, ok bool) {
	block := label.Block(label.Name(layer))
	at := strings.LastIndexByte(block, '.')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(block[at+1:])
	return cmp.Or(block[:at], block), n, err == nil
}
