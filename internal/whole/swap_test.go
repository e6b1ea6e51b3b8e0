package whole_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/whole"
)

// faulty is a file system whose n-th rename fails. Before that it calls before.
type faulty struct {
	n      int
	before func()
	err    error
}

func (f *faulty) Rename(from, to string) error {
	if f.n--; f.n == 0 {
		if f.before != nil {
			f.before()
		}
		if f.err != nil {
			return f.err
		}
	}
	return os.Rename(from, to)
}

func TestSwap(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		had    bool
		disk   faulty
		rival  bool // another process puts its folder there between the two renames
		want   string
		err    error
		reason string
	}{
		{had: true, want: "new", reason: "the new folder takes its place"},
		{had: false, want: "new", reason: "there was no folder"},
		{had: true, disk: faulty{n: 1, err: broken}, want: "old",
			err: broken, reason: "the old folder cannot be moved"},
		{had: true, disk: faulty{n: 2, err: broken}, want: "old",
			err: broken, reason: "the new one cannot be moved: the old one is moved back"},
		{had: false, disk: faulty{n: 2, err: broken}, want: "",
			err: broken, reason: "there is no old folder to move back"},
		{had: true, disk: faulty{n: 2}, rival: true, want: "new",
			reason: "another process was faster: the last one wins"},
	} {
		dir := t.TempDir()
		write := func(folder, text string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "file"), []byte(text), 0o644))
		}
		if tt.had {
			write("to", "old")
		}
		write("from", "new")
		if tt.rival {
			tt.disk.before = func() { write("to", "rival") }
		}
		err := whole.Swap(&tt.disk, filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "old"))
		assert.ErrorIs(t, err, tt.err, tt.reason)
		got, _ := os.ReadFile(filepath.Join(dir, "to", "file"))
		assert.Equal(t, tt.want, string(got), tt.reason)
	}
}
