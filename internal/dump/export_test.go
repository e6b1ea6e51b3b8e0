package dump

import (
	"errors"
	"fmt"
)

// What the tests call of this package.
var (
	ParseInfo = parseInfo
	Known     = known // keys of run.json
	Seal      = seal
	CheckSeal = checkSeal
	ErrSeal   = errSeal
)

// Judgeable refuses a run that this version cannot judge.
func (i *Info) Judgeable() error { return i.judgeable() }

// Open opens a dump of one run.
func Open(path string, opt Options) (*Run, error) {
	runs, err := OpenCases(path, opt)
	if err == nil && len(runs) != 1 {
		err = errors.Join(fmt.Errorf("%d runs", len(runs)), CloseAll(runs))
	}
	if err != nil {
		return nil, err
	}
	return runs[0], nil
}
