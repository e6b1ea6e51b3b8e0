package dump

import (
	"errors"
	"fmt"
)

// What the tests call of this package.
var (
	Known   = known // keys of run.json
	ErrSeal = errSeal

	ParseLog = parseLog
)

// Record is a printed tensor.
type Record = record

// Style is the form in which it was printed.
func (r record) Style() string { return string(r.style) }

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
