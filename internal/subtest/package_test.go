package subtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/subtest"
)

func TestPlace(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write := func(name string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	for _, f := range []string{"work/go.work", "work/a/go.mod", "work/a/x/y", "work/b/go.mod", "mod/go.mod", "mod/x/y"} {
		write(f)
	}
	for _, tt := range []struct{ dir, gowork, root, folder, argument, reason string }{
		{"mod", "", "mod", ".", ".", "the root of a module"},
		{"mod/x", "", "mod", "x", "./x", "a folder of it"},
		{"work/a/x", "", "work", "a/x", "./x", "of a workspace: another module may have an x, too"},
		{"work/a/x", "off", "work/a", "x", "./x", "a workspace that is switched off"},
	} {
		t.Chdir(filepath.Join(root, tt.dir))
		t.Setenv("GOWORK", tt.gowork)
		at, folder := subtest.Place()
		assert.Equal(t, filepath.Join(root, tt.root), at, tt.reason)
		assert.Equal(t, tt.folder, folder, tt.reason)
		assert.Equal(t, tt.argument, subtest.Package(), tt.reason)
	}
	t.Chdir(root)
	at, folder := subtest.Place()
	assert.Equal(t, []string{".", "."}, []string{at, folder}, "without a go.mod")
	assert.Equal(t, "github.com/goparity/goparity/internal/subtest", subtest.ImportPath())
}
