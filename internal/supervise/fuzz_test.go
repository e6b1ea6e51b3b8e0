package supervise_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
	_ "github.com/goparity/goparity/internal/updateflag"
)

func FuzzMask(f *testing.F) {
	f.Add([]byte("a log with hf_abc and hf_abcdef\n"), "hf_abc", "hf_abcdef", 0)
	f.Add([]byte("hf_abc\xffhf_abc"), "hf_abc", "", 1<<20-3)
	f.Add([]byte("aaaaa"), "aa", "aaa", 1<<20-2)
	f.Fuzz(func(t *testing.T, text []byte, one, two string, pad int) {
		if strings.Contains(one+two, "*") || pad < 0 || pad > 3<<20 {
			t.Skip("the asterisks can make a new secret")
		}
		path := filepath.Join(t.TempDir(), "log")
		text = append(make([]byte, pad), text...)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer file.Close()
		require.NoError(t, supervise.Mask(file, []string{one, two}))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, got, len(text))
		for i, b := range got {
			if b != text[i] && b != '*' {
				t.Fatalf("byte %d was %q and is %q", i, text[i], b)
			}
		}
		for _, secret := range []string{one, two} {
			assert.False(t, secret != "" && bytes.Contains(got, []byte(secret)))
		}
	})
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("{\"phase\":\"import\"}\n\n{\"phase\":\"load\"}\r\nno end"), 0)
	f.Add([]byte("\nafter\n"), 64<<10)
	f.Fuzz(func(t *testing.T, text []byte, pad int) {
		if pad < 0 || pad > 200<<10 {
			t.Skip("long enough")
		}
		text = append(bytes.Repeat([]byte("x"), pad), text...)
		var got, want []string
		last := supervise.ReadLines(bytes.NewReader(text), func(line []byte) { got = append(got, string(line)) })
		for _, line := range bytes.Split(text, []byte("\n")) {
			if line = bytes.TrimRight(line[:min(len(line), 64<<10)], "\r"); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		assert.Equal(t, want, got)
		if len(want) > 0 {
			assert.Equal(t, want[len(want)-1], last)
		}
	})
}
