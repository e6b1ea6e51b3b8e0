package golden_test

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
)

var hashLine = regexp.MustCompile(`(?m)^ "sha256": "[0-9a-f]{64}",\n`)

// unsealed returns a manifest as an older version wrote it, without a hash of what it lists.
func unsealed(manifest string) string {
	return strings.Replace(hashLine.ReplaceAllString(manifest, ""), `"schema": 7`, `"schema": 1`, 1)
}

// listed imports two variants of two cases, of which one tensor is another one's twin, and returns
// the manifest.
func listed(t *testing.T, fsys afero.Fs) string {
	t.Helper()
	run := map[string]*golden.Run{
		"a": ports("l", "output", f32(t, 1, 2), "m", "output", f32(t, 3), "model", "output", f32(t, 3)),
		"b": ports("l", "output", f32(t, 4))}
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: run})
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: run, Variant: "float64"})
	data, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(t, err)
	return string(data)
}

// A manifest that lists something else than what was imported is refused, in the old form too where
// its files tell.
func TestAManifestThatListsLess(t *testing.T) {
	cut := func(pattern, with string) func(string) string {
		return func(s string) string {
			i := regexp.MustCompile(pattern).FindStringIndex(s)
			if i == nil {
				return s
			}
			return s[:i[0]] + with + s[i[1]:]
		}
	}
	lastPass := cut(`(?s),\n  \{"variant":"float64","case":"b".*?\n  \]\}`, "")
	for _, c := range []struct {
		reason   string
		edit     func(string) string
		unsealed string // what reading says without the hash; "" if only the hash tells
	}{
		{"the last layer is gone", cut(`,\n   \{"layer":"m"[^\n]*\n[^\n]*"layer":"model"[^\n]*`, ""),
			"the manifest does not list 1 of its 2 tensors, m-output"},
		{"a twin of another tensor is gone", cut(`,\n   \{"layer":"model"[^\n]*`, ""), ""},
		{"a pass is gone", lastPass, ""},
		{"a variant is gone", cut(`(?s),\n  \{"variant":"float64".*\]\}`, ""), ""},
		{"a layer has another name", cut(`"layer":"model"`, `"layer":"head"`), ""},
		{"a layer has another place in the order of execution", cut(`"index":2`, `"index":3`), ""},
		{"a golden is no longer blessed", cut(`"engine":"torch"`, `"engine":"other"`), ""},
		{"the hash is gone", func(s string) string { return hashLine.ReplaceAllString(s, "") }, "-"},
		{"the schema is that of the old form", cut(`"schema": 7`, `"schema": 1`), "-"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			fsys := afero.NewMemMapFs()
			good := listed(t, fsys)
			bad := c.edit(good)
			require.NotEqual(t, good, bad)
			write := func(text string) {
				require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte(text), 0o644))
			}
			write(bad)
			_, err := golden.OpenOn(fsys, "golden")
			require.ErrorIs(t, err, golden.ErrCorrupt)
			require.ErrorContains(t, err, "does not fit its sha256")
			require.ErrorContains(t, err, "go test ./... -update")
			_, err = golden.ImportOn(context.Background(), fsys, "golden", golden.ImportOptions{Runs: runs("c",
				ports("l", "output", f32(t, 1)))})
			require.ErrorIs(t, err, golden.ErrCorrupt, "nor is anything added to it")
			if c.unsealed == "-" {
				return
			}
			write(unsealed(bad))
			s := open(t, fsys, "golden")
			assert.False(t, s.Sealed())
			entries, err := s.Tensors("float32", "a", "0")
			require.NoError(t, err)
			if _, err = entries[0].Tensor(); c.unsealed == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, golden.ErrCorrupt)
				require.ErrorContains(t, err, c.unsealed)
			}
		})
	}
}

// What is not content is no damage, and the old form can be read.
func TestAManifestInAnotherForm(t *testing.T) {
	fsys := afero.NewMemMapFs()
	good := listed(t, fsys)
	require.True(t, open(t, fsys, "golden").Sealed())
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(good), "", "    "))
	var any map[string]any
	require.NoError(t, json.Unmarshal([]byte(good), &any))
	sorted, err := json.Marshal(any)
	require.NoError(t, err)
	for reason, text := range map[string]string{
		"indented": indented.String(), "on one line, keys sorted": string(sorted),
		"Windows line ends":   strings.ReplaceAll(good, "\n", "\r\n"),
		"escapes":             strings.Replace(good, `"model"`, `"mod\u0065l"`, 1),
		"a number, otherwise": strings.Replace(good, `"max":2,`, `"max":2.0e0,`, 1),
		"the old form":        unsealed(good),
	} {
		require.NotEqual(t, good, text, reason)
		require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte(text), 0o644))
		s := open(t, fsys, "golden")
		assert.Empty(t, verify(t, s), reason)
	}
	// The next import writes the new form.
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("c", ports("l", "output", f32(t, 1)))})
	assert.True(t, open(t, fsys, "golden").Sealed())
}
