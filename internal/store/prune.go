package store

import (
	"context"
	"fmt"
)

// Prune returns what is no longer wanted: runs that are not to be kept, and files of a store that belong to no run.
// With apply it removes them, atomically. It refuses a store that is damaged, and one of which nothing
// would be left.
func Prune(ctx context.Context, dir string, apply bool, waiting func(holder string), keep func(*Kept) bool) (gone []string, err error) {
	prune := func(old *Store) (*Change, error) {
		c := &Change{Paths: old.Paths()}
		for _, k := range old.Runs() {
			if keep(k) {
				c.Keep = append(c.Keep, k)
			} else {
				gone = append(gone, k.String())
			}
		}
		problems, err := old.Verify(ctx)
		for _, p := range problems {
			if !p.Extra {
				return nil, fmt.Errorf("prune %s: nothing is removed from a damaged store: %w", dir, p.Err)
			}
			if ours.MatchString(p.File) {
				gone = append(gone, p.File)
			}
		}
		switch {
		case err != nil || len(gone) == 0:
			return nil, err
		case len(c.Keep) == 0:
			return nil, fmt.Errorf("prune %s: the fixture wants none of what it keeps, nothing would be left: delete the folder if that is meant", dir)
		}
		return c, nil
	}
	if apply {
		err = Update(ctx, dir, waiting, prune)
		return gone, err
	}
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	_, err = prune(s)
	return gone, err
}
