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
